// Package ratelimit delays calls until there is room for them.
//
// # Model
//
// A [Gate] is a rule with a queue in front of it. The rule is a token bucket
// ([Limit]: it refills at Rate up to Burst) or a [Window] (so many calls in a period,
// sliding or fixed). A [Limiter] owns the gates of one account: single gates
// ([Limiter.NewGate]) and sets with one gate for each key, such as each chat
// ([Limiter.NewGates]). A call names the gates that it has to pass, the narrowest
// first, and passes them in series:
//
//   - At each gate it queues behind the calls that came before it. Only the head of a
//     queue looks at the rule. It sleeps once, on the gate's only timer, until there is
//     room. The others sleep without a timer.
//   - A head that finds room keeps its place and queues at the next gate. When the last
//     gate has room too, the call takes its cost from all gates in one step.
//
// So a call that gives up has taken nothing and has nothing to return. Of the calls that
// queue at a narrow gate, at most one queues at a wider gate too, so a busy category
// cannot fill the global queue.
//
// Each gate has two lanes. Background calls ([Limiter.AcquireBackground]) let normal calls
// go first, except every tenth time.
//
// # Calls over a network
//
// A server that limits calls counts each at some moment between its start and its answer,
// and a client cannot know when. [Limiter.Begin] therefore leaves the tokens of a call
// pending until [Limiter.Settle]: they take room, but a bucket begins to refill them, and a
// window to let them go, only then. A server of the same rule then refuses no call, however the
// network delays it. A busy bucket keeps its whole rate, as long as its burst is more than
// the rate times the round trip. A gate never forgets a pending call.
//
// For work without a server that counts, [Limiter.Acquire] charges the tokens at once.
// [Limiter.TryAcquire] is for work that is better skipped than queued.
//
// # Guarantees
//
//   - Over any interval a bucket admits at most Burst + Rate × time, and a sliding
//     window at most Limit in any Period. There are two exceptions. If a timer fires
//     late, the bucket makes up for at most 10 ms of the delay, so that a bucket of burst 1
//     keeps its full rate on a busy machine. And a call that counts for more than the gate
//     holds ([Gate.Times]) passes when the bucket is full or the window empty, and is
//     charged whole.
//   - Each gate admits calls of a lane in the order of their arrival, and TryAcquire never
//     passes a call that waits.
//   - A call whose context is done takes no token and leaves at once, from any place in the
//     queue. If a call cannot be admitted before the deadline of its context, it is refused
//     at once with the time that the wait would take.
//   - No change of limits grants tokens: the tokens that are left, and a debt, are carried
//     over and cut to the new burst. A head that waits looks at the new rule at once.
//   - A gate of a set is forgotten some time after its bucket is full or its window empty.
//     That changes no decision.
//   - Times are whole nanoseconds of the monotonic clock, so nothing drifts, and a wall
//     clock that is set back refills nothing.
//   - The package starts no goroutines. A limiter without waiters uses no resources but
//     memory and need not be closed.
//
// # Several processes
//
// With [Options.Shared] all processes of an account share its gates. Each process keeps
// its own queues and its own view of each gate, and the store decides. When a call is first
// at all its gates and its process would admit it, it asks the store once about all gates,
// and keeps its turn meanwhile. If the store has room, the call passes. If not, the gates
// that had no room are closed for as long as the store says, and the call waits.
//
// Only the head of a queue asks, so there is about one question for each admitted call,
// however many wait. Calls that have a gate in common ask one after the other: through one
// gate, a process sends at most one call in a round trip. The bound of a rule holds for all
// processes together, the order of arrival inside each. A question that has been asked is
// always answered: if the context is done, the limiter closed or a gate paused meanwhile, the
// call gives its tokens back, which takes up to 100 ms.
//
// [Options.OnFailure] decides what happens while the store is unavailable. The next call
// asks it again every 100 ms, later every second. Each question carries the process's own
// view of the gates, so a store that was away, or has lost its data, lets no burst through.
//
// [Limiter.Update] changes the rules of this process only.
//
// # Testing without waiting
//
// Time comes from [Options.Clock]. In a testing/synctest bubble the default clock is
// virtual, so a test covers a day in a millisecond. Elsewhere use a clock that is moved by
// hand, as the example of [Options] does.
//
// # Limits of the package
//
// It counts calls (or costs), not bytes. It knows nothing of Telegram: the names of gates
// are the caller's. Fairness between processes is up to the store.
package ratelimit
