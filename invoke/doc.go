// Package invoke is the choke point that every raw call of a client passes.
//
// # Model
//
// [Middleware] stands between a gotd client and the wire. For each call it
//
//  1. names the call: method, category, chat (package classify);
//  2. waits until no known flood covers it, or fails at once when that would take
//     longer than the call's threshold (package flood);
//  3. acquires tokens at the program's own gates, the gate of its chat, that of its
//     category and the global one, waiting in line (package ratelimit);
//  4. sends it, holding nothing while it is on the wire;
//  5. hands back the answer. If that is a flood, it is remembered, and the call
//     waits it out and starts again at 2, or gives up with a [*flood.WaitError].
//
// A [Limiter] holds what several clients of one account share: the gates, the known floods
// and the learned limits. With an [Options].Store, floods and learned limits survive a
// restart. With a store on Redis, all processes of the account share the gates as well.
// Options for a single call are on its context: see [WithNoWait], [WithBackground],
// [WithThreshold], [WithCategory], [WithCost] and [WithPermit].
//
// A program that uses gotd adds it with two fields of its options:
//
//	telegram.Options{
//		UpdateHandler: dispatch.New(handler, dispatch.Options{}),
//		Middlewares:   []telegram.Middleware{invoke.Must(invoke.Options{})},
//	}
//
// A handler waits when the calls that it makes wait. Package dispatch keeps such a handler
// from holding up the connection.
//
// # Learning
//
// A flood of a method or of the account lowers the limit of the call's category. A flood of
// one chat lowers the limit of that chat. The limit rises again with use. After too many
// refusals of a kind, calls of that kind are no longer sent ([Refusals]).
// [Limiter.Learned] returns the lowered limits, and [Limiter.Refusals] the refusals.
//
// # Calls of two kinds
//
// A typing notice or an online status is useless when it is late. It waits at most 2 s for
// tokens and at most 2 s for floods. A request for missed updates (updates.getState,
// getDifference, getChannelDifference) waits for a flood as long as necessary, because an
// error may end gotd's updates.Manager. [WithThreshold] overrides both rules for floods.
//
// # Errors
//
//   - [*flood.WaitError], flood.ErrGivenUp: Telegram ordered a wait that is not sat out, or
//     the call falls under one that stands. Sending it before Until does not help.
//   - [*flood.PermanentError], flood.ErrPermanent: Telegram refuses for good.
//   - [*ratelimit.RefusedError]: not sent, and nothing spent. Its reason is
//     ratelimit.ErrDeferred (its turn would come after the context's deadline),
//     ErrRejected (no tokens, and it was not to wait),
//     ErrQueueFull (MaxWaiters) or ErrImpossible (it costs more than a gate ever holds).
//   - [ErrClosed]: the middleware or its limiter was closed, while it waited or before.
//   - store.ErrUnavailable: the store is away, and Options.OnFailure is store.FailClosed.
//   - [ErrNotSent]: with package client, the call ended before it was written to a connection.
//     It also matches [ErrNoConnection] if there was no connection, and is returned at once for a
//     call that must not wait ([WithNoWait]).
//   - "<method> not sent …", which matches context.Canceled or context.DeadlineExceeded:
//     the context was done before the call left. Once it was on the wire, the error is
//     gotd's as it came, and nobody knows whether the server has done what was asked.
//
// All other errors are gotd's and Telegram's, as they came.
//
// An error of this package matches context.Canceled or context.DeadlineExceeded only if the
// context is done. A call that is refused early, because a wait for tokens or for a flood would outlast
// the deadline, does not: match ratelimit.ErrDeferred, or flood.ErrGivenUp with the Reason
// flood.ContextDeadline. gotd's downloader relies on that: while its context is not done, it
// takes context.DeadlineExceeded for a timeout of the network and asks again at once.
//
// # A connection that is lost
//
// When a connection is lost, nobody knows whether the call that was on it has arrived. A call
// that is safe to repeat is sent again, after 50 ms at first and every 2 s later, until its
// context is done. Safe are calls that only read (the categories query and bulk), and
// new messages and forwards, because their random_id makes Telegram accept them only once.
// If such a message had arrived, the call succeeds with *tg.UpdatesTooLong, because the
// answer itself is lost. An updates.Manager then fetches the message.
//
// Any other call ends with gotd's error. Before that, gotd itself sends it again if the server
// had not acknowledged it. That error can match context.Canceled although the call's context
// is not done.
//
// While there is no connection, no call takes tokens. Otherwise all waiting calls would leave
// at once when it is back. Package client reports its connection with
// [Middleware.SetOnline]; the middleware alone does not know it. If the context of a waiting
// call is done meanwhile, the call was not sent, and its error matches [ErrNoConnection].
//
// # Guarantees
//
//   - A call counts until the server must have counted it: its tokens are pending until it
//     is answered, until a call is answered that left clearly later on the same connection, or
//     until its connection is lost. If it ends without an answer and nothing else is known,
//     that takes [MaxUnanswered]. So no delay of the network makes a server of the same limits
//     refuse a call. Exceptions are gates on a shared store, and limits that floods have
//     taught: these charge a call when it is sent.
//   - Each dispatch is charged, a retry like a first attempt, and what was not
//     sent is not charged: if a flood arrives while a call waits for its tokens,
//     they are given back.
//   - No request leaves inside a known flood's scope before its deadline, except the
//     single calls that test a guessed scope (package flood). With a store this holds
//     after a restart too.
//   - A done context ends a waiting call at once, and so does [Middleware.Close]. The call
//     is not sent.
//   - Errors pass through as they came, except a flood that is given up on, which gotd's
//     uploader and downloader would sleep out once more, and a permanent refusal, which
//     is wrapped in a [*flood.PermanentError].
//   - Observer and logger are called without a lock held. A panic of the observer
//     is contained.
//
// # What it does not promise
//
// gotd sends some requests below its middlewares: the first request of each
// connection, the import of an authorisation into another data centre, and the
// calls of the pools that Client.Pool, DC, MediaOnly and CDN return. Package
// client covers the pools and the import, and deals with floods of the first request by
// [Middleware.SitOut] and [Middleware.Await]. A call that gotd repeats by
// itself on a new connection, or in another data centre, is charged once.
package invoke
