package ratelimit

// history is what a window remembers: how much has passed and, if it slides, when.
type history struct {
	n     int32   // how much
	first int32   // where the ring starts
	times []int64 // when, oldest first
}

// Rings of the usual sizes lie in one piece with their history: what a window needs is
// one look into memory less away, and one object less for the garbage collector.
type (
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

// push adds a time. The ring grows as it is needed, up to the limit of the window.
func (s *state) push(t, limit int64) {
	h := s.hits
	if h == nil || h.n == h.size() {
		size := 4
		if h != nil && h.n > 0 {
			size = max(int(h.n)+1, min(int(limit), max(20, 2*int(h.n))))
		}
		grown := newHistory(size)
		if h != nil {
			for i := range h.n {
				grown.times[i] = h.at(i)
			}
			grown.n = h.n
		}
		s.hits, h = grown, grown
	}
	h.times[(h.first+h.n)%h.size()] = t
	h.n++
}
