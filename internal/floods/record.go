package floods

import (
	"time"

	"github.com/weirtg/weir/flood"
)

// record is the state behind a [flood.Record]. The mutex of the tracker guards it.
type record struct {
	key
	owner    Call // the call whose flood set until
	kind     flood.Kind
	until    time.Time
	wait     time.Duration // until, reckoned from the flood that set it
	longest  time.Time     // the last deadline of those that led to a guess, which until may be short of
	since    uint64        // number of the flood that set until; where two made the scope wider, of the earlier
	restored bool          // the deadline was not met here but told by Restore: it is no evidence
	why      string
	hits     int
	repeats  int       // floods in a row that calls met again
	vague    bool      // the last flood carried no number
	probe    uint64    // the pass that goes first, 0: none
	turn     time.Time // until when the others wait for its answer
	peek     time.Time // when the next call may look whether a guess is right
	peeks    int       // calls that looked and were flooded
	waiting  int       // calls blocked in Wait that the record covers
}

// left returns how much of the wait is left, zero or less when it is over. It is
// never more than was ordered: a clock that is set back, and has no monotonic
// reading, does not make the flood longer than it is. The next sweep moves the deadline.
func (r *record) left(now time.Time) time.Duration { return min(r.until.Sub(now), r.wait) }

// forgetFirst is how long after its time a call that went first and was never answered is
// remembered, so that again one goes first and not all that come.
const forgetFirst = time.Minute

// A guess that is longer than peekOver is looked into: one call goes after peekFirst, and
// after each that was flooded another, peekGrowth times as long after the one before, up to
// peekMost. A shorter guess is sat out by default, so it fails no call. Five seconds are few
// for a call that waits and many for a server; in an hour's flood there are nine such calls.
//
// A guess that more than peekDoubt floods led to is hardly chance, and is looked into only if
// it is longer than peekSure: a call into a flood can make it longer.
const (
	peekOver   = flood.DefaultThreshold
	peekDoubt  = 3
	peekSure   = time.Minute
	peekFirst  = 5 * time.Second
	peekGrowth = 4
	peekMost   = 10 * time.Minute
)

// peekAfter is how long after the last look the next one is, if so many were flooded.
func peekAfter(peeks int) time.Duration {
	d := peekFirst
	for range min(peeks, 10) {
		d = min(d*peekGrowth, peekMost)
	}
	return d
}

// first is how long the others still wait for the answer to the call that goes first, 0 or
// less if none does, or it takes too long.
func (r *record) first(now time.Time) time.Duration {
	if r.probe == 0 {
		return 0
	}
	return min(r.turn.Sub(now), flood.FirstTimeout)
}

// free is how long it takes until a call may go: until the deadline, or until a guess is
// looked into. 0 or less: it may go now, but for another one that goes first.
func (r *record) free(now time.Time) time.Duration {
	left, over := r.left(now), peekOver
	if r.hits > peekDoubt {
		over = peekSure
	}
	if r.inferred && r.wait > over {
		left = min(left, r.peek.Sub(now), peekAfter(r.peeks))
	}
	return left
}

// stands reports whether the record holds calls back: until the deadline, and
// then as long as calls wait for the one that goes first. With nobody waiting it
// ends by itself.
func (r *record) stands(now time.Time) bool {
	return r.left(now) > 0 || r.waiting > 0 || r.probe != 0 && now.Sub(r.turn) < forgetFirst
}

// dead reports whether nothing has to be remembered any more. A wait without a
// number, and one of the account, is remembered for its length again, up to a minute or
// so, in case it comes back.
func (r *record) dead(now time.Time) bool {
	linger := time.Duration(0)
	if r.vague || r.scope == flood.Account && !r.restored {
		linger = min(r.wait, flood.MinWait<<maxDoublings)
	}
	return r.left(now) <= -linger && !r.stands(now)
}

func (r *record) public() flood.Record {
	pub := flood.Record{
		DC: r.dc, Kind: r.kind, Scope: r.scope, Until: r.until, Wait: r.wait,
		Hits: r.hits, Repeats: r.repeats, Inferred: r.inferred, Why: r.why, Waiting: r.waiting,
	}
	switch r.scope {
	case flood.Chat:
		pub.Method, pub.Chat = r.owner.Method, r.chat
	case flood.Method:
		pub.Method = r.method
	case flood.Account:
		pub.Reads = r.reads
	}
	return pub
}
