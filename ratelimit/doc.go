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
// # Testing without waiting
//
// Time comes from [Options.Clock]. In a testing/synctest bubble the default clock is
// virtual by itself, so a bot's own limits can be tested over a day in a
// millisecond; elsewhere a clock that is moved by hand does, as the example of
// [Options] shows.
//
// # What it does not promise
//
// It counts calls (or costs), not bytes. It limits one process. It knows nothing
// of Telegram: names of gates are the caller's.
package ratelimit
