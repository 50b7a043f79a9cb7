package ratelimit

// algorithm is the arithmetic of a rule. It keeps what it knows of one gate in a
// state, so that a set of a million gates shares one algorithm.
//
// All times are nanoseconds since the limiter's start.
type algorithm interface {
	// capacity is the most that one call may cost.
	capacity() int64
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
	// horizon is how long after it was last touched a state is as good as new.
	horizon() int64
	// inherit makes a state out of one that an algorithm of the same kind has kept.
	inherit(old algorithm, s *state, how Inheritance, now int64)
}

// state is what a gate has let through. The zero state is that of a gate that has
// let nothing through.
type state struct {
	at   int64    // bucket: when it is full; fixed window: when it began
	hits *history // windows only
}

// history is what a window remembers.
type history struct {
	n     int64   // how much has passed: in a fixed window, or times in the ring
	first int64   // sliding window: where the ring starts
	times []int64 // sliding window: when it passed, oldest first
}
