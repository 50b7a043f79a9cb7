package localdc

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// chatLimit is what one chat has instead of the limit that all have.
type chatLimit struct {
	rate   Rate
	window Window
}

// SetLimit gives this chat a bucket of its own for messages and edits, private
// chat or group, in place of [Limits].Chat and [Limits].Group; the zero Rate
// takes it back. With [Chat.SetWindow] the chat has both. What was used of the
// chat's bucket or window is carried over as by [Cloud.SetLimits].
func (c *Chat) SetLimit(r Rate) error {
	if err := r.validate("SetLimit"); err != nil {
		return err
	}
	c.limit(func(l *chatLimit) { l.rate = r })
	return nil
}

// SetWindow gives this chat a sliding window of its own for messages and edits,
// private chat or group, in place of [Limits].Chat and [Limits].Group; the zero
// Window takes it back. See [Chat.SetLimit].
func (c *Chat) SetWindow(w Window) error {
	if err := w.validate("SetWindow"); err != nil {
		return err
	}
	c.limit(func(l *chatLimit) { l.window = w })
	return nil
}

func (c *Chat) limit(change func(*chatLimit)) {
	c.cloud.mu.Lock()
	defer c.cloud.mu.Unlock()
	own := c.cloud.judge.chats[c.MarkedID()]
	change(&own)
	c.cloud.judge.chats[c.MarkedID()] = own
	c.cloud.retune()
}

// SetSlowMode lets one message in each d through to the chat, 0 for no slow
// mode. Only supergroups have one, and d is 0, 5, 10, 30, 60, 300, 900 or 3600
// seconds; anything else is an error. Unlike Telegram, it holds for the bot too,
// though it administers the group: that is what it is for here.
func (c *Chat) SetSlowMode(d time.Duration) error {
	if c.kind != kindGroup {
		return errors.New("localdc: slow mode is for supergroups: see AddGroup")
	}
	if !slices.Contains([]time.Duration{0, 5, 10, 30, 60, 300, 900, 3600}, d/time.Second) || d%time.Second != 0 {
		return fmt.Errorf("localdc: slow mode is %v: want 0, 5, 10, 30, 60, 300, 900 or 3600 s", d)
	}
	c.cloud.mu.Lock()
	defer c.cloud.mu.Unlock()
	c.cloud.judge.slow[c.MarkedID()] = d
	c.cloud.retune()
	return nil
}
