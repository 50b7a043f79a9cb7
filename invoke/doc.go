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
// What several clients of one account share, the gates, the known floods and what they
// have taught, is a [Limiter]. With an [Options].Store it outlives the process, and with
// one on Redis the gates are those of all processes of the account. What
// one call wants to do differently rides on its context: see [WithNoWait],
// [WithBackground], [WithThreshold], [WithCategory], [WithCost] and [WithPermit].
//
// A gotd program adopts all of it with one field of its options:
//
//	telegram.Options{Middlewares: []telegram.Middleware{invoke.Must(invoke.Options{})}}
//
// # Learning
//
// A flood of a method or of the account lowers the limit of the call's category, one of a
// chat that of the chat, and what holds is found again as it is used (package learn). Calls
// that are refused for good are stopped once there were too many of a kind ([Refusals]).
// [Limiter.Learned] and [Limiter.Refusals] tell what stands.
//
// # Calls of two kinds
//
// A typing notice or an online status is worth nothing when it is late: it waits 2 s at most
// for tokens, and 2 s at most for floods. A request for missed updates (updates.getState,
// getDifference, getChannelDifference) waits for floods as long as it takes, since gotd's
// engine of updates may end with an error. [WithThreshold] overrides what is said of floods.
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
//   - "<method> not sent: …", which matches context.Canceled or context.DeadlineExceeded:
//     the context was done before the call left. Once it was on the wire, the error is
//     gotd's as it came, and nobody knows whether the server has done what was asked.
//
// All other errors are gotd's and Telegram's, as they came.
//
// An error matches context.Canceled or context.DeadlineExceeded only if the context is
// done. A call that is refused early, because a wait for tokens or for a flood would outlast
// the deadline, does not: match ratelimit.ErrDeferred, or flood.ErrGivenUp with the Reason
// flood.ContextDeadline. gotd's downloader relies on that: while its context is not done, it
// takes context.DeadlineExceeded for a timeout of the network and asks again at once.
//
// # A connection that is lost
//
// When a connection is lost, nobody knows whether a call that was on it has arrived. A call
// that may be sent twice is sent again, after 50 ms at first and every 2 s later, until its
// context is done: one that only reads, and a message, whose random_id makes Telegram take it
// once. If such a message turns out to have arrived, the call succeeds with
// tg.UpdatesTooLong in place of the answer that was lost, which makes an updates.Manager ask
// for it. Any other call ends with gotd's error, after gotd has sent it again by itself if the
// server had not acknowledged it.
//
// While there is no connection, no call takes tokens, so that they do not all leave at once
// when it is back. Package client tells the middleware of its connection
// ([Middleware.SetOnline]); the middleware alone does not know of it. A call whose context is
// done meanwhile was not sent, and its error matches [ErrNoConnection].
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
//   - No request leaves inside a known flood's scope before its deadline, nor, with a
//     store, after a restart.
//   - A context that is done ends a call at once, wherever it waits, and so does
//     [Middleware.Close]: what waited is not sent.
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
