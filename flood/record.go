package flood

import "time"

// Record is a flood as it stands.
type Record struct {
	DC     int
	Method string // empty when Scope is Account
	Chat   int64  // 0 unless Scope is Chat
	Reads  bool   // which half of the account, when Scope is Account
	Kind   Kind   // of the flood that set Until
	Scope  Scope
	Until  time.Time
	Hits   int    // floods so far, those included that changed nothing
	Why    string // what led to a scope wider than the flood's own; else empty
	// Waiting is the number of calls held back by the record.
	Waiting int

	// Widened and News are set by [Book.Flooded] only. Widened: this flood made
	// the scope wider than it was. News: the flood is new, wider, or lasts at
	// least a second longer than was known. What is no news need not be logged:
	// file parts are flooded by the dozen.
	Widened, News bool
}

// record is the state behind a Record. The mutex of the book guards it.
type record struct {
	key
	owner    Call // the call whose flood set until
	kind     Kind
	until    time.Time
	wait     time.Duration // until, reckoned from the flood that set it
	since    uint64        // number of the flood that set until; where two made the scope wider, of the earlier
	inferred bool          // the scope was widened, by evidence that a call let through can still refute
	why      string
	hits     int
	streak   int    // floods in a row that carried no number
	probe    uint64 // the pass that goes first, 0: none
	waiting  int    // calls blocked in Enter that the record covers
}

// left returns how much of the wait is left, zero or less when it is over. It is
// never more than was ordered: a clock that is set back, and has no monotonic
// reading, does not make the flood longer than it is.
func (r *record) left(now time.Time) time.Duration {
	left := r.until.Sub(now)
	if left > r.wait {
		r.until, left = now.Add(r.wait), r.wait
	}
	return left
}

// stands reports whether the record holds calls back: until the deadline, and
// then as long as calls wait for the one that goes first. With nobody waiting it
// ends by itself.
func (r *record) stands(now time.Time) bool {
	return r.left(now) > 0 || r.probe != 0 || r.waiting > 0
}

// dead reports whether nothing has to be remembered any more. A wait without a
// number is remembered for its length again, to grow when it comes back.
func (r *record) dead(now time.Time) bool {
	linger := time.Duration(0)
	if r.streak > 0 {
		linger = r.wait
	}
	return r.left(now) <= -linger && !r.stands(now)
}

func (r *record) public() Record {
	pub := Record{
		DC: r.dc, Kind: r.kind, Scope: r.scope, Until: r.until,
		Hits: r.hits, Why: r.why, Waiting: r.waiting,
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
