package learn

import (
	"fmt"
	"math"
	"time"
)

// State is what a Rate has learned, to be kept over a restart. It goes through
// encoding/json as it is. The zero value is a Rate that has learned nothing.
type State struct {
	// Held is the rate that is believed to hold, in calls a second; 0 if no flood has
	// lowered the rate.
	Held float64 `json:"held"`
	// Spare is how many calls the server takes at once beyond its rate.
	Spare float64 `json:"spare"`
	// Used is for how many seconds the rate has been used since the last flood.
	Used float64 `json:"used"`
	// Hold is after how many seconds of use the rate is probed; 0 is for the soonest.
	Hold float64 `json:"hold,omitempty"`
	// Stood is for how many seconds of use the limit has not moved much.
	Stood float64 `json:"stood,omitempty"`
	// Flooded is when the call went out whose flood lowered the rate last.
	Flooded time.Time `json:"flooded"`

	// Sure tells that Held was doubted, and was right.
	Sure bool `json:"sure,omitempty"`

	// Sent is how many calls have gone out since then, Again when the first of them did,
	// and Bet what Held rests on. They are for Follow.
	Sent  uint64    `json:"sent,omitempty"`
	Again time.Time `json:"again,omitzero"`
	Bet   Bet       `json:"bet,omitzero"`
}

// Bet is a probe from which more was concluded than had held before.
type Bet struct {
	Before float64 `json:"before"` // what had held, calls a second; 0 is no bet
	Base   float64 `json:"base"`   // where the probe began, calls a second
	Length float64 `json:"length"` // its seconds of use
	// Doubt tells that the probe showed nothing new, and that a smaller spare was assumed
	// to see whether that was right.
	Doubt bool `json:"doubt,omitempty"`
}

// State returns what has been learned.
func (r *Rate) State() State {
	if !r.learned {
		return State{}
	}
	return State{
		Held: r.held, Spare: r.spare, Used: r.used, Hold: r.hold, Stood: r.stood, Sure: r.sure, Flooded: r.flooded.Round(0),
		Sent: r.number - r.lowered, Again: r.again.Round(0), Bet: r.bet,
	}
}

// Restore takes over a state, in place of what has been learned. It begins at or below
// the plateau, never in a probe. A Held outside of floor and ceiling is cut to them,
// and a Flooded that lies up to a day after now counts as now, since clocks are set
// back. An error names what is wrong with a state that no Rate can have given: a number
// that is negative or not finite, or a time more than a day ahead. The Rate is then as
// it was.
func (r *Rate) Restore(state State, now time.Time) error {
	if err := state.check(now); err != nil {
		return err
	}
	r.take(state)
	r.used = min(state.Used, r.hold/2) // a crash loop probes nothing
	r.low = beta * r.plateau()
	r.flooded = state.Flooded
	if r.flooded.After(now) {
		r.flooded = now
	}
	r.over, r.idle, r.bet = 0, 0, Bet{}
	r.since, r.before, r.lowered, r.burst = Call{}, r.number, r.number, false
	r.move()
	return nil
}

// Follow takes over all that another Rate knows, and how far it has come since its last
// flood, in a probe too. Of several that share one limit, one leads and the others follow
// what it tells from time to time: were each to go its own way, the fastest would be held
// up by the slowest and take its own rate for one that holds. A Rate that follows does
// not grow, until a flood lowers it, which makes it the one to lead, or Lead is called.
// The error is as Restore's.
//
// Each should be told with Sent of the calls of all.
func (r *Rate) Follow(state State, now time.Time) error {
	if err := state.check(now); err != nil {
		return err
	}
	r.take(state)
	r.used, r.bet, r.follows = state.Used, state.Bet, true
	if !state.Flooded.Equal(r.flooded) {
		r.before, r.lowered, r.over, r.burst = r.lowered, r.number, 0, false
		r.low = beta * r.plateau()
	}
	r.number = max(r.number, r.lowered+min(state.Sent, maxSent))
	r.flooded, r.again = state.Flooded, state.Again
	r.since = Call{number: max(1, r.lowered), at: state.Flooded}
	r.move()
	return nil
}

// maxSent bounds what is believed of a state: more calls than go out in a year.
const maxSent = 1 << 40

// Lead lets a Rate grow that has followed another, which is no longer there.
func (r *Rate) Lead() { r.follows = false }

func (r *Rate) take(state State) {
	r.learned, r.follows = state.Held > 0, false
	r.believe(state.Held)
	r.spare = max(noSpare, state.Spare)
	r.hold = min(max(state.Hold, probeAfter), probeLast)
	r.where, r.stood, r.sure = r.held, state.Stood, state.Sure
}

// check names what is wrong with a state that no Rate can have given.
func (state State) check(now time.Time) error {
	for _, field := range []struct {
		name  string
		value float64
	}{{"held", state.Held}, {"spare", state.Spare}, {"used", state.Used}, {"hold", state.Hold}, {"stood", state.Stood},
		{"bet.before", state.Bet.Before}, {"bet.base", state.Bet.Base}, {"bet.length", state.Bet.Length}} {
		if !(field.value >= 0) || math.IsInf(field.value, 1) {
			return fmt.Errorf("learn: restore: %s is %v, want a finite number, at least 0", field.name, field.value)
		}
	}
	if state.Flooded.Sub(now) > 24*time.Hour {
		return fmt.Errorf("learn: restore: flooded is %v, which is more than a day after %v",
			state.Flooded.Format(time.RFC3339), now.Format(time.RFC3339))
	}
	return nil
}
