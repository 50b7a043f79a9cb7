package flood

import (
	"slices"
	"time"

	"github.com/gotd/td/tgerr"
)

// note keeps that something changed under the key.
func (g *Guard) note(k refusalKey) {
	// One that was cleared is kept until somebody asks, which is why there is a bound.
	if g.changed != nil && len(g.changed) < 2*maxRefusals {
		g.changed[k] = true
	}
}

// Changes returns the refusals that were counted, tripped or were cleared since the last
// call, each once and as it stands now, sorted as in [Guard.Snapshot]. One that was
// cleared, or that a success refuted, has neither At nor Tripped: a store is to forget its
// [Refusal.Key], and other processes learn of it by [Guard.Restore]. What merely ran out is
// not told, and neither is what Restore brought.
//
// It is empty without [GuardOptions].Journal. It does not block, and costs an atomic load
// when nothing changed. Several readers share the changes.
func (g *Guard) Changes() []Refusal {
	if g.pending.Load() == 0 {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sweep(g.opts.Clock.Now())
	var out []Refusal
	for k := range g.changed {
		if r := g.counts[k]; r != nil {
			out = append(out, r.clone())
		} else {
			out = append(out, Refusal{Kind: k.kind, Method: k.method, DC: k.dc})
		}
	}
	clear(g.changed)
	g.tally()
	sortRefusals(out)
	return out
}

// Restore takes in refusals that a store kept, or that another process met: their counts
// are joined, and what has tripped there has tripped here. What is older than the period
// and has not tripped is ignored, and so is what lies in the future, should the
// clock have been set back. One with neither At nor Tripped, as [Guard.Changes] tells of
// what was cleared, clears what stands under its [Refusal.Key]. Should a store tell, within a
// minute, of a refusal from before it was cleared, that is ignored.
//
// Refusals that no guard can have counted are ignored: of a kind that does not exist, of a
// method that the kind cannot be about, with another code or message. Restore trips
// nothing by itself: if counts of two processes make too many, the next refusal does. It does
// not block.
func (g *Guard) Restore(refusals ...Refusal) {
	if g.opts.Off {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.opts.Clock.Now()
	g.sweep(now)
	for _, told := range refusals {
		if k, ok := told.key(); ok {
			g.restore(k, told, now)
		}
	}
	g.tally()
}

func (g *Guard) restore(k refusalKey, told Refusal, now time.Time) {
	if len(told.At) == 0 && told.Tripped.IsZero() {
		delete(g.counts, k)
		delete(g.changed, k)
		return
	}
	if refusalKind(k.method, tgerr.New(told.Code, told.Message)) != k.kind {
		return
	}
	known := g.counts[k]
	if known == nil && len(g.counts) >= maxRefusals {
		return
	}
	cleared := g.cleared[k]
	var at []time.Time
	for _, t := range told.At {
		if !t.After(now) && !t.Before(cleared) {
			at = append(at, t)
		}
	}
	tripped := told.Tripped
	if tripped.After(now) {
		tripped = now
	}
	if tripped.Before(cleared) {
		tripped = time.Time{}
	}
	if known != nil {
		at = append(at, known.At...)
		if !known.Tripped.IsZero() {
			tripped = known.Tripped
		}
	}
	slices.SortFunc(at, time.Time.Compare)
	at = slices.CompactFunc(at, time.Time.Equal)
	switch {
	case tripped.IsZero():
		at = g.window(at, now)
	case len(at) == 0:
		at = []time.Time{tripped}
	default:
		at = g.latest(at)
	}
	if len(at) > 0 {
		g.counts[k] = &Refusal{
			Kind: k.kind, Method: k.method, DC: k.dc, Code: told.Code, Message: told.Message,
			At: slices.Clone(at), Tripped: tripped, // of at, most may have been cut off
		}
	}
}

// key is where the guard keeps the refusal; ok tells whether it can be one of a guard's.
func (r Refusal) key() (k refusalKey, ok bool) {
	k = refusalKey{kind: r.Kind, method: r.Method, dc: r.DC}
	switch r.Kind {
	case SpamLimited, AccountFrozen:
		ok = r.Method != "" && r.DC == 0
	case AccountBanned:
		ok = (r.Method == "" || needsNoLogin(r.Method)) && r.DC == 0
	case AuthGone:
		ok = r.Method == ""
	}
	return k, ok && len(r.Method) <= maxMethod
}
