package learn_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/internal/learn"
)

// A server answers a call that comes at a second of the run with the wait that it
// orders: 0 lets it through.
type server interface {
	ask(at float64) (wait float64)
}

// bucketServer is a token bucket that the client is told nothing of. Its waits are
// whole seconds rounded up, and a call inside a wait makes it begin anew.
type bucketServer struct {
	rate, burst float64

	level, last, until, wait float64
}

func newBucketServer(rate, burst float64) *bucketServer {
	return &bucketServer{rate: rate, burst: burst, level: burst}
}

// change changes the rate at a second of the run.
func (s *bucketServer) change(at, rate float64) {
	s.level = min(s.burst, s.level+(at-s.last)*s.rate)
	s.last, s.rate = at, rate
}

func (s *bucketServer) ask(at float64) float64 {
	s.level = min(s.burst, s.level+(at-s.last)*s.rate)
	s.last = at
	if at < s.until {
		s.until = at + s.wait
		return s.wait
	}
	if s.level >= 1-1e-9 {
		s.level--
		return 0
	}
	s.wait = math.Ceil((1 - s.level) / s.rate)
	s.until = at + s.wait
	return s.wait
}

// windowServer lets limit calls through in any period.
type windowServer struct {
	limit  int
	period float64

	passed []float64
	until  float64
}

func (s *windowServer) ask(at float64) float64 {
	if at < s.until {
		s.until++ // longer by a second when hit
		return math.Ceil(s.until - at)
	}
	if n := len(s.passed); n >= s.limit {
		if free := s.passed[n-s.limit] + s.period; at < free {
			wait := math.Ceil(free - at)
			s.until = at + wait
			return wait
		}
	}
	s.passed = append(s.passed, at)
	return 0
}

// sim is a client with a token bucket that is steered by a Rate, before a server.
type sim struct {
	t      testing.TB
	rate   *learn.Rate
	burst  float64 // configured
	server server
	rtt    float64

	now    float64
	tokens float64
	filled float64
	resume float64 // nothing is sent before it
	first  bool    // the call after a deadline is out alone

	air []reply // in the order of sending

	passed  []float64 // when each call that passed went out
	refused []float64 // when each call that was refused went out
	events  []float64 // when the rate was lowered
}

type reply struct {
	call           learn.Call
	sent, at, wait float64
}

func newSim(t testing.TB, ceiling, burst float64, s server, rtt float64) *sim {
	rate, err := learn.New(ceiling, learn.Options{})
	require.NoError(t, err)
	return &sim{t: t, rate: rate, burst: burst, server: s, rtt: rtt, tokens: burst}
}

func clock(second float64) time.Time {
	return time.Unix(1_800_000_000, 0).Add(time.Duration(second * float64(time.Second)))
}

func (s *sim) refill() {
	s.tokens = min(s.rate.Burst(s.burst), s.tokens+(s.now-s.filled)*s.rate.PerSecond())
	s.filled = s.now
}

// work lets the client work without a pause until the given second.
func (s *sim) work(until float64) {
	for {
		s.refill()
		next := max(s.now, s.resume)
		if s.tokens < 1 {
			next = max(next, s.now+(1-s.tokens)/s.rate.PerSecond())
		}
		if s.first {
			next = max(s.now, s.resume) // it has waited long enough
		}
		if s.first && len(s.air) > 0 {
			next = math.Inf(1) // the others wait for what becomes of the first
		}
		if len(s.air) > 0 && s.air[0].at <= next {
			if s.air[0].at > until {
				break
			}
			s.answer()
			continue
		}
		if next > until {
			break
		}
		s.now = next
		s.refill()
		s.tokens = max(0, s.tokens-1)
		call := s.rate.Sent(clock(s.now), 1)
		if now := s.rate.PerSecond(); now < s.rate.Ceiling()/100 || now > s.rate.Ceiling() {
			s.t.Fatalf("the rate is %v, outside its bounds", now)
		}
		s.air = append(s.air, reply{call, s.now, s.now + s.rtt, s.server.ask(s.now + s.rtt/2)})
	}
	s.now = until
	s.refill()
}

// rest lets the client be idle.
func (s *sim) rest(until float64) {
	for len(s.air) > 0 && s.air[0].at <= until {
		s.answer()
	}
	s.now = until
	s.refill()
}

func (s *sim) answer() {
	a := s.air[0]
	s.air = s.air[1:]
	s.now = a.at
	s.refill()
	if a.wait == 0 {
		s.passed = append(s.passed, a.sent)
		if s.first {
			s.first, s.tokens = false, 0
		}
		return
	}
	s.refused = append(s.refused, a.sent)
	s.resume = max(s.resume, s.now+a.wait)
	s.first = true
	s.tokens = 0
	if s.rate.Flooded(a.call) {
		s.events = append(s.events, s.now)
	}
}

func between(times []float64, from, to float64) int {
	n := 0
	for _, at := range times {
		if at >= from && at < to {
			n++
		}
	}
	return n
}
