package client_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gotd/neo"
	"github.com/gotd/td/session"
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/client"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/localdc"
)

// world is a data centre whose time stands still, but for what a test lets pass. It is
// shared by tests that run one after another, each with a client of its own that comes
// with the same session: exchanging keys is what takes the time.
type world struct {
	*localdc.Cloud
	now     *neo.Time
	session *session.StorageMemory
	seen    *events // by the client of the test
	once    sync.Once
	err     error
}

// theWorld is started by the first test that needs it, and closed by TestMain.
var theWorld world

const cdnDC = 203

func (w *world) start() error {
	w.once.Do(func() { w.err = w.create() })
	return w.err
}

func (w *world) create() error {
	w.now, w.session = neo.NewTime(time.Now()), &session.StorageMemory{}
	var err error
	if w.Cloud, err = localdc.New(localdc.Options{Clock: w.now, CDN: cdnDC}); err != nil {
		return err
	}
	opts := w.ClientOptions()
	opts.SessionStorage = w.session
	c := telegram.NewClient(1, "hash", opts)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return c.Run(ctx, func(ctx context.Context) error {
		_, err := c.Auth().Bot(ctx, localdc.DemoBotToken)
		return err
	})
}

// startWorld returns the world, calm.
func startWorld(t *testing.T) *world {
	t.Helper()
	require.NoError(t, theWorld.start())
	theWorld.calm(t)
	return &theWorld
}

// client returns a client that is logged in once it runs.
func (w *world) client(t *testing.T, opts client.Options) *client.Client {
	t.Helper()
	opts.Telegram.SessionStorage = w.session.Clone()
	return newClient(t, w.Cloud, opts)
}

// suite closes the world before the goroutines are counted.
type suite struct{ *testing.M }

func (s suite) Run() int {
	code := s.M.Run()
	if theWorld.Cloud != nil {
		_ = theWorld.Close() // never fails
	}
	return code
}

// settings of a client in the world.
type settings struct {
	limits invoke.Options
	client client.Options
}

// inWorld runs f with a client that is logged in, in a world without limits and floods
// and with an empty record.
func inWorld(t *testing.T, s settings, f func(ctx context.Context, w *world, c *client.Client)) {
	t.Helper()
	startWorld(t).run(t, s, f)
}

// run is inWorld in a world as it is.
func (w *world) run(t *testing.T, s settings, f func(ctx context.Context, w *world, c *client.Client)) {
	t.Helper()
	s.limits.Clock = w.now
	s.limits.Learning = invoke.Off // a lowered limit lets nothing through while time stands still
	var err error
	s.client.Limiter, err = invoke.NewLimiter(s.limits)
	require.NoError(t, err)
	defer s.client.Limiter.Close()
	w.seen = &events{}
	s.client.Observer = w.seen
	c := w.client(t, s.client)

	// A context with a deadline would be compared with waits of virtual time.
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	late := time.AfterFunc(time.Minute, func() { cancel(errors.New("the test takes too long")) })
	defer late.Stop()
	done := false
	err = c.Run(ctx, func(ctx context.Context) error {
		defer cancel(nil) // a test that gives up in f ends the client too
		if _, err := c.Self(ctx); err != nil {
			return err
		}
		w.ResetRecord()
		f(ctx, w, c)
		done = true
		return nil
	})
	if !done {
		require.NoError(t, err)
	}
}

// calm ends limits and floods.
func (w *world) calm(t *testing.T) {
	t.Helper()
	require.NoError(t, w.SetLimits(localdc.Limits{Lengthen: -1}))
	w.now.Travel(30 * 24 * time.Hour)
	w.ResetRecord()
}

// call makes a call in the background.
func call(f func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return done
}

// patience is for a busy machine: nothing that works takes that long.
const patience = 30 * time.Second

// ended waits for a call's end.
func ended(t *testing.T, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		require.Fail(t, "the call still waits")
		return nil
	}
}

func eventually(t *testing.T, cond func() bool, msg string, args ...any) {
	t.Helper()
	require.Eventually(t, cond, patience, time.Millisecond, append([]any{msg}, args...)...)
}

// waitsForFlood blocks until n calls wait for a flood. Their timers are set then, so that
// time may pass.
func waitsForFlood(t *testing.T, c *client.Client, n int) flood.Record {
	t.Helper()
	var record flood.Record
	eventually(t, func() bool {
		for _, record = range c.Floods() {
			if record.Waiting == n {
				return true
			}
		}
		return false
	}, "%d calls wait for a flood", n)
	return record
}

// calls is how often a method was called since the record was reset.
func (w *world) calls(method string) int { return w.Record().Methods[method].Calls }

// roundTrip gives what woke up the time to reach the data centre.
func roundTrip(ctx context.Context, t *testing.T, c *client.Client) {
	t.Helper()
	for range 5 {
		_, err := c.Self(ctx)
		require.NoError(t, err)
	}
}

// spend lets time pass in steps until cond holds.
func (w *world) spend(t *testing.T, step time.Duration, cond func() bool) {
	t.Helper()
	eventually(t, func() bool {
		if cond() {
			return true
		}
		w.now.Travel(step)
		return false
	}, "in steps of %v", step)
}

// sitOut lets time pass while calls wait for a flood to end, until cond holds. What takes
// its time on the wire takes none here.
func (w *world) sitOut(t *testing.T, c *client.Client, cond func() bool) {
	t.Helper()
	eventually(t, func() bool {
		if cond() {
			return true
		}
		for _, record := range c.Floods() {
			if record.Waiting > 0 && record.Until.After(w.now.Now()) && w.seen.onTheWire() == 0 {
				w.now.Set(record.Until)
			}
		}
		return false
	}, "time passes where it has to")
}

func edit(ctx context.Context, c *client.Client, chat tg.InputPeerClass, id int, text string) error {
	_, err := c.API().MessagesEditMessage(ctx, &tg.MessagesEditMessageRequest{Peer: chat, ID: id, Message: text})
	return err
}

// asWait is the wait that a call was given up for.
func asWait(t *testing.T, err error) *flood.WaitError {
	t.Helper()
	var wait *flood.WaitError
	require.ErrorAs(t, err, &wait)
	return wait
}

// events remembers what an observer is told.
type events struct {
	mu  sync.Mutex
	all []invoke.Event
}

func (e *events) Observe(event invoke.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, event)
}

// of returns those of a kind and method.
func (e *events) of(kind invoke.EventKind, method string) (out []invoke.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, event := range e.all {
		if event.Kind == kind && event.Method == method {
			out = append(out, event)
		}
	}
	return out
}

// zeros reads as so many zero bytes.
type zeros struct{ left int }

func (z *zeros) Read(p []byte) (int, error) {
	if z.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), z.left)
	clear(p[:n])
	z.left -= n
	return n, nil
}

// onTheWire is how many calls are sent and not dealt with yet.
func (e *events) onTheWire() (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, event := range e.all {
		switch event.Kind {
		case invoke.Admitted:
			n++
		case invoke.Sent:
			if notice, _ := flood.FromError(event.Err); !notice.Waitable() {
				n--
			}
		case invoke.Flooded:
			n--
		case invoke.GivenUp:
			if errors.Is(event.Err, invoke.ErrNotSent) && !errors.Is(event.Err, invoke.ErrNoConnection) {
				n-- // it was admitted, and ended before it was written
			}
		}
	}
	return n
}
