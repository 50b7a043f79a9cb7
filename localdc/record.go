package localdc

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Call is one request as it arrived.
type Call struct {
	// Time is when it arrived, on the Cloud's clock.
	Time time.Time
	// DC is the data centre it arrived at.
	DC int
	// Method is the TL name of the innermost function, out of all wrappers.
	Method string
	// Chat is the marked id of the chat that it names, 0 for none: the id of a
	// user, minus the id of a basic group, -100… for a supergroup or a channel.
	Chat int64
	// Messages is how many messages it makes or edits; 0 for other calls.
	Messages int
	// Wait is the wait that a limit or [Cloud.Flood] ordered, in whole seconds; 0
	// for none.
	Wait time.Duration
	// Inside tells whether the call arrived inside a flood that stood and of which
	// the client had been told: by a limit or by [Cloud.Flood], not by a script of
	// [Cloud.Fail]. Since is how long before the call it had first been told, on the
	// Cloud's clock. A call that was on the wire when the flood began is inside it
	// too, with a Since of about the time of a round trip.
	Inside bool
	Since  time.Duration
	// Code and Error are what it was answered with; 0 and "" for a result. A
	// flood has the code 420, whether a limit, [Cloud.Flood] or a script of
	// [Cloud.Fail] ordered it.
	Code  int
	Error string
}

// Flooded tells whether the call was answered with a wait (code 420).
func (c Call) Flooded() bool { return c.Code == floodCode }

// Total sums up calls.
type Total struct {
	// Calls counts all of them, Messages the messages of those that passed.
	Calls, Messages int
	// Floods counts those answered with the code 420, Errors those answered with
	// any other error.
	Floods, Errors int
}

// Record is what arrived at a Cloud. It belongs to the caller.
type Record struct {
	// Calls has every request in order of arrival, service messages of the
	// protocol (pings, acknowledgements) apart.
	Calls []Call
	// Total sums up all of them, Methods by TL name, Chats by marked id.
	Total   Total
	Methods map[string]Total
	Chats   map[int64]Total
}

// Floods returns the calls that were answered with a wait, in order of arrival.
func (r Record) Floods() []Call { return r.filter(Call.Flooded) }

// Inside returns the calls that arrived inside a flood of which the client had
// been told for at least the grace, in order of arrival. A grace of 0 gives those
// too that were on the wire when the flood began; one of a few round trips gives
// only what a client should not have sent.
func (r Record) Inside(grace time.Duration) []Call {
	return r.filter(func(c Call) bool { return c.Inside && c.Since >= grace })
}

func (r Record) filter(match func(Call) bool) []Call {
	var out []Call
	for _, c := range r.Calls {
		if match(c) {
			out = append(out, c)
		}
	}
	return out
}

func (t Total) with(c Call) Total {
	t.Calls++
	switch {
	case c.Flooded():
		t.Floods++
	case c.Code != 0:
		t.Errors++
	default:
		t.Messages += c.Messages
	}
	return t
}

func (r *Record) add(c Call) {
	r.Calls = append(r.Calls, c)
	r.Total = r.Total.with(c)
	r.Methods[c.Method] = r.Methods[c.Method].with(c)
	if c.Chat != 0 {
		r.Chats[c.Chat] = r.Chats[c.Chat].with(c)
	}
}

func newRecord() Record {
	return Record{Methods: map[string]Total{}, Chats: map[int64]Total{}}
}

// Record returns what has arrived so far.
func (c *Cloud) Record() Record {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Record{
		Calls:   slices.Clone(c.record.Calls),
		Total:   c.record.Total,
		Methods: maps.Clone(c.record.Methods),
		Chats:   maps.Clone(c.record.Chats),
	}
}

// AwaitCall returns the first call of the record that match accepts, and waits
// for it if it has not arrived. A call is in the record before its answer
// leaves. It blocks until there is one, ctx is done (the error wraps ctx's) or
// the Cloud is closed ([ErrClosed]).
func (c *Cloud) AwaitCall(ctx context.Context, match func(Call) bool) (Call, error) {
	for seen := 0; ; {
		c.mu.Lock()
		if seen > len(c.record.Calls) {
			seen = 0 // it was reset
		}
		calls, changed := slices.Clone(c.record.Calls[seen:]), c.changed
		c.mu.Unlock()
		if i := slices.IndexFunc(calls, match); i >= 0 {
			return calls[i], nil
		}
		seen += len(calls)
		if err := c.wait(ctx, changed); err != nil {
			return Call{}, fmt.Errorf("localdc: await a call: %w", err)
		}
	}
}

// ResetRecord empties the record, so that what follows is counted alone.
// Limits and floods stay as they are.
func (c *Cloud) ResetRecord() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.record = newRecord()
}
