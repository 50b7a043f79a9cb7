package learn

import "math"

const (
	rampFor   = 2.4  // seconds in which a probe grows by a factor of e, …
	rampCalls = 12.0 // … or so many calls, if they take longer
	rampSteps = 100  // of the sum that stands for the integral over a ramp
	rampMost  = 1e10 // seconds that no ramp takes, whatever a state says
)

// A ramp is a probe: from the plateau the rate grows as exp(x²), slowly at first, so
// that a limit just above it is met gently, and then ever faster, so that a limit far
// above it is found in seconds.
type ramp struct {
	base   float64 // where it begins, calls a second
	grow   float64 // seconds in which it grows by a factor of e
	most   float64 // the ceiling
	length float64 // seconds of use
}

func (r *Rate) ramp(base, length float64) ramp {
	return ramp{base: base, grow: max(rampFor, rampCalls/base), most: r.ceiling, length: min(length, rampMost)}
}

// at is the rate after x seconds.
func (p ramp) at(x float64) float64 {
	x /= p.grow
	return min(p.most, p.base*math.Exp(x*x))
}

// top is the rate that it has come to.
func (p ramp) top() float64 { return p.at(p.length) }

// dwell is for how many seconds it has been at the ceiling.
func (p ramp) dwell() float64 {
	return max(0, p.length-p.grow*math.Sqrt(math.Log(p.most/p.base)))
}

// back is the ramp some calls earlier.
func (p ramp) back(calls float64) ramp {
	p.length = max(0, p.length-calls/p.top())
	return p
}

// beyond is how many calls the ramp sent beyond a limit.
func (p ramp) beyond(limit float64) (calls float64) {
	step := p.length / rampSteps
	for i := range rampSteps {
		calls += max(0, p.at((float64(i)+0.5)*step)-limit) * step
	}
	return calls
}

// limit is the limit, from least upwards, that explains a flood at the end of the ramp,
// if the server takes spare calls beyond its limit.
func (p ramp) limit(least, spare float64) float64 {
	if spare < 0.5 {
		return p.back(1).top() // the last call that passed was within the limit
	}
	p = p.back(0.5) // somewhere between the last that passed and the first that did not
	most := p.top()
	for range 30 {
		middle := (least + most) / 2
		if p.beyond(middle) > spare {
			least = middle
		} else {
			most = middle
		}
	}
	return least
}
