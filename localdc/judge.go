package localdc

import (
	"strconv"
	"time"

	"github.com/gotd/td/tgerr"
)

// floodCode is the error code of every wait.
const floodCode = 420

// gateKind says what a limit is for.
type gateKind byte

const (
	gateAccount gateKind = iota
	gateChat
	gateGroup
	gateMethod
	gateParts
	gateSlow
)

// gateKey names one limit: a kind and the chat, method or data centre it is for.
type gateKey struct {
	kind   gateKind
	id     int64 // marked id of the chat, or id of the data centre
	method string
}

// gate is one limit at work: what meters it, and the flood that stands.
type gate struct {
	bucket bucket
	window window
	until  time.Duration
}

// charge is what a call would take from one gate.
type charge struct {
	key  gateKey
	cost int
}

// flood is a wait that was ordered.
type flood struct {
	kind    gateKind
	seconds int64
}

func (f flood) rpc() *tgerr.Error {
	name := "FLOOD_WAIT_"
	switch f.kind {
	case gateSlow:
		name = "SLOWMODE_WAIT_"
	case gateParts:
		name = "FLOOD_PREMIUM_WAIT_"
	}
	return tgerr.New(floodCode, name+strconv.FormatInt(f.seconds, 10))
}

// judge decides which call passes. Its owner holds a lock around every method.
type judge struct {
	limits Limits
	slow   map[int64]time.Duration // by marked id
	gates  map[gateKey]*gate
}

func newJudge(l Limits) judge {
	return judge{limits: l.clone(), slow: map[int64]time.Duration{}, gates: map[gateKey]*gate{}}
}

// limit gives the rate or the window of a key; both are zero where there is no limit.
func (j *judge) limit(k gateKey) (Rate, Window) {
	switch k.kind {
	case gateAccount:
		return j.limits.Account, Window{}
	case gateChat:
		return j.limits.Chat, Window{}
	case gateGroup:
		return Rate{}, j.limits.Group
	case gateMethod:
		return j.limits.Methods[k.method], Window{}
	case gateParts:
		return j.limits.Parts, Window{}
	default:
		if d := j.slow[k.id]; d > 0 {
			return Rate{}, Window{Limit: 1, Period: d}
		}
		return Rate{}, Window{}
	}
}

// gate returns the gate of a key, nil where there is no limit.
func (j *judge) gate(k gateKey) *gate {
	if g, ok := j.gates[k]; ok {
		return g
	}
	rate, win := j.limit(k)
	if rate == (Rate{}) && win == (Window{}) {
		return nil
	}
	g := &gate{bucket: newBucket(rate), window: newWindow(win)}
	j.gates[k] = g
	return g
}

// admit tells whether a call with these charges may pass at now. It takes
// nothing: see take. A refusal is remembered, for it stands as long as it was
// told, and a call made inside it lengthens it.
func (j *judge) admit(now time.Duration, charges []charge) (flood, bool) {
	var worst *gate
	var kind gateKind
	for _, c := range charges {
		g := j.gate(c.key)
		if g != nil && g.until > now && (worst == nil || g.until > worst.until) {
			worst, kind = g, c.key.kind
		}
	}
	if worst != nil {
		worst.until += j.limits.lengthen()
		return flood{kind: kind, seconds: wholeSeconds(worst.until - now)}, false
	}

	longest := j.limits.Slack
	for _, c := range charges {
		g := j.gate(c.key)
		if g == nil {
			continue
		}
		wait := max(g.bucket.wait(now, c.cost), g.window.wait(now, c.cost))
		if wait > longest {
			longest, worst, kind = wait, g, c.key.kind
		}
	}
	if worst == nil {
		return flood{}, true
	}
	f := flood{kind: kind, seconds: wholeSeconds(longest)}
	worst.until = now + time.Duration(f.seconds)*time.Second
	return f, false
}

// take pays the charges of a call that admit let pass.
func (j *judge) take(now time.Duration, charges []charge) {
	for _, c := range charges {
		if g := j.gate(c.key); g != nil {
			g.bucket.take(now, c.cost)
			g.window.take(now, c.cost)
		}
	}
}

// retune brings every gate in line with the limits after they changed. A flood
// that stands goes on standing; a limit that is gone takes its flood along.
func (j *judge) retune(now time.Duration) {
	for k, g := range j.gates {
		rate, win := j.limit(k)
		if rate == (Rate{}) && win == (Window{}) {
			delete(j.gates, k)
			continue
		}
		g.bucket.retune(now, rate)
		g.window.retune(win)
	}
}

// wholeSeconds rounds a wait up, as it is told to the client.
func wholeSeconds(d time.Duration) int64 {
	return int64((d + time.Second - 1) / time.Second)
}
