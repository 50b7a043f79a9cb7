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
	// Flooded is when the call went out whose flood lowered the rate last.
	Flooded time.Time `json:"flooded"`
}

// State returns what has been learned.
func (r *Rate) State() State {
	if !r.learned {
		return State{}
	}
	return State{Held: r.held, Spare: r.spare, Used: r.used, Flooded: r.flooded.Round(0)}
}

// Restore takes over a state, in place of what has been learned. It begins at or below
// the plateau, never in a probe. A Held outside of floor and ceiling is cut to them,
// and a Flooded that lies up to a day after now counts as now, since clocks are set
// back. An error names what is wrong with a state that no Rate can have given: a number
// that is negative or not finite, or a time more than a day ahead. The Rate is then as
// it was.
func (r *Rate) Restore(state State, now time.Time) error {
	for _, field := range []struct {
		name  string
		value float64
	}{{"held", state.Held}, {"spare", state.Spare}, {"used", state.Used}} {
		if !(field.value >= 0) || math.IsInf(field.value, 1) {
			return fmt.Errorf("learn: restore: %s is %v, want a finite number, at least 0", field.name, field.value)
		}
	}
	if state.Flooded.Sub(now) > 24*time.Hour {
		return fmt.Errorf("learn: restore: flooded is %v, which is more than a day after %v",
			state.Flooded.Format(time.RFC3339), now.Format(time.RFC3339))
	}
	r.learned = state.Held > 0
	r.believe(state.Held)
	r.spare = max(noSpare, state.Spare)
	r.low = beta * r.plateau()
	r.used, r.hold = min(state.Used, checkAfter), probeAfter
	r.flooded = state.Flooded
	if r.flooded.After(now) {
		r.flooded = now
	}
	r.from, r.over, r.idle = 0, 0, 0
	r.since, r.before, r.lowered, r.burst = Call{}, r.number, r.number, false
	r.move()
	return nil
}
