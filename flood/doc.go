// Package flood has the words for the waits that Telegram orders: notices, kinds, scopes,
// thresholds, records and errors. It also has those for permanent refusals.
//
// # Reading
//
// [Parse] and [FromError] turn an RPC error into a [Notice]: what kind of refusal
// it is and how long it lasts. The kinds that a client may sit out on its own are
// [Notice.Waitable]; the others belong to the caller.
//
// # Records
//
// A [Record] is a flood that stands: which calls it holds back, until when, and whether the
// server said so or it was inferred. It is plain data. Its JSON and its [Record.Key] are how a
// store keeps it.
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
// The package holds no state. Floods are tracked, and calls held back, by package invoke.
package flood
