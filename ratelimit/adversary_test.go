package ratelimit_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/gotd/td/clock"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weirtg/weir/ratelimit"
)

// stoppedClock moves by hand. No test here waits on it.
type stoppedClock struct {
	clock.Clock
	now time.Time
}

func (c *stoppedClock) Now() time.Time { return c.now }

// A server counts by the same rules as the limiter, exactly, and forgives nothing. Each rule
// is written down independently of the limiter.
type server struct {
	global, private []hit // what was counted
	group           []hit
}

type hit struct {
	at   time.Duration
	cost int
}

const (
	globalRate, globalBurst   = 30, 30
	privateRate, privateBurst = 1, 3
	groupLimit, groupPeriod   = 5, 10 * time.Second
)

// pour returns the tokens in a bucket at now, in tokens × a second: filled by adding.
func pour(hits []hit, rate, burst int, now time.Duration) int64 {
	full := int64(burst) * int64(time.Second)
	credit, last := full, time.Duration(0)
	for _, h := range hits {
		credit = min(full, credit+int64(h.at-last)*int64(rate)) - int64(h.cost)*int64(time.Second)
		last = h.at
	}
	return min(full, credit+int64(now-last)*int64(rate))
}

// count counts a call, and names the rule that refuses it.
func (s *server) count(now time.Duration, c *flight) (refused string) {
	if pour(s.global, globalRate, globalBurst, now) < int64(time.Second) {
		return "global"
	}
	s.global = append(s.global, hit{now, 1})
	if c.group {
		inside := 0
		for _, h := range s.group {
			if h.at+groupPeriod > now {
				inside += h.cost
			}
		}
		if inside > 0 && inside+c.messages > groupLimit {
			return "group"
		}
		s.group = append(s.group, hit{now, c.messages})
		return ""
	}
	if pour(s.private, privateRate, privateBurst, now) < int64(min(c.messages, privateBurst))*int64(time.Second) {
		return "private"
	}
	s.private = append(s.private, hit{now, c.messages})
	return ""
}

// flight is a call between its start and its answer.
type flight struct {
	gates    []ratelimit.Gate
	group    bool
	messages int
	counted  bool
	lost     bool // it is never answered
}

// attack sends calls over a network that does with them what it likes: the server counts each
// at any moment until it is answered, in any order. It returns the rules that refused one.
func attack(t *rapid.T, atTheSend bool) (refused []string) {
	now := &stoppedClock{Clock: clock.System, now: time.Unix(1_700_000_000, 0)}
	start := now.now
	l := ratelimit.New(ratelimit.Options{Clock: now})
	must := func(g *ratelimit.Gates, err error) *ratelimit.Gates {
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	global, err := l.NewGate("global", ratelimit.Limit{Rate: globalRate, Burst: globalBurst})
	if err != nil {
		t.Fatal(err)
	}
	private := must(l.NewGates("private", ratelimit.Limit{Rate: privateRate, Burst: privateBurst})).Key(1)
	group := must(l.NewGates("group", ratelimit.Window{Limit: groupLimit, Period: groupPeriod})).Key(1)
	others := must(l.NewGates("others", ratelimit.Limit{Rate: 100, Burst: 100}))

	s := &server{}
	var flying []*flight
	count := func(c *flight) {
		if c.counted {
			return
		}
		c.counted = true
		if rule := s.count(now.now.Sub(start), c); rule != "" {
			refused = append(refused, rule)
		}
	}
	answer := func(i int) {
		c := flying[i]
		count(c)
		if !c.lost {
			if !atTheSend {
				l.Settle(1, c.gates...)
			}
			flying = slices.Delete(flying, i, i+1)
		}
	}
	pauses := rapid.SampledFrom([]time.Duration{1, time.Millisecond, 33 * time.Millisecond, 100 * time.Millisecond, 999_999_999, time.Second, 4 * time.Second, groupPeriod})
	losses := rapid.Bool().Draw(t, "losses")
	for range 1200 {
		switch op := rapid.IntRange(0, 9).Draw(t, "op"); {
		case op < 5: // send, as soon as there is room
			c := &flight{group: rapid.Bool().Draw(t, "group"), messages: 1}
			if rapid.IntRange(0, 9).Draw(t, "album") == 0 {
				c.messages = rapid.IntRange(2, 10).Draw(t, "messages")
			}
			c.lost = losses && rapid.IntRange(0, 99).Draw(t, "lost") == 0
			chat := private
			if c.group {
				chat = group
			}
			c.gates = []ratelimit.Gate{chat.Times(c.messages), others.Key(rapid.Uint64Range(0, 3).Draw(t, "other")), global}
			send := l.TryBegin
			if atTheSend {
				send = l.Try
			}
			err := send(1, c.gates...)
			if refused, ok := errors.AsType[*ratelimit.RefusedError](err); ok && op < 4 {
				now.now = now.now.Add(refused.Wait)
				err = send(1, c.gates...)
			}
			if err == nil {
				flying = append(flying, c)
			}
		case op < 6 && len(flying) > 0: // the server counts one
			count(flying[rapid.IntRange(0, len(flying)-1).Draw(t, "which")])
		case op < 7: // all that is on the way arrives at once, as after an outage
			for _, c := range flying {
				count(c)
			}
		case op < 9 && len(flying) > 0: // an answer
			answer(rapid.IntRange(0, len(flying)-1).Draw(t, "which"))
		default:
			now.now = now.now.Add(pauses.Draw(t, "pause"))
		}
	}
	return refused
}

// 100 programs of 1,200 steps each.
func TestServerOfTheSameRuleNeverRefuses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if refused := attack(t, false); len(refused) > 0 {
			t.Fatalf("refused %d calls, the first by %s", len(refused), refused[0])
		}
	})
}

// The test above would find a limiter that does not wait for answers.
func TestServerRefusesWhoeverChargesAtTheSend(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		for _, rule := range attack(t, true) {
			seen[rule]++
		}
	})
	require.Positive(t, seen["private"])
	require.Positive(t, seen["group"])
	require.Positive(t, seen["global"])
}
