// Package flood knows the waits that Telegram orders: how they are worded, how far
// each reaches, and when it ends. It also has the words for permanent refusals.
//
// # Reading
//
// [Parse] and [FromError] turn an RPC error into a [Notice]: what kind of refusal
// it is and how long it lasts. The kinds that a client may sit out on its own are
// [Notice.Waitable]; the others belong to the caller.
//
// # Remembering
//
// A [Book] keeps the floods of one account. A flood is a deadline, not a duration:
// a call made inside it waits for what is left, a call made after it does not
// wait. Floods of the same scope combine to the later deadline.
//
// Telegram does not say what a flood belongs to, so the Book infers it. A flood
// starts as narrow as it can be: one method in one chat, or one method if the call
// is about no chat. It becomes
//
//   - the method's, when another chat is flooded on the method while the first
//     deadline stands;
//   - the account's, when the method's flood stands and another method is
//     flooded, or when the first call after the deadline of a flood that was the
//     account's is flooded again. Calls that only read and calls that do not are two
//     accounts in this, and so are two data centres.
//
// In both cases the waits must agree: the longer is at most twice what is left of the
// shorter, or two seconds more. An hour in one chat and five seconds in another are two
// floods. Neither happens when a call within the wider scope that was sent after the first
// flood came through. If such a call comes through later, it takes the
// wider scope back; the narrow ones stay. The order in which floods are recorded
// and calls are sent decides what "after" means, not a clock.
//
// A wider scope is a guess ([Record.Inferred]), and is treated as one:
//
//   - It ends with the shortest of the floods that led to it. Calls that were on the wire
//     may confirm it, for as long as two that agree both last.
//   - A guess that is longer than 10 s, or a minute if more than three floods led to it, is
//     looked into: one call goes after 5 s, the next 20 s later, then 80 s and 320 s and every
//     10 minutes. A call that waits at most until the next look is not refused. A look that
//     comes through ends the guess, in this process and in others.
//   - It never holds back updates.getState, getDifference and getChannelDifference, without
//     which a client is deaf. Only a flood of that very method does.
//
// What the server said of a chat or a method is never walked into.
//
// Some kinds say what they belong to and never widen. Slow mode holds what sends to
// its chat, and neither edits nor reads. Premium waits hold one method in one data
// centre. Waits of a test phone, a busy worker and a failed skip hold the method in
// its chat, or the method when there is no chat.
//
// # After the deadline
//
// When calls have waited for a deadline, one goes first. The others follow when it
// came through; were they all let go at once, a limit that still holds would refuse
// them all at once. If it is not answered within [FirstTimeout], another goes first. In slow mode they follow one by one, as it allows no more. A
// flood for which nobody waits ends silently. [Book.Opens] tells how many follow, for
// those who want to pace them.
//
// When the call that went first is flooded again, and the deadline was not that of a guess
// which one of its floods outlasts, the server's answer was too short, and
// the next is not taken at its word: the hold is the wait and an extra of 1, 2, 4 … 64
// seconds, doubled with each repeat, but never more than the wait itself. A wait without a
// number is a second long, and twice as long each time a call that was sent after it
// meets it again, up to 64 seconds. A call that comes through makes either start over.
// Premium waits and slow mode are exact and are kept as they are. [Record.Until] and
// [Record.Wait] have the hold, [Record.Repeats] the number of repeats.
//
// # Over restarts and processes
//
// A [Record] is also JSON, with a [Record.Key] to keep it under. A book that keeps a
// journal says in [Book.Changes] what a store has to know, and takes in with
// [Book.Restore] what a store, or another process, knows. Deadlines are wall time there.
// A clock that was set back makes no wait longer than it was ordered; one that was set
// forward ends it. What was restored holds calls back but is no evidence for a wider
// scope, since nobody in this process saw what came through.
//
// # Permanent refusals
//
// Some refusals do not pass by waiting: the account is limited for spam, frozen or banned,
// or its key is gone. A [*PermanentError] is such an answer, or stands for it when the call
// was not sent because there had been too many. [RefusalKind] says what each kind concerns.
//
// # Patience
//
// [Threshold] says which waits are sat out. A wait that is not becomes a
// [*WaitError], which gotd's helpers do not take for a flood.
//
// # What it does not do
//
// The Book slows nothing down ahead of a flood, sends nothing and repeats nothing.
// It reads and writes no store; a crash between a flood and the moment
// when its record is kept forgets the flood. Clocks of processes that share records
// are taken to agree to a second or so. A [Pass] that went first and is lost keeps those
// behind it waiting for [FirstTimeout].
package flood
