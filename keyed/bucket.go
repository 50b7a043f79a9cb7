package keyed

import "math/bits"

// A bucket is one time: when it is full. That is the state's expiry. Since a token may
// take no whole number of microseconds, there is a fraction to it, whose denominator
// is the limit: it is full at expires, or a part of a microsecond sooner.

func (s State) fraction() int64     { return int64(le.Uint32(s[headSize:])) }
func (s State) bucketLimit() int64  { return int64(le.Uint32(s[headSize+4:])) }
func (s State) bucketPeriod() int64 { return int64(le.Uint64(s[headSize+8:])) }

// debt is for how long a bucket will not be full: whole microseconds and parts of one,
// each 1/limit.
type debt struct{ whole, part int64 }

// owe is the debt after n more tokens were taken, n at most the limit. No product in it
// exceeds 2^53, so that it can be reckoned exactly in floating point as well.
func (b debt) owe(n, limit, period int64) debt {
	part := n*(period%limit) + b.part
	return debt{whole: b.whole + n*(period/limit) + part/limit, part: part % limit}
}

// up is the debt in microseconds, rounded up.
func (b debt) up() int64 {
	if b.part > 0 {
		return b.whole + 1
	}
	return b.whole
}

// left is the number of whole tokens in a bucket with a debt: the most for which owe
// does not exceed the period.
func (b debt) left(limit, period int64) int64 {
	if b.up() > period {
		return 0
	}
	hi, lo := bits.Mul64(uint64(period-b.whole), uint64(limit))
	lo, borrow := bits.Sub64(lo, uint64(b.part), 0)
	left, _ := bits.Div64(hi-borrow, lo, uint64(period))
	return int64(left)
}

// bucket takes tokens. What was charged under another limit or period is converted in
// whole tokens: as many are missing as before, but no more than there can be.
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
