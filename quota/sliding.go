package quota

// A hit is the time of a charge and the sum of all costs so far, its own included. With
// sums, the cost of a range of hits is a subtraction, and the time when there is room
// again is found by binary search. Sums may wrap around; their differences stay right.
const (
	slidingSize = headSize + 4 + 4
	hitSize     = 8 + 4
)

func (s State) hits() int    { return (len(s) - slidingSize) / hitSize }
func (s State) dropped() int { return int(le.Uint32(s[headSize:])) }

func (s State) hit(i int) []byte  { return s[slidingSize+i*hitSize:] }
func (s State) hitAt(i int) int64 { return int64(le.Uint64(s.hit(i))) }

// before returns the sum of all costs before a hit that is not dropped.
func (s State) before(i int) uint32 {
	if i == s.dropped() {
		return le.Uint32(s[headSize+4:])
	}
	return le.Uint32(s.hit(i - 1)[8:])
}

// search returns the first index in [i, j) for which past is true, or j.
func search(i, j int, past func(int) bool) int {
	for i < j {
		if m := int(uint(i+j) / 2); past(m) {
			j = m
		} else {
			i = m + 1
		}
	}
	return i
}

// sliding counts the hits that are less than a period old.
func (d *decision) sliding(s State) State {
	d.remaining, d.reset = d.limit, d.now
	var first, n int
	var used int64
	if len(s) > 0 {
		n = s.hits()
		first = search(s.dropped(), n, func(i int) bool { return s.hitAt(i)+d.period > d.now })
		used = int64(s.before(n) - s.before(first))
		d.remaining -= used
		if used > 0 {
			d.reset = s.hitAt(n-1) + d.period
		}
	}
	if over := used + d.cost - d.limit; over > 0 {
		start := s.before(first)
		last := search(first, n-1, func(i int) bool { return int64(s.before(i+1)-start) >= over })
		d.retry = max(1, s.hitAt(last)+d.period-d.now) // a damaged state could yield less
		return s
	}
	if !d.record {
		return s
	}
	at := d.now
	if first < n {
		at = max(at, s.hitAt(n-1))
	}
	d.remaining -= d.cost
	d.reset = at + d.period
	return s.add(first, at, uint32(d.cost), d.reset)
}

// add records a hit and drops those before first.
func (s State) add(first int, at int64, cost uint32, expires int64) State {
	if len(s) == 0 || first == s.hits() {
		s = s.head(Sliding, slidingSize+hitSize, expires)
		clear(s[headSize:slidingSize])
		le.PutUint64(s.hit(0), uint64(at))
		le.PutUint32(s.hit(0)[8:], cost)
		return s
	}
	le.PutUint64(s[1:], uint64(expires))
	start := s.before(first)
	le.PutUint32(s[headSize:], uint32(first))
	le.PutUint32(s[headSize+4:], start)

	n := s.hits()
	total := s.before(n) + cost
	if s.hitAt(n-1) == at {
		le.PutUint32(s.hit(n - 1)[8:], total)
		return s
	}
	// Dropped hits are removed once they are half of all, so that a charge to a large
	// window does not move all its hits.
	const short = 64
	if first > 0 && (n <= short || 2*first >= n) {
		s = s[:slidingSize+copy(s[slidingSize:], s.hit(first))]
		le.PutUint32(s[headSize:], 0)
	}
	s = le.AppendUint64(s, uint64(at))
	return le.AppendUint32(s, total)
}
