package redisstore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weirtg/weir/ratelimit"
)

// model is a gate as one process sees it, reckoned the long way: every unit that was
// taken is a time.
type model struct {
	rule ratelimit.Rule
	hits []int64 // windows, microseconds
	full int64   // buckets
}

func period(r ratelimit.Rule) int64 {
	if l, ok := r.(ratelimit.Limit); ok {
		return int64(1e6 / l.Rate)
	}
	return r.(ratelimit.Window).Period.Microseconds()
}

// begin is since when hits count.
func (m *model) begin(now int64) int64 {
	p := period(m.rule)
	switch m.rule.(ratelimit.Window).Kind {
	case ratelimit.Sliding:
		return now - p + 1
	case ratelimit.Aligned:
		return now - now%p
	default:
		begin := now
		for i, at := range m.hits {
			if i == 0 || at >= begin+p {
				begin = at
			}
		}
		if now >= begin+p {
			return now
		}
		return begin
	}
}

func (m *model) counts(now int64) (n int) {
	for _, at := range m.hits {
		if at >= m.begin(now) {
			n++
		}
	}
	return n
}

// room reports whether there is room for cost at a time, if nothing is taken until then.
func (m *model) room(cost int, at int64) bool {
	cost = min(cost, capacity(m.rule)) // all of it is charged, but no more than that has to be there
	if l, ok := m.rule.(ratelimit.Limit); ok {
		return max(0, m.full-at)+int64(cost)*period(l) <= int64(l.Burst)*period(l)
	}
	return m.counts(at)+cost <= m.rule.(ratelimit.Window).Limit
}

func (m *model) take(cost int, at int64) {
	m.full = max(m.full, at) + int64(cost)*period(m.rule)
	for range cost {
		m.hits = append(m.hits, at)
	}
}

func (m *model) used(now int64) ratelimit.Used {
	if _, ok := m.rule.(ratelimit.Limit); ok {
		return ratelimit.Used{Refill: time.Duration(max(0, m.full-now)) * time.Microsecond}
	}
	return ratelimit.Used{Count: m.counts(now)}
}

func rules() *rapid.Generator[ratelimit.Rule] {
	return rapid.Custom(func(t *rapid.T) ratelimit.Rule {
		limit := rapid.OneOf(rapid.IntRange(1, 5), rapid.IntRange(60, 200)).Draw(t, "limit")
		if kind := rapid.IntRange(0, 3).Draw(t, "kind"); kind < 3 {
			p := time.Duration(rapid.IntRange(1, 30).Draw(t, "period")) * time.Millisecond
			return ratelimit.Window{Limit: limit, Period: p, Kind: ratelimit.WindowKind(kind)}
		}
		return perSecond(rapid.SampledFrom([]float64{1, 10, 50, 1000}).Draw(t, "rate"), limit)
	})
}

// One process alone is admitted as the model says, and comes back exactly when it is
// told to.
func TestTakeDoesAsTheModelDoes(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		s := w.open(t)
		program := 0
		rapid.Check(t, func(rt *rapid.T) {
			program++
			var gates []*model
			for range rapid.IntRange(1, 3).Draw(rt, "gates") {
				gates = append(gates, &model{rule: rules().Draw(rt, "rule")})
			}
			var wait time.Duration
			var last []ratelimit.Charge
			for range rapid.IntRange(1, 30).Draw(rt, "steps") {
				switch rapid.IntRange(0, 6).Draw(rt, "do") {
				case 0:
					w.advance(t, time.Duration(rapid.IntRange(1, 40_000).Draw(rt, "pass"))*time.Microsecond)
				case 1:
					w.advance(t, wait)
				case 2:
					w.advance(t, max(0, wait-time.Microsecond))
				case 3:
					if last == nil {
						continue
					}
					if err := s.GiveBack(context.Background(), last); err != nil {
						rt.Fatal(err)
					}
					for _, c := range last {
						m := gates[c.Key]
						m.hits = m.hits[:len(m.hits)-c.Cost]
						m.full -= int64(c.Cost) * period(m.rule)
					}
				default:
					now := w.time.UnixMicro()
					var charges []ratelimit.Charge
					want, soon := true, int64(0)
					for i, m := range gates {
						c := charge(fmt.Sprint(program), m.rule, 1)
						c.Key = uint64(i)
						c.Cost = rapid.OneOf(rapid.Just(1), rapid.IntRange(1, capacity(m.rule)), rapid.IntRange(1, 3*capacity(m.rule))).Draw(rt, "cost")
						c.Used = m.used(now)
						charges = append(charges, c)
						want = want && m.room(c.Cost, now)
					}
					got, found, err := s.Take(context.Background(), charges)
					if err != nil {
						rt.Fatal(err)
					}
					if got != want {
						rt.Fatalf("admitted is %v: want %v, %+v", got, want, found)
					}
					wait, last = 0, nil
					for i, m := range gates {
						if got {
							m.take(charges[i].Cost, now)
						}
						if found[i].Used != m.used(now) {
							rt.Fatalf("%v: used is %+v: want %+v", m.rule, found[i].Used, m.used(now))
						}
						if got {
							continue
						}
						soon = now + found[i].Wait.Microseconds()
						if !m.room(charges[i].Cost, soon) || found[i].Wait > 0 && m.room(charges[i].Cost, soon-1) {
							rt.Fatalf("%v: wait is %v, which is not when there is room", m.rule, found[i].Wait)
						}
						wait = max(wait, found[i].Wait)
					}
					if got {
						last = charges
						continue
					}
				}
				last = nil // what time may have given back, the model does not know
			}
		})
	})
}

func capacity(r ratelimit.Rule) int {
	if l, ok := r.(ratelimit.Limit); ok {
		return l.Burst
	}
	return r.(ratelimit.Window).Limit
}

// Many processes that do as they like are never admitted beyond the rule.
func TestManyProcessesKeepToTheRule(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		stores := []*Store{w.open(t), w.open(t), w.open(t)}
		program := 0
		rapid.Check(t, func(rt *rapid.T) {
			program++
			m := &model{rule: rules().Draw(rt, "rule")}
			for range rapid.IntRange(1, 60).Draw(rt, "steps") {
				w.advance(t, time.Duration(rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(0, 20_000)).Draw(rt, "pass"))*time.Microsecond)
				c := charge(fmt.Sprint("many", program), m.rule, 1)
				c.Cost = rapid.IntRange(1, 2*capacity(m.rule)).Draw(rt, "cost")
				got, found, err := rapid.SampledFrom(stores).Draw(rt, "process").Take(context.Background(), []ratelimit.Charge{c})
				if err != nil {
					rt.Fatal(err)
				}
				now := w.time.UnixMicro()
				if got && !m.room(c.Cost, now) {
					rt.Fatalf("admitted %d beyond %v", c.Cost, m.rule)
				}
				if !got && found[0].Wait <= 0 {
					rt.Fatalf("refused without a wait")
				}
				if got {
					m.take(c.Cost, now)
				}
			}
		})
	})
}

// fairness runs processes that each ask whenever they were told to, and the more eager
// ones at once again, and returns how often each was admitted.
func fairness(t *testing.T, w *world, rule ratelimit.Rule, eager []time.Duration, d time.Duration) (n []int) {
	n = make([]int, len(eager))
	next := make([]time.Time, len(eager))
	stores := make([]*Store, len(eager))
	for i := range stores {
		stores[i], next[i] = w.open(t), w.time
	}
	end := w.time.Add(d)
	for {
		first := 0
		for i := range next {
			if next[i].Before(next[first]) {
				first = i
			}
		}
		if !next[first].Before(end) {
			return n
		}
		w.set(t, next[first])
		ok, found := take(t, stores[first], charge("g", rule, 1))
		if ok {
			n[first]++
			next[first] = w.time.Add(300 * time.Microsecond)
			continue
		}
		// A timer is late, and one that is impatient does not wait as it was told.
		next[first] = w.time.Add(found[0].Wait + time.Duration(first)*time.Millisecond)
		if eager[first] > 0 {
			next[first] = w.time.Add(min(eager[first], found[0].Wait))
		}
	}
}

func TestProcessesGetTheirFairShare(t *testing.T) {
	for _, rule := range []ratelimit.Rule{
		perSecond(30, 40), perSecond(25, 1), ratelimit.Window{Limit: 20, Period: time.Second},
		ratelimit.Window{Limit: 1, Period: 100 * time.Millisecond}, ratelimit.Window{Limit: 20, Period: time.Second, Kind: ratelimit.Aligned},
	} {
		t.Run(rule.String(), func(t *testing.T) {
			w := mini(t)
			n := fairness(t, w, rule, []time.Duration{0, 0, 0, 5 * time.Millisecond}, 3*time.Second)
			all := 0
			for _, n := range n {
				all += n
			}
			for _, n := range n {
				require.InDelta(t, float64(all)/4, float64(n), float64(all)/16, "%v", rule)
			}
			t.Log(n)
		})
	}
}
