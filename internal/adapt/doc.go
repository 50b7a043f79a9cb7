// Package adapt holds the limits that floods have taught: one for each category of calls
// that was flooded, and one for each chat that was.
//
// A limit is lowered by a flood, is probed as it is used, and never exceeds what is
// configured; package learn has the estimator. Package adapt applies what it says to the
// gates of a ratelimit.Limiter, keeps the limits of several processes together, and turns
// them into facts that a store can keep.
//
//	mark := limits.Sent(call)                            // it goes out now
//	rate, lowered := limits.Flooded(call, mark, record, adapt.Chat)
//	limits.Refuted(record)                               // the flood proved to be narrower
//
// It decides how fast, never how far: what a flood belongs to is decided by its caller. It
// knows nothing of requests, contexts and the wire, and starts no goroutine.
package adapt
