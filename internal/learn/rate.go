package learn

import (
	"fmt"
	"time"
)

// Options are the choices of a [Rate]. The zero value is right for most.
type Options struct {
	// Floor is the lowest rate, in calls a second, that floods can bring the rate
	// down to: from a millionth to the ceiling. 0 stands for a hundredth of the
	// ceiling.
	Floor float64
}

// Rate is a rate below a configured ceiling that is learned from floods. Make one
// with [New].
//
// It is not safe for concurrent use: whoever owns the limiter that it steers has a
// lock, and guards it with that. No method blocks or reads a clock. The times that
// are passed in must come from one clock; one that lies before the last counts as
// the last.
type Rate struct {
	options Options
	ceiling float64
	floor   float64

	rate    float64 // in force
	told    float64 // in force when Moved last said that it had moved
	learned bool    // whether floods have lowered it; the next six matter only then

	held  float64 // calls a second that are believed to hold
	spare float64 // calls that the server takes at once beyond its rate
	low   float64 // where the climb began
	hold  float64 // seconds of use after which the probe begins
	where float64 // held when the limit was last seen to move
	stood float64 // seconds of use since then
	used  float64 // seconds of use since the last lowering
	idle  float64 // seconds of allowance that lie unused

	bet     Bet  // what held rests on, if it is a bet
	sure    bool // held was doubted since it last fell, and the doubt was wrong
	follows bool // another Rate, which grows in its place

	number  uint64    // of the last call
	last    time.Time // when it went out
	over    float64   // calls that went out beyond the rate in force: the client's own burst
	since   Call      // whose flood was the last to lower the rate
	lowered uint64    // the last call before that took effect
	again   time.Time // when the next one went out
	before  uint64    // lowered, one flood earlier
	burst   bool      // the last flood told what the server takes at once
	flooded time.Time // when the call of the last flood went out, over restarts
}

// Call is a call that went out, with what the Rate knew at that moment. The zero
// value is a call of which nothing is known, and its flood counts for nothing.
type Call struct {
	number uint64
	at     time.Time
	rate   float64 // in force
	over   float64 // calls beyond it, this one included
	probed float64 // seconds of use since the beginning of a probe; 0 is no probe
}

// New returns a Rate that stands at the ceiling: the configured limit, from a
// millionth to a thousand million calls a second. The error names what is wrong with
// it or with the options.
func New(ceiling float64, options Options) (*Rate, error) {
	if err := checkCeiling(ceiling); err != nil {
		return nil, err
	}
	if f := options.Floor; f != 0 && !(f >= slowest && f <= ceiling) {
		return nil, fmt.Errorf("learn: Floor is %v, want 0 or from %v to the ceiling of %v calls a second", f, slowest, ceiling)
	}
	r := &Rate{options: options}
	r.setCeiling(ceiling)
	r.told = ceiling
	return r, nil
}

const slowest, fastest = 1e-6, 1e9 // calls a second

func checkCeiling(ceiling float64) error {
	if !(ceiling >= slowest && ceiling <= fastest) {
		return fmt.Errorf("learn: ceiling is %v, want from %v to %v calls a second", ceiling, slowest, fastest)
	}
	return nil
}

// PerSecond is the effective rate in calls a second, from the floor to the ceiling.
// It changes only by Sent, Flooded, SetCeiling, Restore and Follow, and not with time.
func (r *Rate) PerSecond() float64 { return r.rate }

// Ceiling is the configured limit in calls a second.
func (r *Rate) Ceiling() float64 { return r.ceiling }

// Learned reports whether the rate is what floods have taught: it is then below the
// ceiling, or has come back to it within the last minute of use.
func (r *Rate) Learned() bool { return r.learned }

// Burst is what is left of the burst that is configured beside the ceiling: it shrinks
// as the rate does, and to what the server has been seen to take at once, which can be
// 1. It is never below 1; a configured burst below 1 comes back as it is.
func (r *Rate) Burst(configured float64) float64 {
	if !r.learned {
		return configured
	}
	return min(configured, max(1, min(configured*r.rate/r.ceiling, r.spare)))
}

// SetCeiling changes the configured limit. What has been learned stays, cut to the new
// ceiling; a floor above the new ceiling follows it down. An error, for a ceiling that
// New would refuse, changes nothing.
func (r *Rate) SetCeiling(ceiling float64) error {
	if err := checkCeiling(ceiling); err != nil {
		return err
	}
	r.setCeiling(ceiling)
	return nil
}

func (r *Rate) setCeiling(ceiling float64) {
	r.ceiling = ceiling
	r.floor = min(r.options.Floor, ceiling)
	if r.floor == 0 {
		r.floor = ceiling / 100
	}
	r.believe(r.held)
	r.move()
}

// believe sets what is believed to hold.
func (r *Rate) believe(held float64) { r.held = min(max(held, r.floor), r.ceiling) }
