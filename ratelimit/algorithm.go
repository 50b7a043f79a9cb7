package ratelimit

// algorithm is the arithmetic of a rule. It keeps what it knows of one gate in a
// state, so that a set of a million gates shares one algorithm.
//
// All times are nanoseconds since just before the limiter's start, and more than 0.
type algorithm interface {
	// capacity is the most that one call may cost.
	capacity() int64
	// most is the most that one call is charged, which may be more than the capacity.
	most() int64
	// due is since when there is room for cost, or when there will be. It may lie
	// far in the past.
	due(s *state, cost, now int64) int64
	// take charges cost. due is when the call could have been admitted, at most a
	// timer's lateness before now.
	take(s *state, cost, due, now int64)
	// giveBack undoes a take of cost that was charged at the time taken. It gives back
	// nothing that time has given back already.
	giveBack(s *state, cost, taken, now int64)
	// tokens is what could be taken now.
	tokens(s *state, now int64) float64
	// used is how much of it is used now.
	used(s *state, now int64) Used
	// adopt takes over what is used by all processes. Of a window only the count is
	// known, not since when, and it stays as it is.
	adopt(s *state, used Used, now int64)
	// forget reports whether nothing of what a state has let through counts any more, and
	// then leaves nothing of it elsewhere: the state may be thrown away.
	forget(s *state, now int64) bool
	// inherit makes a state out of one that an algorithm of the same kind has kept.
	inherit(old algorithm, s *state, how Inheritance, now int64)
}

// state is what a gate has let through. The zero state is that of a gate that has
// let nothing through.
//
// A sliding window of which one call counts at most needs no history: at is the call,
// or 0. So a chat that is seldom used lies in one piece, where a look at a history would
// be a second wait for memory.
type state struct {
	at int64 // bucket: when it is full; window: the only call, or below 0 which of the histories it has
}
