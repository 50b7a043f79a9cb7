package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/weirtg/weir/ratelimit"
	"github.com/weirtg/weir/store"
)

// memory is a Shared that several limiters of a test have in common. Times are whole
// nanoseconds since it was made.
type memory struct {
	start   time.Time
	latency time.Duration // of each way

	mu     sync.Mutex
	down   bool
	states map[string]*memoryState
	asks   int
	grants map[string][]int64 // by gate: when each token was taken, those given back included
	back   int                // tokens that were given back
}

type memoryState struct {
	full int64   // bucket
	hits []int64 // window, sliding
}

func newMemory(latency time.Duration) *memory {
	m := &memory{start: time.Now(), latency: latency}
	m.lose()
	return m
}

// lose makes it forget everything but what tests look at.
func (m *memory) lose() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.states = map[string]*memoryState{}
	if m.grants == nil {
		m.grants = map[string][]int64{}
	}
}

func (m *memory) setDown(down bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = down
}

func (m *memory) count() (asks, back int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asks, m.back
}

// reach takes the way there; it fails after 100 ms while the store is down.
func (m *memory) reach(ctx context.Context) error {
	m.mu.Lock()
	m.asks++
	down := m.down
	m.mu.Unlock()
	wait := m.latency
	if down {
		wait = 100 * time.Millisecond
	}
	select {
	case <-time.After(wait):
	case <-ctx.Done():
		return errors.Join(store.ErrUnavailable, ctx.Err())
	}
	if down {
		return fmt.Errorf("%w: it hangs", store.ErrUnavailable)
	}
	return nil
}

func (m *memory) Take(ctx context.Context, charges []ratelimit.Charge) (bool, []ratelimit.Found, error) {
	if err := m.reach(ctx); err != nil {
		return false, nil, err
	}
	defer time.Sleep(m.latency)
	m.mu.Lock()
	defer m.mu.Unlock()
	now := int64(time.Since(m.start))
	admitted := true
	found := make([]ratelimit.Found, len(charges))
	for i, c := range charges {
		if due := m.due(c, now); due > now {
			admitted, found[i].Wait = false, time.Duration(due-now)
		}
	}
	for i, c := range charges {
		s := m.state(c)
		if admitted {
			for range c.Cost {
				m.grants[c.Gate] = append(m.grants[c.Gate], now)
			}
		}
		switch rule := c.Rule.(type) {
		case ratelimit.Limit:
			if admitted {
				s.full = max(s.full, now) + int64(c.Cost)*interval(rule)
			}
			found[i].Used.Refill = time.Duration(max(0, s.full-now))
		case ratelimit.Window:
			if admitted {
				for range c.Cost {
					s.hits = append(s.hits, now)
				}
			}
			found[i].Used.Count = len(s.hits)
		}
	}
	return admitted, found, nil
}

func interval(l ratelimit.Limit) int64 { return int64(math.Ceil(1e9 / l.Rate)) }

func (m *memory) state(c ratelimit.Charge) *memoryState {
	key := fmt.Sprint(c.Gate, c.Key)
	if m.states[key] == nil {
		m.states[key] = &memoryState{}
	}
	return m.states[key]
}

// due makes the gate at least as used as the process says, and tells when there is room.
func (m *memory) due(c ratelimit.Charge, now int64) int64 {
	s := m.state(c)
	switch rule := c.Rule.(type) {
	case ratelimit.Limit:
		if used := now + int64(c.Used.Refill); used > s.full+2*int64(m.latency) {
			s.full = used
		}
		return s.full + (int64(c.Cost)-int64(rule.Burst))*interval(rule)
	case ratelimit.Window:
		late := 0
		for len(s.hits) > 0 && s.hits[0]+int64(rule.Period) <= now {
			if s.hits[0]+int64(rule.Period+2*m.latency) > now {
				late++ // the process may not know yet
			}
			s.hits = s.hits[1:]
		}
		for len(s.hits)+late < c.Used.Count {
			s.hits = append(s.hits, now)
		}
		if over := len(s.hits) + c.Cost - rule.Limit; over > 0 {
			return s.hits[over-1] + int64(rule.Period)
		}
	}
	return now
}

func (m *memory) GiveBack(ctx context.Context, charges []ratelimit.Charge) error {
	if err := m.reach(ctx); err != nil {
		return err
	}
	defer time.Sleep(m.latency)
	m.mu.Lock()
	defer m.mu.Unlock()
	now := int64(time.Since(m.start))
	for _, c := range charges {
		s := m.state(c)
		m.back += c.Cost
		if rule, ok := c.Rule.(ratelimit.Limit); ok {
			s.full = max(now, s.full-int64(c.Cost)*interval(rule))
		} else {
			s.hits = s.hits[:max(0, len(s.hits)-c.Cost)]
		}
	}
	return nil
}

// most is the largest number of grants of a gate that exceeds its limit in any interval,
// 0 if none does.
func (m *memory) excess(gate string, l ratelimit.Limit) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	worst := 0.0
	grants := m.grants[gate]
	for i := range grants {
		for j := i; j < len(grants); j++ {
			earned := float64(grants[j]-grants[i]) / 1e9 * l.Rate
			worst = max(worst, float64(j-i+1)-float64(l.Burst)-earned)
		}
	}
	return math.Floor(worst*1e6) / 1e6
}

// agreeing is a Shared that has no other process: it says yes.
type agreeing struct{}

func (agreeing) Take(_ context.Context, charges []ratelimit.Charge) (bool, []ratelimit.Found, error) {
	found := make([]ratelimit.Found, len(charges))
	for i, c := range charges {
		found[i].Used = c.Used
		if rule, ok := c.Rule.(ratelimit.Limit); ok {
			found[i].Used.Refill += time.Duration(int64(c.Cost) * interval(rule))
		} else {
			found[i].Used.Count += c.Cost
		}
	}
	return true, found, nil
}

func (agreeing) GiveBack(context.Context, []ratelimit.Charge) error { return nil }
