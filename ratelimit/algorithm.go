package ratelimit

// algorithm is the arithmetic of a rule. It has no state of its own, so that a set of a
// million gates shares one algorithm.
//
// All times are nanoseconds since just before the limiter's start, and more than 0.
type algorithm interface {
	// capacity is the most room that a gate can have.
	capacity() int64
	// most is the most that one call is charged, which may be more than the capacity.
	most() int64
	// due is since when there is room for cost, or when there will be at the earliest: if
	// all pending calls were settled now. It may lie far in the past.
	due(s state, cost, now int64) int64
	// take charges cost, which is counted as of the time due. due is when the call could have been admitted, at most a
	// timer's lateness before now.
	take(s state, cost, due, now int64) state
	// giveBack undoes a take of cost that was charged at the time taken. It gives back
	// nothing that time has given back already.
	giveBack(s state, cost, taken, now int64) state
	// tokens is what could be taken now.
	tokens(s state, now int64) float64
	// used is how much is used now.
	used(s state, now int64) Used
	// adopt takes over what is used by all processes. Of a window only the count is
	// known, not since when, and it stays as it is.
	adopt(s state, used Used, now int64) state
	// until is when nothing of what the gate has let through counts any more.
	until(s state) int64
	// inherit makes a state out of one of an algorithm of the same kind.
	inherit(old algorithm, s state, how Inheritance, now int64) state
}

// state is what a gate has let through. The zero state is that of a gate that has
// let nothing through.
type state struct {
	pending int64 // the cost of the calls that have begun and are not settled

	full  int64   // bucket: when it is full; while it is paused, how far it was from full
	calls []int64 // sliding window: when each call passed, oldest first; fixed: its begin and how many
}
