package main

import (
	"fmt"
	"io"
	"math"
	"sync"
	"time"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/localdc"
	"github.com/weirtg/weir/ratelimit"
)

// tally is an invoke.Observer that counts what a report tells.
type tally struct {
	mu     sync.Mutex
	counts counts
}

// counts is what happened so far.
type counts struct {
	calls   map[classify.Category]int // sent, retries included; Global is all of them
	waits   int                       // calls that waited before they were sent
	waited  time.Duration             // all of them together
	longest time.Duration
	floods  int // floods that the client was answered with
}

// Observe implements invoke.Observer.
func (t *tally) Observe(e invoke.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &t.counts
	switch e.Kind {
	case invoke.Admitted:
		if c.calls == nil {
			c.calls = make(map[classify.Category]int)
		}
		c.calls[e.Category]++
		c.calls[classify.Global]++
		if e.Wait > 0 {
			c.waits++
			c.waited += e.Wait
			c.longest = max(c.longest, e.Wait)
		}
	case invoke.Flooded:
		c.floods++
	}
}

// now returns a copy.
func (t *tally) now() counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.counts
	c.calls = make(map[classify.Category]int, len(t.counts.calls))
	for category, n := range t.counts.calls {
		c.calls[category] = n
	}
	return c
}

// leastTime is the shortest time in which the calls could have been sent, and the
// limit that makes it so: each bucket has to refill what it did not hold at the
// start. The data centre's buckets are taken as full then, since it does not tell;
// that can only make the time shorter. chat is the client's limit for a chat, zero for
// none, and each how many messages a chat of the broadcast got, none of which had got
// any before. People's chats do not count: a broadcast is no better for their talking
// as fast as they may. The sum is how the time is reckoned.
func leastTime(before map[classify.Category]ratelimit.GateStats, calls map[classify.Category]int, chat ratelimit.Limit, dc localdc.Limits, messages, each int) (_ time.Duration, limit, sum string) {
	var least float64
	limit = "none"
	consider := func(name string, n int, tokens, rate float64) {
		missing := float64(n) - tokens
		if rate > 0 && missing/rate > least { // where there is no limit, the rate is 0
			least, limit = missing/rate, name
			sum = fmt.Sprintf("%d calls, of which %.2f could go at once; (%d − %.2f) / %g", n, tokens, n, tokens, rate)
		}
	}
	for category, stats := range before {
		consider("client "+stats.Name+" "+stats.Limit.String(), calls[category], stats.Tokens, stats.Limit.Rate)
	}
	consider("client chat "+chat.String(), each, float64(chat.Burst), chat.Rate)
	consider("data centre account", messages, float64(dc.Account.Burst), dc.Account.PerSecond)
	consider("data centre chat", each, float64(dc.Chat.Burst), dc.Chat.PerSecond)
	return time.Duration(least * float64(time.Second)), limit, sum
}

// traffic is the part of a report that is about limits.
type traffic struct {
	// Calls is how many calls the client sent, retries included.
	Calls int `json:"calls"`
	// ClientFloods is how many of them were answered with a flood, as the client saw.
	ClientFloods int `json:"client_floods"`
	// Waits is how many had to wait in the client, WaitedSeconds how long they did
	// together, LongestWaitSeconds the longest.
	Waits              int     `json:"waits"`
	WaitedSeconds      float64 `json:"waited_seconds"`
	LongestWaitSeconds float64 `json:"longest_wait_seconds"`
	// TokensLeft is what the client could have sent at once at the end, by category.
	TokensLeft map[classify.Category]float64 `json:"tokens_left"`
	// TypingSent and TypingSkipped count typing notices; of those skipped,
	// TypingBusy were not tried because of congestion, the others got no permit.
	TypingSent    int64 `json:"typing_sent"`
	TypingSkipped int64 `json:"typing_skipped"`
	TypingBusy    int64 `json:"typing_busy"`
}

func (b *bot) traffic(c counts) traffic {
	available := b.client.Available()
	for category, tokens := range available {
		available[category] = rounded(tokens)
	}
	return traffic{
		Calls:              c.calls[classify.Global],
		ClientFloods:       c.floods,
		Waits:              c.waits,
		WaitedSeconds:      seconds(c.waited),
		LongestWaitSeconds: seconds(c.longest),
		TokensLeft:         available,
		TypingSent:         b.count.typing.Load(),
		TypingSkipped:      b.count.busyTyping.Load() + b.count.noRoom.Load(),
		TypingBusy:         b.count.busyTyping.Load(),
	}
}

// text tells of the calls, so many of which were messages that arrived.
func (t traffic) text(w io.Writer, messages int) {
	fmt.Fprintf(w, "calls        %d: %d messages, %d typing notices, %d others (logging in, updates, what was sent again)\n",
		t.Calls, messages, t.TypingSent, t.Calls-messages-int(t.TypingSent))
	fmt.Fprintf(w, "typing       %d notices sent, %d left out: %d as congestion was %g or more, %d as TryAcquire found no room\n",
		t.TypingSent, t.TypingSkipped, t.TypingBusy, busy, t.TypingSkipped-t.TypingBusy)
	fmt.Fprint(w, "tokens left ")
	for _, category := range classify.Categories() {
		fmt.Fprintf(w, " %v %.1f", category, t.TokensLeft[category])
	}
	fmt.Fprintln(w, " (calls that could go at once)")
	fmt.Fprintf(w, "waits        %d of the calls waited for their turn, %.3f s together, the longest %.3f s\n", t.Waits, t.WaitedSeconds, t.LongestWaitSeconds)
}

// seconds is d for a report: more than milliseconds nobody wants to read.
func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

func rounded(v float64) float64 { return math.Round(v*10000) / 10000 }
