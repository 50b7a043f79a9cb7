// Package ratelimit holds calls back at gates until there is room for them.
//
// # Model
//
// A [Gate] is a rule with a queue in front of it. The rule is a token bucket
// ([Limit]: it refills at Rate up to Burst) or a [Window] (so many in a period,
// sliding or fixed), and a call takes its cost out of it. A [Limiter] owns the gates
// of one account: single ones ([Limiter.NewGate]) and sets with a gate for each key,
// such as each chat ([Limiter.NewGates]). A call names the gates it has to pass, the
// narrowest first, and passes them in series:
//
//   - At each gate it queues behind the calls that came before it. Only the head
//     of a queue may look at the rule, and it sleeps, once, on the gate's one
//     timer until there is room. The others sleep without a timer.
//   - A head that finds room keeps its place and queues at the next gate. When
//     the last gate has room too, it takes its cost from all of them in one step.
//
// So a call that gives up half way has taken nothing and has nothing to return,
// and among the callers of one narrow gate at most one waits at a wide gate that
// they share: a busy category cannot fill the global queue.
//
// Each gate has two lanes. Calls in the background ([Limiter.AcquireBackground]) let
// the others go first, but for every tenth time.
//
// Most callers want [Limiter.Acquire]. [Limiter.TryAcquire] is for work that is
// better skipped than queued.
//
// # Guarantees
//
//   - Over any interval a bucket admits at most Burst + Rate × time, and a sliding
//     window at most Limit in any Period. The one exception is named: where a
//     bucket's timer fires late, up to 10 ms of that are made up for, so that a
//     bucket of burst 1 keeps its full rate on a busy machine.
//   - Each gate admits in the order of arrival within a lane, and TryAcquire never
//     passes a call that waits.
//   - A done context never takes a token; a cancelled call leaves at once from
//     any place in the queue. A context deadline that cannot be met is refused at
//     once, with the time that the wait would take.
//   - No change of limits grants tokens unless it says so: what was left is carried
//     over, cut to the new burst ([Inheritance] names the other ways). The waiting
//     head reckons again at once, whether the limit rose or fell.
//   - A gate of a set is forgotten when it is as good as new. That changes no answer.
//   - Time is reckoned in whole nanoseconds on the monotonic clock, so nothing
//     drifts, and a wall clock that is set back refills nothing.
//   - There is no goroutine in this package. Without waiters a limiter costs
//     nothing, and it need not be closed.
//
// # Several processes
//
// With [Options.Shared] the gates are those of an account, in all its processes: each
// process keeps its own queues and what it knows of each gate, and the store has the
// last word. A call queues as ever. When it is first at all its gates and would be
// admitted, it asks the store, once for all gates, and keeps its turn meanwhile. If the
// store has room, the call passes; if not, the gates that had none are closed for as long
// as the store says, and the call waits at the narrowest of them.
//
// So only the first of a queue asks, about once for each call that is admitted, however
// many wait. Calls that have a gate in common ask one after the other: a process sends
// through one gate at most one call in a round trip. The bound of a bucket or window
// holds for all processes together, and the order of arrival inside each. An ask that
// is under way is seen through: a call whose context is done, whose limiter is closed, or
// whose gate is paused meanwhile gives back what it got, which may take it 100 ms.
//
// While the store is unavailable, [Options.OnFailure] decides. It is asked again every
// 100 ms, and later every second, by a call that comes then. Each ask says what the
// process itself knows to be used, so that a store that was away under [store.FailLocal],
// or comes back empty, lets no burst through.
//
// A change of limits ([Limiter.Update]) is one of this process.
//
// # Testing without waiting
//
// Time comes from [Options.Clock]. In a testing/synctest bubble the default clock is
// virtual by itself, so a bot's own limits can be tested over a day in a
// millisecond; elsewhere a clock that is moved by hand does, as the example of
// [Options] shows.
//
// # What it does not promise
//
// It counts calls (or costs), not bytes. It knows nothing of Telegram: names of gates
// are the caller's. Of processes that share gates, it is up to the store that none is
// starved.
package ratelimit
