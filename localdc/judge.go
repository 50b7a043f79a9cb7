package localdc

import (
	"slices"
	"time"
)

// gateKind says what a limit is for.
type gateKind byte

const (
	gateAccount gateKind = iota
	gateReads
	gateWrites
	gateChat
	gateGroup
	gateMethod
	gateChatMethod
	gateParts
	gateSlow
)

// wait is what a flood of a limit of this kind is called.
func (k gateKind) wait() string {
	switch k {
	case gateSlow:
		return slowModeWait
	case gateParts:
		return premiumWait
	default:
		return floodWait
	}
}

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
	flood  standing
}

// charge is what a call would take from one gate.
type charge struct {
	key  gateKey
	cost int
}

// judge decides which call passes. Its owner holds a lock around every method.
type judge struct {
	limits Limits
	chats  map[int64]chatLimit     // by marked id
	slow   map[int64]time.Duration // by marked id
	gates  map[gateKey]*gate
	floods []*scoped // that a test ordered
}

func newJudge(l Limits) judge {
	return judge{
		limits: l.clone(), chats: map[int64]chatLimit{}, slow: map[int64]time.Duration{}, gates: map[gateKey]*gate{},
	}
}

// limit gives the rate and the window of a key; both are zero where there is no limit.
func (j *judge) limit(k gateKey) (Rate, Window) {
	switch k.kind {
	case gateAccount:
		return j.limits.Account, Window{}
	case gateReads:
		return j.limits.Reads, Window{}
	case gateWrites:
		return j.limits.Writes, Window{}
	case gateChat, gateGroup:
		if own := j.chats[k.id]; own != (chatLimit{}) {
			return own.rate, own.window
		}
		if k.kind == gateChat {
			return j.limits.Chat, Window{}
		}
		return Rate{}, j.limits.Group
	case gateMethod:
		return j.limits.Methods[k.method], Window{}
	case gateChatMethod:
		return j.limits.ChatMethods[k.method], Window{}
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
func (j *judge) admit(now time.Duration, s subject, charges []charge) (refusal, bool) {
	m := meeting{now: now}
	for _, c := range charges {
		if g := j.gate(c.key); g != nil {
			m.meet(&g.flood, c.key.kind.wait())
		}
	}
	for _, f := range j.floods {
		if f.has(s) {
			m.meet(&f.standing, f.wait())
		}
	}
	if m.worst != nil {
		return m.refused(j.limits.lengthen()), false
	}

	longest := j.limits.Slack
	var worst *gate
	var kind gateKind
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
		return refusal{}, true
	}
	r := refusal{wait: kind.wait(), seconds: wholeSeconds(longest)}
	worst.flood = standing{until: now + time.Duration(r.seconds)*time.Second, known: true, told: now}
	return r, false
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

// flood lets a flood stand on a scope for d, instead of the one that is there.
func (j *judge) flood(s Scope, now, d time.Duration) {
	j.floods = slices.DeleteFunc(j.floods, func(f *scoped) bool { return f.Scope == s || f.until <= now })
	j.floods = append(j.floods, &scoped{Scope: s, standing: standing{until: now + d}})
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
