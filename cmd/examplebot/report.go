package main

import (
	"fmt"
	"io"
	"math"
	"sync"
	"time"

	"github.com/weirtg/weir/invoke"
)

// traffic is the part of a report that is about limits.
type traffic struct {
	Calls              int     `json:"calls"`         // sent, retries included
	ClientFloods       int     `json:"client_floods"` // of those, answered with a flood, as the client saw
	Waits              int     `json:"waits"`         // of those, that waited in the client first
	WaitedSeconds      float64 `json:"waited_seconds"`
	LongestWaitSeconds float64 `json:"longest_wait_seconds"`
	TypingSent         int64   `json:"typing_sent"`
	TypingSkipped      int64   `json:"typing_skipped"` // because there was no room to spare
}

func (t traffic) text(w io.Writer, messages int) {
	fmt.Fprintf(w, "calls        %d: %d messages, %d typing notices, %d others (logging in, updates, what was sent again)\n",
		t.Calls, messages, t.TypingSent, t.Calls-messages-int(t.TypingSent))
	fmt.Fprintf(w, "typing       %d notices sent, %d left out as there was no room to spare\n", t.TypingSent, t.TypingSkipped)
	fmt.Fprintf(w, "waits        %d of the calls waited for their turn, %.3f s together, the longest %.3f s\n", t.Waits, t.WaitedSeconds, t.LongestWaitSeconds)
}

// tally is an invoke.Observer that counts traffic.
type tally struct {
	mu      sync.Mutex
	traffic traffic
}

// Observe implements invoke.Observer.
func (t *tally) Observe(e invoke.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e.Kind {
	case invoke.Admitted:
		t.traffic.Calls++
		if e.Wait > 0 {
			t.traffic.Waits++
			t.traffic.WaitedSeconds += e.Wait.Seconds()
			t.traffic.LongestWaitSeconds = max(t.traffic.LongestWaitSeconds, e.Wait.Seconds())
		}
	case invoke.Flooded:
		t.traffic.ClientFloods++
	}
}

// traffic returns what b did, as t counted it.
func (b *bot) traffic(t *tally) traffic {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.traffic
	r.WaitedSeconds, r.LongestWaitSeconds = rounded(r.WaitedSeconds), rounded(r.LongestWaitSeconds)
	r.TypingSent, r.TypingSkipped = b.count.typing.Load(), b.count.noTyping.Load()
	return r
}

// seconds is d for a report, to the millisecond.
func seconds(d time.Duration) float64 { return rounded(d.Round(time.Millisecond).Seconds()) }

func rounded(v float64) float64 { return math.Round(v*10000) / 10000 }
