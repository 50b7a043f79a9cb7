package ratelimit

// history is what a window remembers: how much has passed and, if it slides, when.
type history struct {
	n     int32   // how much
	first int32   // where the ring starts
	times []int64 // when, oldest first; a fixed window has one, when it began
}

// Rings of the usual sizes lie in one piece with their history: what a window needs is
// one look into memory less away, and one object less for the garbage collector.
type (
	history1 struct {
		history
		ring [1]int64
	}
	history4 struct {
		history
		ring [4]int64
	}
	history20 struct {
		history
		ring [20]int64
	}
)

func newHistory(size int) *history {
	switch {
	case size <= 1:
		h := &history1{}
		h.times = h.ring[:]
		return &h.history
	case size <= 4:
		h := &history4{}
		h.times = h.ring[:]
		return &h.history
	case size <= 20:
		h := &history20{}
		h.times = h.ring[:]
		return &h.history
	default:
		return &history{times: make([]int64, size)}
	}
}

// at is the i-th oldest time.
func (h *history) at(i int32) int64 { return h.times[(h.first+i)%h.size()] }

func (h *history) size() int32 { return int32(len(h.times)) } // a window is no larger

// histories are those of a set. A state names its own by a number below 0 in place of a
// time, so that there are no pointers in a table of states, which the garbage collector
// then need not read.
type histories struct {
	all  []*history
	free []int32 // places in all
}

// of returns the history of a state, or nil.
func (k *histories) of(s *state) *history {
	if s.at >= 0 {
		return nil
	}
	return k.all[^s.at]
}

// set gives a state a history.
func (k *histories) set(s *state, h *history) {
	if s.at >= 0 {
		if n := len(k.free); n > 0 {
			s.at, k.free = ^int64(k.free[n-1]), k.free[:n-1]
		} else {
			s.at, k.all = ^int64(len(k.all)), append(k.all, nil)
		}
	}
	k.all[^s.at] = h
}

// drop makes a state one that has let nothing through.
func (k *histories) drop(s *state) {
	if s.at < 0 {
		k.all[^s.at] = nil
		if k.free = append(k.free, int32(^s.at)); len(k.free) == len(k.all) {
			k.all, k.free = nil, nil // a crowd has gone
		}
	}
	s.at = 0
}

// push adds a time. The ring grows as it is needed, up to the limit of the window.
func (k *histories) push(s *state, t, limit int64) {
	h := k.of(s)
	if h == nil {
		h = newHistory(4)
		k.set(s, h)
	} else if h.n == h.size() {
		grown := newHistory(max(int(h.n)+1, min(int(limit), max(20, 2*int(h.n)))))
		for i := range h.n {
			grown.times[i] = h.at(i)
		}
		grown.n = h.n
		k.set(s, grown)
		h = grown
	}
	h.times[(h.first+h.n)%h.size()] = t
	h.n++
}
