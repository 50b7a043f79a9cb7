package invoke_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"

	"github.com/weirtg/weir/invoke"
)

// datacenter is a server whose limits its clients are not told. Time passes on the way.
type datacenter struct {
	latency time.Duration // there and back

	mu     sync.Mutex
	limits []*hidden
	calls  []arrival
}

// hidden is a limit, a flood that somebody put there, or both. Its waits are whole seconds,
// rounded up. A call inside a flood that stands is refused, even if there is room by now,
// and makes it a second longer.
type hidden struct {
	covers      func(arrival) bool
	rate, burst float64 // 0: no limit, but for a flood
	message     string  // of its floods

	tokens float64
	filled time.Time
	until  time.Time // the flood that stands
	told   time.Time // when a client was first told of it, zero if none was
}

// arrival is one call as the server saw it.
type arrival struct {
	sent, at time.Time
	method   string
	chat     int64
	wait     time.Duration // 0: it came through
	// known tells that it was sent into a flood that a client had been told of.
	known bool
}

// unknown is a server that takes so many calls a second, whatever they are for.
func unknown(perSecond, burst float64) *datacenter {
	return &datacenter{latency: 50 * time.Millisecond, limits: []*hidden{bucket(perSecond, burst, everything)}}
}

func bucket(perSecond, burst float64, covers func(arrival) bool) *hidden {
	return &hidden{covers: covers, rate: perSecond, burst: burst, tokens: burst, filled: time.Now(), message: "FLOOD_WAIT_%d"}
}

// standing is a flood without a limit that is to blame.
func standing(d time.Duration, covers func(arrival) bool) *hidden {
	return &hidden{covers: covers, until: time.Now().Add(d), message: "FLOOD_WAIT_%d"}
}

func everything(arrival) bool { return true }

func inChat(chat int64) func(arrival) bool { return func(a arrival) bool { return a.chat == chat } }

func ofMethods(names ...string) func(arrival) bool {
	return func(a arrival) bool { return slices.Contains(names, a.method) }
}

// change changes the rate of the first limit.
func (s *datacenter) change(perSecond float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.limits[0]
	l.fill(time.Now())
	l.rate = perSecond
}

func (s *datacenter) put(l *hidden) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits = append(s.limits, l)
}

func (l *hidden) fill(now time.Time) {
	l.tokens = min(l.burst, l.tokens+now.Sub(l.filled).Seconds()*l.rate)
	l.filled = now
}

// left is how long the flood still stands, or would if the call came now.
func (l *hidden) left(now time.Time) time.Duration {
	if now.Before(l.until) {
		if !l.told.IsZero() {
			l.until = l.until.Add(time.Second)
		}
		return l.until.Sub(now)
	}
	l.told = time.Time{}
	if l.rate == 0 {
		return 0
	}
	l.fill(now)
	const rounding = 1e-6
	if l.tokens >= 1-rounding {
		return 0
	}
	return time.Duration((1 - l.tokens) / l.rate * float64(time.Second))
}

func (s *datacenter) Invoke(_ context.Context, input bin.Encoder, _ bin.Decoder) error {
	a := arrival{method: input.(interface{ TypeName() string }).TypeName(), chat: chatOf(input)}
	message := s.judge(&a) // now, so that calls arrive in the order in which they were sent
	time.Sleep(s.latency)
	if a.wait > 0 {
		return tgerr.New(420, fmt.Sprintf(message, int(a.wait.Seconds())))
	}
	return nil
}

func (s *datacenter) judge(a *arrival) (message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.sent = time.Now()
	a.at = a.sent.Add(s.latency / 2)
	var blame *hidden
	for _, l := range s.limits {
		if !l.covers(*a) {
			continue
		}
		a.known = a.known || a.at.Before(l.until) && !l.told.IsZero() && a.sent.After(l.told)
		if left := l.left(a.at); left > 0 {
			if wait := time.Duration(math.Ceil(left.Seconds())) * time.Second; wait > a.wait {
				a.wait, blame, message = wait, l, l.message
			}
		}
	}
	if blame != nil {
		blame.until = a.at.Add(a.wait)
		if blame.told.IsZero() {
			blame.told = a.at.Add(s.latency / 2)
		}
	} else {
		for _, l := range s.limits {
			if l.rate > 0 && l.covers(*a) {
				l.tokens--
			}
		}
	}
	s.calls = append(s.calls, *a)
	return message
}

func chatOf(input bin.Encoder) int64 {
	with, ok := input.(interface{ GetPeer() tg.InputPeerClass })
	if !ok {
		return 0
	}
	switch peer := with.GetPeer().(type) {
	case *tg.InputPeerUser:
		return peer.UserID
	case *tg.InputPeerChannel:
		return -peer.ChannelID
	}
	return 0
}

// between returns what arrived from one moment on and before another, with the same
// offsets from a beginning.
func (s *datacenter) between(start time.Time, from, to time.Duration) (calls arrivals) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.calls {
		if at := a.at.Sub(start); at >= from && at < to {
			calls = append(calls, a)
		}
	}
	return calls
}

func (s *datacenter) all() arrivals {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

type arrivals []arrival

func (all arrivals) count(match func(arrival) bool) (n int) {
	for _, a := range all {
		if match(a) {
			n++
		}
	}
	return n
}

func (all arrivals) passed() int { return all.count(func(a arrival) bool { return a.wait == 0 }) }
func (all arrivals) known() int  { return all.count(func(a arrival) bool { return a.known }) }

func (all arrivals) refused() int { return len(all) - all.passed() }

// floods is how often the client was flooded: what is refused within a second of the first
// refusal, such as what was on the wire, is one time.
func (all arrivals) floods() (n int) {
	var first time.Time
	for _, a := range all {
		if a.wait > 0 && a.at.Sub(first) >= time.Second {
			n, first = n+1, a.at
		}
	}
	return n
}

// connect is a client of a data centre.
func connect(t testing.TB, opts invoke.Options, s *datacenter) func(context.Context, bin.Encoder) error {
	t.Helper()
	m, err := invoke.New(opts)
	require.NoError(t, err)
	t.Cleanup(m.Close)
	call := m.Handle(s)
	return func(ctx context.Context, req bin.Encoder) error { return call(ctx, req, nil) }
}

// workers send to chats in turn without a pause, until the function is called that is
// returned.
func workers(t testing.TB, call func(context.Context, bin.Encoder) error, n int, chats int64) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	next := int64(0)
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for ctx.Err() == nil {
				mu.Lock()
				next++
				chat := next%chats + 1
				mu.Unlock()
				if call(ctx, to(chat)) != nil {
					time.Sleep(100 * time.Millisecond)
				}
			}
		})
	}
	return func() { cancel(); all.Wait() }
}
