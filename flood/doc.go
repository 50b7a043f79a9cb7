// Package flood knows the waits that Telegram orders: how they are worded, how far
// each reaches, and when it ends.
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
//     flooded. Calls that only read and calls that do not are two accounts in this,
//     and so are two data centres.
//
// Neither happens when a call within the wider scope that was sent after the first
// flood came through. If such a call comes through a little too late, it takes the
// wider scope back; the narrow ones stay. The order in which floods are recorded
// and calls are sent decides what "after" means, not a clock.
//
// Some kinds say what they belong to and never widen. Slow mode holds what sends to
// its chat, and neither edits nor reads. Premium waits hold one method in one data
// centre. Waits of a test phone, a busy worker and a failed skip hold the method in
// its chat, or the method when there is no chat.
//
// A wait without a number is a second long, and twice as long each time a call that
// was sent after it meets it again, up to 64 seconds. A call that comes through
// makes it start over.
//
// # After the deadline
//
// When calls have waited for a deadline, one goes first. The others follow when it
// came through; were they all let go at once, a limit that still holds would refuse
// them all at once. In slow mode they follow one by one, as it allows no more. A
// flood for which nobody waits ends silently.
//
// # Patience
//
// [Threshold] says which waits are sat out. A wait that is not becomes a
// [*WaitError], which gotd's helpers do not take for a flood.
//
// # What it does not do
//
// The Book slows nothing down ahead of a flood, sends nothing and repeats nothing.
// It keeps its floods in memory. It trusts its caller to hand back every [Pass]: a
// pass that went first and is lost keeps those behind it waiting, up to their own
// limits.
package flood
