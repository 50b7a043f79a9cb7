package redisstore

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/weirtg/weir/ratelimit"
	"github.com/weirtg/weir/store"
)

// Take implements ratelimit.Shared, with one script.
//
// Processes that find no room at a gate are admitted in the order in which they first
// asked: Wait tells each when to come back, and a place is kept for it until 100 ms
// later. One that was admitted asks anew, behind the others. So they take turns, and
// each of N that contend gets an Nth of the gate.
//
// When a rule changes, what was charged still counts: the tokens of a bucket are
// carried over, and cut to the new burst.
//
// Times are whole microseconds. That of one token is rounded up: at a rate of 30/s,
// 0.002 % is lost; above 1,000,000/s the rate is 1,000,000/s.
func (s *Store) Take(ctx context.Context, charges []ratelimit.Charge) (bool, []ratelimit.Found, error) {
	const doing = "take"
	gates, err := gatesOf(charges)
	if err != nil {
		return false, nil, fmt.Errorf("redis store: %s: %w", doing, err)
	}
	keys, args := s.keysOf(gates), []any{s.process}
	for _, g := range gates {
		args = append(args, g.kind, g.limit, g.period, g.Cost, g.used(), s.back(g))
	}
	late := func(answer any) { s.returnLate(gates, answer) }
	began := time.Now()
	answer, err := s.run(ctx, doing, question{script: s.scripts.take, keys: keys, args: args, late: late})
	if err != nil {
		s.failed.Store(int64(time.Since(s.start)))
		return false, nil, err
	}
	lag := s.lag.Load()
	s.lag.Store(max(int64(time.Since(began)), lag-lag/16))
	got, err := s.numbers(doing, answer, 2+2*len(gates))
	if err != nil {
		return false, nil, err
	}
	admitted, at := got[0] == 1, got[1]
	found := make([]ratelimit.Found, len(gates))
	for i, g := range gates {
		f := got[2+2*i:]
		found[i].Wait = micros(f[0])
		if g.kind == bucket {
			found[i].Used.Refill = micros(f[1])
		} else {
			found[i].Used.Count = int(f[1])
		}
		if admitted {
			s.taken.add(taken{g.Gate, g.Key, g.Cost, at})
		}
	}
	return admitted, found, nil
}

// micros is so many microseconds, from none to what a Duration holds.
func micros(n int64) time.Duration {
	return time.Duration(min(max(n, 0), math.MaxInt64/1000)) * time.Microsecond
}

// returnLate gives back what was charged when nobody waited for the answer any more. It runs
// in the goroutine of the question.
func (s *Store) returnLate(gates []gate, answer any) {
	got, err := s.numbers("take", answer, 2+2*len(gates))
	if err != nil || got[0] != 1 {
		return
	}
	args := []any{}
	for _, g := range gates {
		args = append(args, g.kind, g.limit, g.period, g.Cost, got[1])
	}
	ctx, cancel := context.WithTimeout(s.life, s.connect+s.timeout)
	defer cancel()
	// What does not come back is refilled by time.
	_ = s.scripts.giveBack.Run(ctx, s.client, s.keysOf(gates), args...).Err()
}

// Patience implements ratelimit.Patient: a little more than the Timeout.
func (s *Store) Patience() time.Duration { return s.timeout + 100*time.Millisecond }

// GiveBack implements ratelimit.Shared. A bucket gets back what it has not refilled
// since, and a window what still counts in it. What this store has not taken, or so
// long ago that it has taken hundreds of others since, is not given back.
func (s *Store) GiveBack(ctx context.Context, charges []ratelimit.Charge) error {
	const doing = "give back"
	gates, err := gatesOf(charges)
	if err != nil {
		return fmt.Errorf("redis store: %s: %w", doing, err)
	}
	mine, args := gates[:0], []any{}
	for _, g := range gates {
		if at, ok := s.taken.remove(g.Gate, g.Key, g.Cost); ok {
			mine = append(mine, g)
			args = append(args, g.kind, g.limit, g.period, g.Cost, at)
		}
	}
	if len(mine) == 0 {
		return s.ready(ctx, doing)
	}
	_, err = s.run(ctx, doing, question{script: s.scripts.giveBack, keys: s.keysOf(mine), args: args})
	return err
}

// gate is a charge in the words of the scripts.
type gate struct {
	ratelimit.Charge
	kind   string
	limit  int
	period int64 // microseconds; of a bucket, what a token takes
}

const (
	bucket  = "bucket"
	sliding = "sliding"
)

func gatesOf(charges []ratelimit.Charge) ([]gate, error) {
	gates := make([]gate, len(charges))
	for i, c := range charges {
		g := gate{Charge: c}
		switch rule := c.Rule.(type) {
		case ratelimit.Limit:
			g.kind, g.limit = bucket, rule.Burst
			if !rule.Paused() {
				g.period = int64(math.Ceil(1e6 / rule.Rate))
			}
		case ratelimit.Window:
			g.kind, g.limit = windowKind(rule.Kind), rule.Limit
			g.period = int64((rule.Period + time.Microsecond - 1) / time.Microsecond)
		default:
			return nil, g.argument(i, "rule", fmt.Sprint(c.Rule), "a ratelimit.Limit or Window")
		}
		if err := c.Rule.Validate(); err != nil {
			return nil, g.argument(i, "rule", err.Error(), "one that is valid")
		}
		switch {
		case c.Rule.Paused():
			return nil, g.argument(i, "rule", c.Rule.String(), "one that is not paused")
		case c.Cost < 1 || c.Cost > g.most():
			return nil, g.argument(i, "cost", strconv.Itoa(c.Cost), fmt.Sprintf("1 to %d, the most that one call is charged", g.most()))
		}
		for _, other := range gates[:i] {
			if other.Gate == c.Gate && other.Key == c.Key {
				return nil, g.argument(i, "gate", strconv.Quote(c.Gate)+" once more", "each gate once")
			}
		}
		gates[i] = g
	}
	return gates, nil
}

// most is the most that one call is charged. The debt of a bucket is at most 100 years, as
// its refill is.
func (g gate) most() int {
	most := int64(ratelimit.MaxTimes)
	if g.kind == bucket {
		most = min(most, 100*365*24*time.Hour.Microseconds()/g.period)
	}
	return max(g.limit, int(most))
}

func windowKind(k ratelimit.WindowKind) string {
	switch k {
	case ratelimit.Sliding:
		return sliding
	case ratelimit.Aligned:
		return "aligned"
	default:
		return "first"
	}
}

func (g gate) argument(i int, field, value, want string) error {
	return &store.ArgumentError{Field: fmt.Sprintf("charges[%d].%s", i, field), Value: value, Want: want}
}

func (s *Store) keysOf(gates []gate) []string {
	keys := []string{s.clockKey()}
	for _, g := range gates {
		name := strconv.FormatUint(g.Key, 10) + ":" + g.Gate
		keys = append(keys, s.prefix+"gate:"+name)
		if g.kind == sliding {
			keys = append(keys, s.prefix+"hits:"+name)
		}
	}
	return keys
}

// used is how much the process knows to be used.
func (g gate) used() int64 {
	if g.kind == bucket {
		return max(0, g.Used.Refill.Microseconds())
	}
	return int64(min(max(0, g.Used.Count), g.most()))
}

// back is what the server is told of how late the process may be.
//
// A process reckons from when it got an answer, a little after the server had decided,
// and asks a little before the server decides. So of a bucket, a difference of two
// trips and what a busy machine adds is none. Of a window, a call that the process still
// counts may have left it, belong to the window before, or be one that it was told of:
// if the server knows of so many in the last two periods, it has lost none. But after
// the server was unavailable, the process may have admitted calls by itself, and then
// every call that it counts in the period counts.
func (s *Store) back(g gate) int64 {
	const busy = 10 * time.Millisecond
	late := (2*time.Duration(s.lag.Load()) + busy).Microseconds()
	if g.kind == bucket {
		return late
	}
	failed := s.failed.Load()
	if failed > 0 && time.Since(s.start)-time.Duration(failed) < time.Duration(g.period)*time.Microsecond {
		return g.period + min(late, g.period)
	}
	return 2 * g.period
}
