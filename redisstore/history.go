package redisstore

import "sync"

// taken is what was taken of a gate, and when by the server's clock.
type taken struct {
	gate string
	key  uint64
	cost int
	at   int64
}

// history remembers the last takes: to undo one, its time has to be known, and what is
// given back is given back at once or not at all.
type history struct {
	mu   sync.Mutex
	last [512]taken
	next int
}

func (h *history) add(t taken) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last[h.next] = t
	h.next = (h.next + 1) % len(h.last)
}

// remove forgets the latest take of a gate, of so much at least, and returns its time.
func (h *history) remove(gate string, key uint64, cost int) (at int64, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.last {
		t := &h.last[(h.next-1-i+2*len(h.last))%len(h.last)]
		if t.at > 0 && t.gate == gate && t.key == key && t.cost >= cost {
			at = t.at
			*t = taken{}
			return at, true
		}
	}
	return 0, false
}
