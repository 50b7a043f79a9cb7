package localdc

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/gotd/td/clock"
	"github.com/gotd/td/tgerr"
)

// script is what a test has ordered to happen. Cloud.mu guards it.
type script struct {
	failures []*failure // in the order in which they were ordered
	delays   map[string]time.Duration
	holds    map[string][]*hold
}

type failure struct {
	Scope
	err  *tgerr.Error
	left int
}

type hold struct{ kept []func() }

func newScript() script {
	return script{delays: map[string]time.Duration{}, holds: map[string][]*hold{}}
}

// fail is the error that was ordered for a call, nil for none.
func (s *script) fail(c subject) error {
	for i, f := range s.failures {
		if f.has(c) {
			if f.left--; f.left == 0 {
				s.failures = slices.Delete(s.failures, i, i+1)
			}
			return f.err
		}
	}
	return nil
}

// deliver sends an answer now, later or when its hold ends. What is not sent
// now is acknowledged, as Telegram does: the client is not to ask again.
func (s *script) deliver(c *Cloud, method string, to *conn, write, ack func()) {
	if holds := s.holds[method]; len(holds) > 0 {
		to.send(ack)
		h := holds[len(holds)-1]
		h.kept = append(h.kept, func() { to.send(write) })
		return
	}
	d := s.delays[method]
	if d == 0 || c.closed {
		to.send(write)
		return
	}
	to.send(ack)
	timer := c.opts.Clock.Timer(d)
	c.goes.Go(func() {
		defer clock.StopTimer(timer)
		select {
		case <-timer.C():
			to.send(write)
		case <-to.done:
		}
	})
}

func (c *Cloud) known(method string) error {
	if !c.schema.function(method) {
		return fmt.Errorf("localdc: %q is not the TL name of a function: want one such as messages.sendMessage", method)
	}
	return nil
}

// FailNext makes the next times calls of a method fail; see [Cloud.Fail].
func (c *Cloud) FailNext(method string, code int, message string, times int) error {
	if err := c.known(method); err != nil {
		return err
	}
	_, err := c.Fail(Scope{Method: method}, code, message, times)
	return err
}

// Forever is a number of times that is not lived to see.
const Forever = math.MaxInt

// Fail makes the next times calls in a scope fail with an RPC error: 420 and
// "FLOOD_WAIT_3600", or 400 and "PEER_FLOOD" [Forever]. The message is sent as it
// is: nonsense such as FLOOD_WAIT_99999999999999999999 too. Such a call has no
// effect and costs no limit, and nothing stands afterwards: see [Cloud.Flood] for
// floods that do. If a call is in the scope of several orders, the oldest is
// served.
//
// stop ends the order before its time; calling it again does nothing. It is an
// error to name what does not exist or to ask for less than one time.
func (c *Cloud) Fail(s Scope, code int, message string, times int) (stop func(), err error) {
	if err := c.validate(s); err != nil {
		return nil, err
	}
	if times < 1 {
		return nil, fmt.Errorf("localdc: Fail of %v: times is %d: want at least 1", s, times)
	}
	f := &failure{Scope: s, err: &tgerr.Error{Code: code, Message: message}, left: times}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.script.failures = append(c.script.failures, f)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.script.failures = slices.DeleteFunc(c.script.failures, func(g *failure) bool { return g == f })
	}, nil
}

// Delay makes every answer of a method come d later, on the Cloud's clock; 0
// ends that. The call takes effect when it arrives, other calls go on.
func (c *Cloud) Delay(method string, d time.Duration) error {
	if err := c.known(method); err != nil {
		return err
	}
	if d < 0 {
		return fmt.Errorf("localdc: Delay is %v: want 0 or more", d)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.script.delays[method] = d
	return nil
}

// Hold keeps back the answers of a method until release is called, which sends
// them in order. The calls take effect when they arrive, other calls go on.
// Calling release again does nothing.
func (c *Cloud) Hold(method string) (release func(), err error) {
	if err := c.known(method); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	h := &hold{}
	c.script.holds[method] = append(c.script.holds[method], h)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		holds := c.script.holds[method]
		for i := range holds {
			if holds[i] == h {
				c.script.holds[method] = append(holds[:i:i], holds[i+1:]...)
				break
			}
		}
		for _, send := range h.kept {
			send()
		}
		h.kept = nil
	}, nil
}
