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
}

// State returns what has been learned.
func (r *Rate) State() State {
	if !r.learned {
		return State{}
	}
	return State{Held: r.held, Spare: r.spare, Used: r.used, Hold: r.hold, Stood: r.stood, Flooded: r.flooded.Round(0)}
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
	r.from, r.over, r.idle = 0, 0, 0
	r.since, r.before, r.lowered, r.burst = Call{}, r.number, r.number, false
	r.move()
	return nil
}

// Follow takes over how far another Rate has come since a flood that both know of, in a
// probe too. Of several that share one limit, one leads and the others follow it from
// time to time: were each to go its own way, the fastest would be held up by the slowest
// and take its own rate for one that holds. The error is as Restore's.
func (r *Rate) Follow(state State, now time.Time) error {
	if err := state.check(now); err != nil {
		return err
	}
	r.take(state)
	r.used = state.Used
	r.move()
	return nil
}

func (r *Rate) take(state State) {
	r.learned = state.Held > 0
	r.believe(state.Held)
	r.spare = max(noSpare, state.Spare)
	r.hold = min(max(state.Hold, probeAfter), probeLast)
	r.where, r.stood = r.held, state.Stood
}

// check names what is wrong with a state that no Rate can have given.
func (state State) check(now time.Time) error {
	for _, field := range []struct {
		name  string
		value float64
	}{{"held", state.Held}, {"spare", state.Spare}, {"used", state.Used}, {"hold", state.Hold}, {"stood", state.Stood}} {
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
