package localdc

import "time"

// bucket is a token bucket kept as one moment: when it will be full again.
// Moments are offsets from the start of the Cloud.
type bucket struct {
	token time.Duration // in which one token comes back; 0: no limit
	burst int
	full  time.Duration
}

func newBucket(r Rate) bucket { return bucket{token: r.tokenTime(), burst: r.Burst} }

// wait is how long until n tokens are there; 0 when they are.
func (b *bucket) wait(now time.Duration, n int) time.Duration {
	n = min(n, b.burst)
	missing := max(b.full, now) - now
	return max(0, missing+time.Duration(n-b.burst)*b.token)
}

func (b *bucket) take(now time.Duration, n int) {
	b.full = max(b.full, now) + time.Duration(n)*b.token
}

// retune changes the rate and carries over the tokens that are there, cut to
// the new burst: no change grants a fresh burst.
func (b *bucket) retune(now time.Duration, r Rate) {
	next := newBucket(r)
	if b.token > 0 && next.token > 0 {
		missing := float64(max(b.full, now)-now) / float64(b.token)
		tokens := min(float64(b.burst)-missing, float64(next.burst))
		next.full = now + time.Duration((float64(next.burst)-tokens)*float64(next.token))
	}
	*b = next
}

// window is an exact sliding window: the moments of what is inside it.
type window struct {
	limit  int // 0: no limit
	period time.Duration
	hits   []time.Duration // ascending
}

func newWindow(w Window) window { return window{limit: w.Limit, period: w.Period} }

// prune forgets what has left the window.
func (w *window) prune(now time.Duration) {
	gone := 0
	for gone < len(w.hits) && w.hits[gone]+w.period <= now {
		gone++
	}
	w.hits = w.hits[gone:]
}

// wait is how long until there is room for n; 0 when there is.
func (w *window) wait(now time.Duration, n int) time.Duration {
	if w.limit == 0 {
		return 0
	}
	w.prune(now)
	leave := len(w.hits) + min(n, w.limit) - w.limit
	if leave <= 0 {
		return 0
	}
	return w.hits[leave-1] + w.period - now
}

func (w *window) take(now time.Duration, n int) {
	if w.limit == 0 {
		return
	}
	for range n {
		w.hits = append(w.hits, now)
	}
}

// retune changes limit and period; what is inside stays inside.
func (w *window) retune(next Window) { w.limit, w.period = next.Limit, next.Period }
