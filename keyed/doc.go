// Package keyed counts what a bot allows its users: "three awards a member a day".
//
//	limits, err := keyed.New(keyed.Options{Store: s})
//	…
//	perDay := keyed.Window{Limit: 3, Period: 24 * time.Hour}
//	got, err := limits.Charge(ctx, keyed.Key("award", userID), perDay)
//	if err != nil { … }
//	if got.Limited {
//		return reply("Again in ", got.RetryAfter)
//	}
//
// It does not wait: a user who has had enough is told so. To wait for one's turn is
// what package ratelimit is for, which keeps the bot within Telegram's limits; this
// one keeps users within the bot's.
//
// # Keys and windows
//
// A key says whose count it is, and [Key] makes one of parts. A [Window] says how much
// is allowed. It is not kept with the key but given with each call, so that a limit in
// a configuration file can change: what was charged still counts. One key is for one
// rule. Two rules on the same actions ("3 a day, 1 a minute") are two keys; [Limiter.Do]
// with one around a Charge of the other fulfils both.
//
// There are four kinds of window. [Sliding], unless another is chosen, is exact: the
// fourth award is allowed when the first is a day old, to the microsecond. [Aligned] is
// the calendar's day, hour or minute in UTC, [FirstHit] begins with a first charge, and
// [Bucket] gives back one by one, evenly. All but Sliding take the same room for any
// limit.
//
// # Stores
//
// Where it is counted is up to a [Store]: in memory unless another is given, in a file
// with package boltstore, or on a Redis server, for several processes. A decision is
// one step in each of them: of two who ask for the last room, one gets it. When a store
// fails, Options.OnFailure says what becomes of the decision, and Result.Degraded that
// it was made without the store. No call takes longer than Options.Timeout, whatever a
// store does.
//
// Times are whole microseconds, and no clock that is set back makes room, or locks
// anything for longer: see [Steady].
//
// # What it does not promise
//
// A charge that was reported as failed may have been recorded, if a store has answered
// too late: it errs towards the limit. Policies Open and Local admit more than the
// limit while a store is away, as each process then decides for itself.
package keyed
