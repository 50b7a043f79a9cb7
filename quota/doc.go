// Package quota limits what a bot lets its users do: "three awards a member a day".
//
//	limits, err := quota.New(quota.Options{Store: file})
//	…
//	perDay := quota.Window{Limit: 3, Period: 24 * time.Hour}
//	got, err := limits.Charge(ctx, quota.Key("award", userID), perDay)
//	if err != nil { … }
//	if got.Limited {
//		return reply("Try again in", got.RetryAfter)
//	}
//
// A [Limiter] answers at once and never waits for room. To wait for a turn, use package
// ratelimit, which keeps the bot within Telegram's limits. This package keeps users
// within the bot's.
//
// # Model
//
// A key names what is counted; [Key] builds one from parts. A [Window] says how much is
// allowed in how much time. The window is passed with each call and not stored, so a
// limit in a configuration file can change without losing the count. Use one key for
// one rule: "3 a day" and "1 a minute" for the same action are two keys. Check both by
// calling [Limiter.Do] with one and Charge with the other inside it.
//
// There are four kinds of window. [Sliding], the default, counts the last Period
// exactly. [Aligned] counts the calendar's day, hour or minute in UTC. [FirstHit] starts
// a period at the first charge. [Bucket] refills one by one, evenly. A sliding window
// stores each charge that counts; the others need the same space for any limit.
//
// Counts are kept in a [Store]: in memory by default, in a file with package boltstore,
// or on a Redis server with package redisstore, where several processes share them.
//
// # Guarantees
//
//   - A decision is atomic. When two callers, or two processes with a shared store, ask
//     for the last room, exactly one of them gets it.
//   - Times are whole microseconds. A window has room again exactly when RetryAfter has
//     passed, not a microsecond sooner.
//   - A clock that is set back gives no room away and locks nobody out.
//   - A refused charge costs nothing, and neither does a call with invalid arguments.
//   - With a store that meets its contract, a call returns within Options.Timeout plus
//     [ReturnWithin]. It returns within ReturnWithin once its context is done.
//   - Expired keys are forgotten.
//
// # What it does not promise
//
// A charge that failed may still have been recorded, if the store's answer was lost. So
// an error can cost a user one charge, but never grants an extra one.
//
// While a store is unavailable, store.FailOpen and store.FailLocal can admit more than the
// limit, because each process decides alone. Result.Degraded reports such decisions.
// Counts in memory end with the process.
package quota
