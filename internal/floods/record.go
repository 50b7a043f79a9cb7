package floods

import (
	"time"

	"github.com/weirtg/weir/flood"
)

// record is the state behind a [flood.Record]. The mutex of the tracker guards it.
type record struct {
	key
	place         // among those that end
	supports key  // the scope that it is listed for as evidence; zero: none
	owner    Call // the call whose flood set until
	kind     flood.Kind
	until    time.Time
	wait     time.Duration // from the flood that set until to until
	longest  time.Time     // the latest deadline of those that led to a guess; until may be earlier
	since    uint64        // number of the flood that set until; where two made the scope wider, of the earlier
	restored bool          // the deadline was not met here but came by Restore: it is no evidence
	why      string
	hits     int
	repeats  int  // floods in a row that calls met again
	vague    bool // the last flood carried no number

	probe      uint32    // number of the pass that goes first, 0: none
	probeUntil time.Time // until when the others wait for its answer
	nextProbe  time.Time // when the next call may probe a guess
	probed     int       // probes of the guess that were flooded
	waiting    int       // calls blocked in Wait that the record covers
}

// left returns how much of the wait is left, zero or less when it is over. It is
// never more than was ordered: a clock that is set back, and has no monotonic
// reading, does not make the flood longer than it is. The next sweep moves the deadline.
func (r *record) left(now time.Time) time.Duration { return min(r.until.Sub(now), r.wait) }

// forgetProbe is how long after its time a probe that was never answered is
// remembered, so that again one call goes first and not all that come.
const forgetProbe = time.Minute

// A guess that is longer than probeOver is probed: one call goes after firstProbe, and
// after each that was flooded another, probeGrowth times as long after the one before, up to
// lastProbe. A shorter guess is sat out by default, so it fails no call. Five seconds are few
// for a call that waits and many for a server; in an hour's flood there are nine probes.
//
// A guess that more than sureHits floods led to is hardly chance, and is probed only if
// it is longer than sureOver: a call into a flood can make it longer.
const (
	probeOver   = flood.DefaultThreshold
	sureHits    = 3
	sureOver    = time.Minute
	firstProbe  = 5 * time.Second
	probeGrowth = 4
	lastProbe   = 10 * time.Minute
)

// probeAfter is how long after the last probe the next one is, if so many were flooded.
func probeAfter(probed int) time.Duration {
	d := firstProbe
	for range min(probed, 10) {
		d = min(d*probeGrowth, lastProbe)
	}
	return d
}

// answerDue is how long the others still wait for the answer to the probe. It is 0 or less if
// there is none, or if it takes too long.
func (r *record) answerDue(now time.Time) time.Duration {
	if r.probe == 0 {
		return 0
	}
	return min(r.probeUntil.Sub(now), flood.FirstTimeout)
}

// free is how long it takes until a call may go: until the deadline, or until a guess is
// probed. 0 or less: it may go now, unless a probe is under way.
func (r *record) free(now time.Time) time.Duration {
	left, over := r.left(now), probeOver
	if r.hits > sureHits {
		over = sureOver
	}
	if r.inferred && r.wait > over {
		left = min(left, r.nextProbe.Sub(now), probeAfter(r.probed))
	}
	return left
}

// stands reports whether the record holds calls back: until the deadline, and
// then as long as calls wait for the probe. With nobody waiting it ends by itself.
func (r *record) stands(now time.Time) bool {
	return r.left(now) > 0 || r.waiting > 0 || r.probe != 0 && now.Sub(r.probeUntil) < forgetProbe
}

// linger is how long after its deadline a record is remembered, in case the flood comes back:
// for its length again, up to a minute or so, if it is a wait without a number or the
// account's.
func (r *record) linger() time.Duration {
	if r.vague || r.scope == flood.Account && !r.restored {
		return min(r.wait, flood.MinWait<<maxDoublings)
	}
	return 0
}

// dead reports whether nothing has to be remembered any more.
func (r *record) dead(now time.Time) bool {
	return r.left(now) <= -r.linger() && !r.stands(now)
}

// forgetAt is when the record is dead, if no call waits then.
func (r *record) forgetAt() time.Time {
	at := r.until.Add(r.linger())
	if r.probe != 0 {
		at = later(at, r.probeUntil.Add(forgetProbe))
	}
	return at
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
