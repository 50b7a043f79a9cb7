// Package floods tracks the waits that Telegram has ordered for one account. Its [Tracker]
// knows what each flood covers and when it ends, holds back the calls inside it, and decides
// which call goes first after the deadline.
//
// # Deadlines
//
// A flood is a deadline, not a duration: a call made inside it waits for what is left, and a
// call made after it does not wait. Floods of the same scope combine to the later deadline.
//
// # Scopes
//
// Telegram does not say what a flood belongs to, so the tracker infers it. A flood starts as
// narrow as it can be: one method in one chat, or one method if the call is about no chat. It
// becomes
//
//   - the method's, when another chat is flooded on the method while the first
//     deadline stands;
//   - the account's, when the method's flood stands and another method is
//     flooded, or when the first call after the deadline of an account's flood is flooded
//     again. Calls that only read and calls that do not are two accounts in this, and so are
//     two data centres.
//
// In both cases the waits must agree: the longer is at most twice what is left of the
// shorter, or two seconds more. An hour in one chat and five seconds in another are two
// floods. Neither happens when a call within the wider scope that was sent after the first
// flood came through. If such a call comes through later, it takes the wider scope back; the
// narrow ones stay. "After" is decided by the order in which floods are recorded and calls
// are sent, not by a clock.
//
// Some kinds say what they belong to and never widen. Slow mode holds what sends to
// its chat, and neither edits nor reads. Premium waits hold one method in one data
// centre. Waits of a test phone, a busy worker and a failed skip hold the method in
// its chat, or the method when there is no chat.
//
// # Evidence over time
//
// A program that sends to one chat after the other waits for each flood to end, so no two
// floods stand together. The tracker therefore also remembers
//
//   - chats at rest that were flooded within a minute: when there are three, the floods are
//     about the method, see [flood.Record];
//   - methods whose floods proved to be those of all chats: for 10 minutes after the last
//     one, the next flood needs no second to prove it.
//
// A call that comes through where such a flood would have stopped it refutes either.
//
// # Guesses and probes
//
// A wider scope is a guess:
//
//   - It ends with the shortest of the floods that led to it. Calls that were on the wire
//     may confirm it, for as long as two floods that agree both last.
//   - A guess longer than 10 s, or a minute if more than three floods led to it, is probed:
//     one call goes after 5 s, the next 20 s later, then 80 s and 320 s and every 10 minutes.
//     A call that waits at most until the next probe is not refused. A probe that comes
//     through ends the guess, in this process and in others.
//   - It never holds back updates.getState, getDifference and getChannelDifference, without
//     which a client is deaf. Only a flood of that very method does.
//
// What the server said of a chat or a method is never probed before its deadline.
//
// # After the deadline
//
// When calls have waited for a deadline, one of them goes first: the probe. The others follow
// when it came through. If all went at once, a limit that still holds would refuse them all.
// If the probe is not answered within [flood.FirstTimeout], another call goes first. In slow
// mode the others follow one by one, as the chat allows. A flood for which no call waits ends
// silently. [Tracker.Opens] says how many calls follow, so that they can be paced.
//
// When the probe is flooded again, the server's wait was too short, and the next one is
// lengthened: by 1, 2, 4 … 64 seconds, doubled with each repeat, but never by more than the
// wait itself. This does not apply to a guess that one of its floods outlasts. A wait without a
// number is a second long, and twice as long each time a call that was sent after it is flooded
// again, up to 64 seconds. A call that comes through starts both over. Premium waits and slow
// mode are exact and are kept as they are.
//
// # Restarts and other processes
//
// A tracker with a journal returns from [Tracker.Changes] what a store has to know, and takes
// in with [Tracker.Restore] what a store or another process knows. Deadlines are wall time
// there. A clock that was set back makes no wait longer than it was ordered; one that was set
// forward ends it. What was restored holds calls back but is no evidence for a wider scope,
// since this process has not seen what came through. A crash between a flood and the moment
// when its record is stored forgets the flood. The clocks of processes that share records
// have to agree to a second or so.
//
// # Cost
//
// A call that no flood concerns costs a few atomic loads while there is none, and a few map
// lookups while there are some. A flood costs O(log n) in the floods that stand.
//
// # What it does not do
//
// The tracker paces nothing, sends nothing and repeats nothing, and it reads and writes no
// store.
package floods
