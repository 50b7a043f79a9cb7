package flood

import "time"

// Record is a flood as it stands. As JSON it outlives the process, see
// [Book.Restore].
type Record struct {
	DC     int       `json:"dc,omitempty"`
	Method string    `json:"method,omitempty"` // empty when Scope is Account
	Chat   int64     `json:"chat,omitempty"`   // 0 unless Scope is Chat
	Reads  bool      `json:"reads,omitempty"`  // which half of the account, when Scope is Account
	Kind   Kind      `json:"kind"`             // of the flood that set Until
	Scope  Scope     `json:"scope"`
	Until  time.Time `json:"until,omitzero"` // zero where [Book.Changes] tells of one that ended early
	// Wait is Until reckoned from the flood that set it: what is left is never more,
	// whatever becomes of the clock.
	Wait time.Duration `json:"wait_ns,omitempty"`
	Hits int           `json:"hits,omitempty"` // floods so far, those included that changed nothing
	// Repeats says how often in a row the flood was met again right after its deadline,
	// see the package's page. Each makes the next hold longer.
	Repeats int `json:"repeats,omitempty"`
	// Inferred: the server did not say that the flood reaches so far. A guess lasts no longer
	// than the shortest of the floods that led to it, one call is let through now and then, and
	// requests for missed updates are not held. The account's is always a guess.
	Inferred bool   `json:"inferred,omitempty"`
	Why      string `json:"why,omitempty"` // what led to the guess; empty unless Inferred
	// Waiting is the number of calls held back by the record, in this process.
	Waiting int `json:"waiting,omitempty"`

	// Widened, News and Again are set by [Book.Flooded] only. Widened: this flood made
	// the scope wider than it was. News: the flood is new, wider, or lasts at
	// least a second longer than was known. What is no news need not be logged:
	// file parts are flooded by the dozen. Again: when the flooded call itself may go
	// again, later than Until if its own chat is held for longer than the wider scope.
	Widened bool      `json:"-"`
	News    bool      `json:"-"`
	Again   time.Time `json:"-"`
}

// record is the state behind a Record. The mutex of the book guards it.
type record struct {
	key
	owner    Call // the call whose flood set until
	kind     Kind
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
	waiting  int       // calls blocked in Enter that the record covers
}

// left returns how much of the wait is left, zero or less when it is over. It is
// never more than was ordered: a clock that is set back, and has no monotonic
// reading, does not make the flood longer than it is. The next sweep moves the deadline.
func (r *record) left(now time.Time) time.Duration { return min(r.until.Sub(now), r.wait) }

// FirstTimeout is how long the call that goes first after a deadline, or looks whether a
// guess is right, keeps the others waiting. If it is not answered by then, another goes.
// It is after 5 s without an acknowledgement that gotd takes a request for lost and
// sends it again.
const FirstTimeout = 5 * time.Second

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
	peekOver   = DefaultThreshold
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
	return min(r.turn.Sub(now), FirstTimeout)
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
	if r.vague || r.scope == Account && !r.restored {
		linger = min(r.wait, MinWait<<maxDoublings)
	}
	return r.left(now) <= -linger && !r.stands(now)
}

func (r *record) public() Record {
	pub := Record{
		DC: r.dc, Kind: r.kind, Scope: r.scope, Until: r.until, Wait: r.wait,
		Hits: r.hits, Repeats: r.repeats, Inferred: r.inferred, Why: r.why, Waiting: r.waiting,
	}
	switch r.scope {
	case Chat:
		pub.Method, pub.Chat = r.owner.Method, r.chat
	case Method:
		pub.Method = r.method
	case Account:
		pub.Reads = r.reads
	}
	return pub
}
