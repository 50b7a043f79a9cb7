package quota

import (
	"encoding/binary"
	"errors"
	"math"
	"time"
)

// State is what a store keeps for one key and one kind of window. Only authors of a
// [Store] need it. The format of its bytes does not change. An empty State means that
// nothing was charged.
//
// Times are whole microseconds since the Unix epoch, the resolution of a Redis server's
// clock.
type State []byte

// ErrState is matched by the error for a state that is damaged or of another kind.
var ErrState = errors.New("not a state of this kind of window")

// A state is its kind, the time when it expires, and then, by kind,
//
//	counter (Aligned, FirstHit)  time, used
//	bucket                       fraction, limit, period
//	sliding                      hits dropped, total before the first that is left, hits
//
// all little-endian.
const (
	headSize    = 1 + 8
	counterSize = headSize + 8 + 4
	bucketSize  = headSize + 4 + 4 + 8
)

var le = binary.LittleEndian

// maxTime is later than any time and leaves room for additions.
const maxTime = 1 << 61

// Decide decides a request at a time, and returns the result and the state after it.
// The new state may share the memory of s, so s must not be used any longer, as with
// append. If the request is not recorded, s is not changed, and the new state is s, or
// empty if s has expired.
//
// The request must be valid, see [Request.Validate]. The time should not be before that
// of an earlier decision; if it is, the later charges still count, unless they are more
// than a period ahead: such a state is damaged and counts as empty. The error matches
// [ErrState].
func (s State) Decide(r Request, now time.Time) (Result, State, error) {
	if !s.valid(r.Window.Kind) {
		return Result{}, s, ErrState
	}
	d := decision{
		limit:  int64(r.Window.Limit),
		period: r.Window.Period.Microseconds(),
		cost:   int64(r.Cost),
		record: r.Record,
		now:    min(max(0, now.UnixMicro()), maxTime/2),
	}
	if s.Expired(now) || s.ahead(r.Window.Kind, d.now, d.period) {
		s = s[:0]
	}
	switch r.Window.Kind {
	case Sliding:
		s = d.sliding(s)
	case Bucket:
		s = d.bucket(s)
	default:
		s = d.counter(s, r.Window.Kind)
	}
	return Result{
		Limited:    d.retry > 0,
		Remaining:  int(max(0, d.remaining)),
		ResetAt:    time.UnixMicro(d.reset),
		RetryAfter: time.Duration(min(d.retry, math.MaxInt64/1000)) * time.Microsecond,
	}, s, nil
}

// ahead reports whether s was charged more than a period from now. Such a state is damaged,
// or a clock was far wrong, and it would lock the key until that time.
func (s State) ahead(k Kind, now, period int64) bool {
	if len(s) == 0 {
		return false
	}
	var at int64
	switch k {
	case Sliding:
		at = s.hitAt(s.hits() - 1)
	case Bucket:
		at = s.expires() - s.bucketPeriod()
	default:
		at = s.time()
	}
	return at > now+period
}

// Expired reports whether nothing in the state counts any more. A store should delete
// such a state. Decide treats it as empty, even if the window has become longer.
func (s State) Expired(now time.Time) bool {
	return len(s) < headSize || s.expires() <= now.UnixMicro()
}

func (s State) expires() int64 { return int64(le.Uint64(s[1:])) }

// valid reports whether s can be decoded. It does not check each hit.
func (s State) valid(k Kind) bool {
	if len(s) == 0 {
		return true
	}
	if len(s) < headSize || s[0] != byte(k) || s.expires() < 0 || s.expires() > maxTime {
		return false
	}
	switch k {
	case Sliding:
		return len(s) > slidingSize && (len(s)-slidingSize)%hitSize == 0 && s.dropped() < s.hits() &&
			s.hitAt(s.hits()-1) >= 0 && s.hitAt(s.hits()-1) <= s.expires()
	case Bucket:
		return len(s) == bucketSize && s.bucketLimit() > 0 && s.bucketLimit() <= MaxLimit &&
			s.fraction() < s.bucketLimit() && s.bucketPeriod() > 0 && s.bucketPeriod() <= MaxPeriod.Microseconds()
	default:
		return len(s) == counterSize && s.used() <= MaxLimit && s.time() >= 0 && s.time() <= s.expires()
	}
}

// decision is a request in whole numbers, and its outcome.
type decision struct {
	limit, period, cost int64
	record              bool
	now                 int64

	remaining, reset int64
	retry            int64 // 0 if there is room
}

// head turns s into a state of a kind and a size, in place if its capacity suffices.
func (s State) head(k Kind, size int, expires int64) State {
	if cap(s) < size {
		s = make(State, size)
	}
	s = s[:size]
	s[0] = byte(k)
	le.PutUint64(s[1:], uint64(expires))
	return s
}
