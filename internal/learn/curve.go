package learn

import (
	"math"
	"time"
)

// The package comment says why each of these is what it is. A second of use is as many
// calls as the rate in force allows in a second.
const (
	beta       = 0.7  // a flood leaves at most this share of the rate in force
	margin     = 0.97 // the plateau, as a share of the rate that is believed to hold
	climbFor   = 3.0  // seconds of use from the lowered rate to the plateau, …
	climbCalls = 6.0  // … or so many calls, if they take longer
	probeAfter = 45.0 // seconds of use from a flood until a rate is probed
	settled    = 240  // seconds of use for which a limit has to stand to be probed less often, …
	probeShare = 0.4  // … after this share of the use for which it has stood, …
	probeLast  = 300  // … up to so many seconds
	restAfter  = 60.0 // seconds of use at the ceiling until the floods are forgotten
	slackFor   = 1.0  // seconds of allowance that may lie unused before a probe ends, …
	slackCalls = 4.0  // … or so many calls, if they take longer
	payBack    = 1.1  // a burst is forgotten as if the rate in force were so much more
	tellAt     = 0.02 // the change, as a share, that is worth telling a limiter
)

// Sent counts so many calls, of which the last goes out at now, and lets the rate grow by
// them: growth is measured in calls, so a rate that is not used stays where it is. Keep
// the Call for Flooded. Sent does not allocate. Less than 1 counts as 1, and more than
// 1000 as 1000.
//
// A call that weighs as several is several, and of those who share a rate each counts the
// calls of all.
func (r *Rate) Sent(now time.Time, calls int) Call {
	calls = min(max(1, calls), 1000)
	passed := 0.0
	if now.After(r.last) {
		if r.number > 0 {
			passed = now.Sub(r.last).Seconds()
		}
		r.last = now
	}
	if r.number == r.lowered {
		r.again = r.last
	}
	r.number += uint64(calls)
	r.over = max(0, r.over+float64(calls)-payBack*r.rate*passed)
	call := Call{number: r.number, at: r.last, rate: r.rate, over: r.over}
	if r.learned {
		call.probed = max(0, r.used-r.hold)
		if !r.follows {
			r.grow(calls, passed)
		}
	}
	return call
}

// grow lets the rate grow by some calls in passed seconds.
func (r *Rate) grow(calls int, passed float64) {
	use := float64(calls) / r.rate
	r.used += use
	r.stood += use
	r.idle = max(0, r.idle+passed-use)
	unused := r.idle > max(slackFor, slackCalls/r.rate)
	if unused {
		r.idle = 0
	}
	switch {
	case r.used <= r.hold:
	case unused: // and so the probe proves nothing: back to the plateau
		r.used, r.hold = r.climb(), probeAfter
	case r.rate == r.ceiling && r.ramp(r.plateau(), r.used-r.hold).dwell() > restAfter:
		r.learned = false
	}
	r.move()
}

// move brings the rate in force to where the curve says.
func (r *Rate) move() {
	r.rate = r.ceiling
	if r.learned {
		r.rate = min(max(r.curve(), r.floor), r.ceiling)
	}
}

// curve is the rate after so much use: as CUBIC's, concave up to what has held, flat,
// and convex beyond.
func (r *Rate) curve() float64 {
	climb := r.climb()
	switch {
	case r.used < climb:
		left := 1 - r.used/climb
		return r.plateau() - (r.plateau()-r.low)*left*left*left
	case r.used <= r.hold:
		return r.plateau()
	default:
		return r.ramp(r.plateau(), r.used-r.hold).top()
	}
}

func (r *Rate) plateau() float64 { return margin * r.held }

// climb is for how many seconds of use the rate climbs to the plateau.
func (r *Rate) climb() float64 { return max(climbFor, climbCalls/r.plateau()) }

// Moved reports whether the rate has moved enough since this was last reported, by 2 %
// or to the ceiling, to be worth telling a limiter.
func (r *Rate) Moved() bool {
	if math.Abs(r.rate-r.told) < tellAt*r.told && (r.rate != r.ceiling || r.told == r.ceiling) {
		return false
	}
	r.told = r.rate
	return true
}
