package quota

import "math/bits"

// The state of a bucket is the time when it is full, which is when the state expires. A
// token may take a fractional number of microseconds, so the time has a fraction whose
// denominator is the limit. The expiry is the time rounded up.

func (s State) fraction() int64     { return int64(le.Uint32(s[headSize:])) }
func (s State) bucketLimit() int64  { return int64(le.Uint32(s[headSize+4:])) }
func (s State) bucketPeriod() int64 { return int64(le.Uint64(s[headSize+8:])) }

// debt is the time until a bucket is full, in microseconds: whole + part/limit.
type debt struct{ whole, part int64 }

// owe returns the debt after n more tokens are taken, where n is at most the limit. No
// product exceeds 2^53, so Redis's Lua, which has only floating point, gets the same
// result.
func (b debt) owe(n, limit, period int64) debt {
	part := n*(period%limit) + b.part
	return debt{whole: b.whole + n*(period/limit) + part/limit, part: part % limit}
}

// up returns the debt in microseconds, rounded up.
func (b debt) up() int64 {
	if b.part > 0 {
		return b.whole + 1
	}
	return b.whole
}

// left returns the number of whole tokens in a bucket with a debt.
func (b debt) left(limit, period int64) int64 {
	if b.up() > period {
		return 0
	}
	hi, lo := bits.Mul64(uint64(period-b.whole), uint64(limit))
	lo, borrow := bits.Sub64(lo, uint64(b.part), 0)
	left, _ := bits.Div64(hi-borrow, lo, uint64(period))
	return int64(left)
}

// bucket takes tokens from a token bucket. If the limit or the period has changed since
// the last charge, the bucket misses as many whole tokens as before, or all of them if
// the new limit is lower.
func (d *decision) bucket(s State) State {
	var owed debt
	if len(s) > 0 {
		owed = debt{whole: s.expires() - d.now, part: s.fraction()}
		if owed.part > 0 {
			owed.whole--
		}
		if l, p := s.bucketLimit(), s.bucketPeriod(); l != d.limit || p != d.period {
			missing := min(l-owed.left(l, p), d.limit)
			owed = debt{}.owe(missing, d.limit, d.period)
		}
	}
	then := owed.owe(d.cost, d.limit, d.period)
	switch {
	case then.up() > d.period:
		d.retry = then.up() - d.period
	case d.record:
		owed = then
		s = s.head(Bucket, bucketSize, d.now+then.up())
		le.PutUint32(s[headSize:], uint32(then.part))
		le.PutUint32(s[headSize+4:], uint32(d.limit))
		le.PutUint64(s[headSize+8:], uint64(d.period))
	}
	d.remaining, d.reset = owed.left(d.limit, d.period), d.now+owed.up()
	return s
}
