package quota

func (s State) time() int64 { return int64(le.Uint64(s[headSize:])) }
func (s State) used() int64 { return int64(le.Uint32(s[headSize+8:])) }

// counter decides by a count and one time. For Aligned, it is the time of the last
// charge, which tells whether that was in this period. For FirstHit, it is the time of
// the first charge, at which the period began.
func (d *decision) counter(s State, k Kind) State {
	var used int64
	at, end := d.now, d.now+d.period
	if k == Aligned {
		end -= d.now % d.period
	}
	if len(s) > 0 {
		switch {
		case k == Aligned && s.time() >= end-d.period:
			used, at = s.used(), max(at, s.time())
		case k == FirstHit && s.time()+d.period > d.now:
			used, at, end = s.used(), s.time(), s.time()+d.period
		}
	}
	d.remaining, d.reset = d.limit-used, end
	switch {
	case used+d.cost > d.limit:
		d.retry = end - d.now
	case d.record:
		used += d.cost
		d.remaining -= d.cost
		s = s.head(k, counterSize, end)
		le.PutUint64(s[headSize:], uint64(at))
		le.PutUint32(s[headSize+8:], uint32(used))
	}
	if used == 0 {
		d.reset = d.now
	}
	return s
}
