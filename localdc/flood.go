package localdc

import (
	"fmt"
	"strconv"
	"time"

	"github.com/gotd/td/tgerr"
)

// floodCode is the error code of every wait.
const floodCode = 420

// What waits are called.
const (
	floodWait    = "FLOOD_WAIT_"
	slowModeWait = "SLOWMODE_WAIT_"
	premiumWait  = "FLOOD_PREMIUM_WAIT_"
)

// standing is a flood that stands until a moment.
type standing struct {
	until time.Duration
	// told is when the client was first told, if it was: what comes later comes
	// inside a flood that the client could know of.
	known bool
	told  time.Duration
}

// scoped is a flood that a test put on a scope.
type scoped struct {
	Scope
	standing
}

// refusal is the answer to a call that has to wait.
type refusal struct {
	wait    string
	seconds int64
	inside  bool          // it came inside a flood that had been told
	since   time.Duration // for how long it had been told
}

func (r refusal) rpc() *tgerr.Error {
	return tgerr.New(floodCode, r.wait+strconv.FormatInt(r.seconds, 10))
}

// meeting is a call on its way past the floods that stand.
type meeting struct {
	now   time.Duration
	worst *standing
	refusal
}

// meet notes a flood that the call falls under.
func (m *meeting) meet(s *standing, wait string) {
	if s.until <= m.now {
		return
	}
	if s.known {
		m.inside, m.since = true, max(m.since, m.now-s.told)
	}
	if m.worst == nil || s.until > m.worst.until {
		m.worst, m.wait = s, wait
	}
}

// refused is the answer when a flood was met. The first call to meet a flood is
// told of it, any other lengthens it.
func (m *meeting) refused(lengthen time.Duration) refusal {
	if m.worst.known {
		m.worst.until += lengthen
	} else {
		m.worst.known, m.worst.told = true, m.now
	}
	m.seconds = wholeSeconds(m.worst.until - m.now)
	return m.refusal
}

// wholeSeconds rounds a wait up, as it is told to the client.
func wholeSeconds(d time.Duration) int64 {
	return int64((d + time.Second - 1) / time.Second)
}

// Flood puts a flood on a scope, as if one of Telegram's unknown limits had
// been passed: from now on, for d, every call in the scope is refused with
// FLOOD_WAIT_X, or FLOOD_PREMIUM_WAIT_X if the scope's Kind is [Parts]. X is what
// is left, rounded up. The first call that meets it is told of it; any other that
// arrives before its end is inside it (see [Call].Inside) and lengthens it by
// [Limits].Lengthen.
//
// A flood that stands on the same scope is replaced, and ended by a d of 0. It is
// an error to ask for less than that or for more than a year, or for a method, chat
// or data centre that does not exist.
func (c *Cloud) Flood(s Scope, d time.Duration) error {
	if err := c.validate(s); err != nil {
		return err
	}
	if d < 0 || d > maxLength {
		return fmt.Errorf("localdc: Flood of %v is %v: want 0 to a year", s, d)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.judge.flood(s, c.elapsed(c.opts.Clock.Now()), d)
	return nil
}
