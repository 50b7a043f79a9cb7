// Package breaker stops calls that Telegram refuses for good. An account that is limited
// for spam, frozen, banned or logged out gets the same answer however long it waits, and
// Telegram bans accounts whose clients go on asking.
//
// A [Breaker] counts permanent refusals by kind and by what the kind reaches: a method, or
// all calls that need a login. Once there were 20 of a kind within 10 minutes it trips:
// calls that the kind reaches fail with a [*flood.PermanentError] and are not sent, until a
// call proves otherwise, the account logs in, or somebody clears it. [flood.RefusalKind] says
// what each kind reaches, and [Breaker.Passed] what a successful call proves.
//
// The period begins with the first refusal and is not moved by later ones. So no more than
// twice the limit, less two, can be sent within any one period before the breaker trips.
//
// A trip outlives the process and is shared with other processes of the account: see
// [Breaker.Changes] and [Breaker.Restore]. Counts are not: each process counts its own.
//
// The breaker knows nothing of waits that end by themselves; those are floods.
package breaker
