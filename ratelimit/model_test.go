package ratelimit_test

import (
	"context"
	"sort"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/weirtg/weir/ratelimit"
)

// The model is the limiter written the slow way: one goroutine, no locks, no
// timers, and a bucket that is filled by adding. A random program is run on both,
// and each call has to be admitted at the same nanosecond.

type modelGate struct {
	limit  ratelimit.Limit
	credit int64 // tokens × interval
	last   int64
	window *ratelimit.Window // in place of the limit
	passed []int64           // through the window: when
	queue  []*modelCall
	turn   int // normal calls in a row past a waiting background call
}

// head is the one whose turn it is.
func (g *modelGate) head() *modelCall {
	var first [2]*modelCall
	for _, c := range g.queue {
		if first[c.lane()] == nil {
			first[c.lane()] = c
		}
	}
	if first[0] == nil || first[1] != nil && g.turn >= 9 {
		return first[1]
	}
	return first[0]
}

// join may make the one whose turn it was let go of what it holds further on.
func (g *modelGate) join(c *modelCall) {
	before := g.head()
	g.queue = append(g.queue, c)
	if before != nil && g.head() != before {
		before.retreat(g)
	}
}

func (g *modelGate) inWindow(now int64) (n int) {
	for _, t := range g.passed {
		if t+int64(g.window.Period) > now {
			n++
		}
	}
	return n
}

// until is when there will be room for cost if nobody else takes it.
func (g *modelGate) until(cost int, now int64) int64 {
	if g.window == nil {
		return now + max(1, int64(cost)*g.interval()-g.credit)
	}
	for _, t := range g.passed { // in order
		if expiry := t + int64(g.window.Period); expiry > now && g.inWindow(expiry)+cost <= g.window.Limit {
			return expiry
		}
	}
	return now + 1
}

func (g *modelGate) take(cost int, lane int) {
	if g.window != nil {
		for range cost {
			g.passed = append(g.passed, g.last)
		}
	} else {
		g.credit -= int64(cost) * g.interval()
	}
	waiting := false
	for _, c := range g.queue {
		waiting = waiting || c.lane() == 1
	}
	if g.turn++; lane == 1 || !waiting {
		g.turn = 0
	}
}

func (g *modelGate) interval() int64 {
	if g.limit.Paused() {
		return int64(time.Second) // the unit in which the tokens are kept
	}
	n := int64(float64(time.Second) / g.limit.Rate)
	if float64(n) < float64(time.Second)/g.limit.Rate {
		n++
	}
	return n
}

func (g *modelGate) refill(now int64) {
	if g.window == nil && !g.limit.Paused() {
		g.credit = min(g.credit+now-g.last, int64(g.limit.Burst)*g.interval())
	}
	g.last = now
}

func (g *modelGate) room(cost int) bool {
	if g.window != nil {
		return g.inWindow(g.last)+cost <= g.window.Limit
	}
	return !g.limit.Paused() && g.credit >= int64(cost)*g.interval()
}

func (g *modelGate) drop(c *modelCall) {
	for i, other := range g.queue {
		if other == c {
			g.queue = append(g.queue[:i:i], g.queue[i+1:]...)
		}
	}
	for _, other := range g.queue {
		if other.lane() == 1 {
			return
		}
	}
	g.turn = 0
}

type modelCall struct {
	cost  int
	gates []*modelGate
	stage int   // it stands in the queues of gates[:stage+1]
	done  bool  // admitted or gone
	at    int64 // when it was admitted, -1 if never
	quiet bool  // in the background
}

func (c *modelCall) lane() int {
	if c.quiet {
		return 1
	}
	return 0
}

// retreat leaves the gates beyond g.
func (c *modelCall) retreat(g *modelGate) {
	for i, other := range c.gates {
		if other == g {
			for _, later := range c.gates[i+1:] {
				later.drop(c)
			}
			c.stage = i
		}
	}
}

type model struct {
	now   int64
	gates []*modelGate
	calls []*modelCall
}

func (m *model) enter(cost int, quiet bool, gates ...*modelGate) *modelCall {
	c := &modelCall{cost: cost, gates: gates, at: -1, quiet: quiet}
	m.calls = append(m.calls, c)
	gates[0].join(c)
	return c
}

func (m *model) leave(c *modelCall) {
	for _, g := range c.gates {
		g.drop(c)
	}
	c.done = true
}

// step moves one call one step and reports whether any could move.
func (m *model) step() bool {
	for _, c := range m.calls {
		if c.done {
			continue
		}
		for i := range c.stage { // a limit that was cut sends it back
			if !c.gates[i].room(c.cost) {
				c.retreat(c.gates[i])
				return true
			}
		}
		if g := c.gates[c.stage]; g.head() != c || !g.room(c.cost) {
			continue
		}
		if c.stage < len(c.gates)-1 {
			c.stage++
			c.gates[c.stage].join(c)
			return true
		}
		for _, g := range c.gates {
			turn := g.turn
			g.drop(c)
			g.turn = turn
			g.take(c.cost, c.lane())
		}
		m.leave(c)
		c.at = m.now
		return true
	}
	return false
}

// runTo lets time pass, stopping wherever something can happen.
func (m *model) runTo(t int64) {
	for {
		for _, g := range m.gates {
			g.refill(m.now)
		}
		for m.step() {
		}
		next := t
		for _, c := range m.calls {
			g := c.gates[c.stage]
			if c.done || g.head() != c || g.window == nil && g.limit.Paused() {
				continue
			}
			next = min(next, g.until(c.cost, m.now))
		}
		if m.now == t {
			return
		}
		m.now = next
	}
}

type operation struct {
	at     int64
	kind   string // acquire, try, cancel, update
	call   int    // acquire, try, cancel: which call
	cost   int
	wide   bool // only the global gate
	quiet  bool // in the background
	gate   int  // update
	limit  ratelimit.Limit
	change ratelimit.Change
}

func program(t *rapid.T, window bool) []operation {
	limit := rapid.Custom(func(t *rapid.T) ratelimit.Limit {
		return ratelimit.Limit{
			Rate:  rapid.SampledFrom([]float64{0, 1, 10, 50, 200, 1000}).Draw(t, "rate"),
			Burst: rapid.IntRange(4, 12).Draw(t, "burst"), // no cost is impossible
		}
	})
	var ops []operation
	at := int64(0)
	// When a call is admitted, the next at the narrow gate and the next at the global
	// one wake in the same instant. In one lane their order is the same whoever runs
	// first; in two it is not, and a program has either wide calls or lanes.
	lanes := rapid.Bool().Draw(t, "lanes")
	n := rapid.IntRange(1, 80).Draw(t, "operations")
	for i := range n {
		// No two operations share a nanosecond, nor do the dues that follow from them.
		at += rapid.Int64Range(0, 50_000).Draw(t, "pause")*1000 + 1
		op := operation{at: at, call: i, cost: rapid.IntRange(1, 4).Draw(t, "cost"), wide: rapid.Bool().Draw(t, "wide"), quiet: rapid.Bool().Draw(t, "quiet")}
		op.wide, op.quiet = op.wide && !lanes, op.quiet && lanes
		op.kind = rapid.SampledFrom([]string{"acquire", "acquire", "acquire", "try", "cancel", "update"}).Draw(t, "kind")
		switch op.kind {
		case "cancel":
			op.call = rapid.IntRange(0, i).Draw(t, "which")
		case "update":
			op.gate = rapid.IntRange(0, 1).Draw(t, "gate")
			if window {
				op.gate = 1
			}
			op.limit = limit.Draw(t, "limit")
			op.change = ratelimit.Rate(op.limit.Rate).Burst(op.limit.Burst)
		}
		ops = append(ops, op)
	}
	// At last nothing is paused, so that everything ends.
	for gate := range 2 {
		if gate == 0 && window {
			continue
		}
		at += 1_000_001
		ops = append(ops, operation{at: at, kind: "update", gate: gate, limit: ratelimit.Limit{Rate: 50, Burst: 12}, change: ratelimit.Rate(50).Burst(12)})
	}
	return ops
}

var modelLimits = [2]ratelimit.Limit{{Rate: 10, Burst: 4}, {Rate: 50, Burst: 6}}

// modelWindow is what the narrow gate is instead, in half of the programs.
var modelWindow = ratelimit.Window{Limit: 5, Period: 300 * time.Millisecond}

const modelEnd = int64(time.Hour)

func runModel(ops []operation, window bool) map[int]int64 {
	m := &model{}
	for _, l := range modelLimits {
		g := &modelGate{limit: l}
		g.credit = int64(l.Burst) * g.interval()
		m.gates = append(m.gates, g)
	}
	if window {
		m.gates[0].window = &modelWindow
	}
	calls := map[int]*modelCall{}
	for _, op := range ops {
		m.runTo(op.at)
		chain := m.gates
		if op.wide {
			chain = m.gates[1:]
		}
		switch op.kind {
		case "acquire":
			calls[op.call] = m.enter(op.cost, op.quiet, chain...)
		case "try":
			free := true
			for _, g := range chain {
				free = free && len(g.queue) == 0 && g.room(op.cost)
			}
			if free {
				calls[op.call] = m.enter(op.cost, false, chain...)
			}
		case "cancel":
			if c := calls[op.call]; c != nil && !c.done {
				m.leave(c)
			}
		case "update":
			g := m.gates[op.gate]
			old := g.interval()
			tokens, part := g.credit/old, g.credit%old
			g.limit = op.limit
			g.credit = min(tokens*g.interval()+part*g.interval()/old, int64(op.limit.Burst)*g.interval())
		}
		m.runTo(op.at)
	}
	m.runTo(modelEnd)
	admitted := map[int]int64{}
	for id, c := range calls {
		if c.at >= 0 {
			admitted[id] = c.at
		}
	}
	return admitted
}

func runLimiter(t *rapid.T, opts ratelimit.Options, ops []operation, window bool) map[int]int64 {
	var (
		mu       sync.Mutex
		wg       sync.WaitGroup
		admitted = map[int]int64{}
		cancels  = map[int]context.CancelFunc{}
		gates    []ratelimit.Gate
	)
	l := ratelimit.New(opts)
	for i, limit := range modelLimits {
		var rule ratelimit.Rule = limit
		if i == 0 && window {
			rule = modelWindow
		}
		g, err := l.NewGate([]string{"narrow", "global"}[i], rule)
		if err != nil {
			t.Fatal(err)
		}
		gates = append(gates, g)
	}
	start := time.Now()
	note := func(id int) {
		mu.Lock()
		defer mu.Unlock()
		admitted[id] = int64(time.Since(start))
	}
	for _, op := range ops {
		time.Sleep(time.Duration(op.at) - time.Since(start))
		synctest.Wait()
		chain := gates
		if op.wide {
			chain = gates[1:]
		}
		switch op.kind {
		case "acquire":
			ctx, cancel := context.WithCancel(context.Background())
			cancels[op.call] = cancel
			wg.Go(func() {
				acquire := l.Acquire
				if op.quiet {
					acquire = l.AcquireBackground
				}
				if acquire(ctx, op.cost, chain...) == nil {
					note(op.call)
				}
			})
		case "try":
			if l.Try(op.cost, chain...) == nil {
				note(op.call)
			}
		case "cancel":
			if cancel := cancels[op.call]; cancel != nil {
				cancel()
			}
		case "update":
			if err := l.Update(map[ratelimit.Gate]ratelimit.Change{gates[op.gate]: op.change}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
	}
	wg.Wait()
	for _, cancel := range cancels {
		cancel()
	}
	for _, g := range gates {
		if g.Stats().Waiters != 0 {
			t.Fatalf("%s: somebody is left in the queue", g.Name())
		}
	}
	return admitted
}

func TestLimiterAdmitsAsTheModelDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		window := rapid.Bool().Draw(t, "window")
		ops := program(t, window)
		want := runModel(ops, window)
		var opts ratelimit.Options
		if rapid.Bool().Draw(t, "shared") {
			opts.Shared = agreeing{} // then each call of the program passes through an ask
		}
		rapid.SyncTest(t, func(t *rapid.T) {
			got := runLimiter(t, opts, ops, window)
			for _, op := range ops {
				if want[op.call] != got[op.call] && (op.kind == "acquire" || op.kind == "try") {
					t.Fatalf("%s %d at %v: admitted at %v, the model says %v", op.kind, op.call,
						time.Duration(op.at), time.Duration(got[op.call]), time.Duration(want[op.call]))
				}
			}
			checkBound(t, ops, got, window)
		})
	})
}

// checkBound holds every interval between two admissions against burst + rate ×
// time, for each gate, under its limits as they changed.
func checkBound(t *rapid.T, ops []operation, admitted map[int]int64, window bool) {
	for gate := range 2 {
		if gate == 0 && window {
			continue // exact, or the model would have said
		}
		type grant struct {
			at   int64
			cost int
		}
		var grants []grant
		for _, op := range ops {
			if at, ok := admitted[op.call]; ok && (op.kind == "acquire" || op.kind == "try") && (gate == 1 || !op.wide) {
				grants = append(grants, grant{at, op.cost})
			}
		}
		sort.SliceStable(grants, func(i, j int) bool { return grants[i].at < grants[j].at })

		// earned is what the rate brings between two times, burst the highest of it.
		earned := func(from, to int64) (tokens float64, burst int) {
			limit, since := modelLimits[gate], int64(0)
			add := func(until int64) {
				if a, b := max(from, since), min(to, until); a <= b && !limit.Paused() {
					tokens += limit.Rate * float64(b-a) / float64(time.Second)
					burst = max(burst, limit.Burst)
				}
			}
			for _, op := range ops {
				if op.kind == "update" && op.gate == gate {
					add(op.at)
					limit, since = op.limit, op.at
				}
			}
			add(modelEnd)
			return tokens, burst
		}
		for i := range grants {
			sum := 0
			for j := i; j < len(grants); j++ {
				sum += grants[j].cost
				tokens, burst := earned(grants[i].at, grants[j].at)
				if float64(sum) > float64(burst)+tokens+1e-6 {
					t.Fatalf("gate %d admitted %d from %v to %v: burst %d and %.3f tokens earned", gate, sum,
						time.Duration(grants[i].at), time.Duration(grants[j].at), burst, tokens)
				}
			}
		}
	}
}
