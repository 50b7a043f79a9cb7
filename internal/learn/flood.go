package learn

import "math"

const (
	noSpare   = 0.01 // the spare of a server that takes nothing beyond its rate
	burstOf   = 2.0  // calls beyond the rate that make a burst, …
	burstFor  = 0.1  // … or what the rate allows in so many seconds, if that is more
	sameProbe = 1.1  // a probe that got at most so much further than expected found nothing new
	sameRate  = 1.01 // and so has one that proves at most so much more
	muchSaved = 1.5  // who takes at once so many times what the limit gives in a wait takes much
	doubt     = 0.7  // what a doubted estimate takes to be the spare, of what its probe got
	lessSpare = 0.75 // what is left of the spare when a probe was refused at once
	hasMoved  = 1.25 // a limit that is believed to be so many times what it was has moved
)

// Flooded lowers the rate because of a flood, the answer to call. It reports whether it
// did: a call that went out before the last lowering belongs to the same event, which
// counts once.
//
// It wants only floods that are about how much is sent: those of a method or an account
// for its rate, those of a chat for the chat's.
func (r *Rate) Flooded(call Call) bool {
	burst := max(noSpare, call.over-2) // without this call, and the one that any limit allows
	if call.number <= r.lowered {
		if r.burst && r.before < call.number && call.number < r.since.number {
			r.spare = max(noSpare, r.spare-1) // it was taken for one of those that passed
		}
		return false
	}
	exact := false
	r.burst = false
	switch {
	case !r.learned:
		r.held, r.spare, r.bet, r.sure, r.burst = beta*call.rate, burst, Bet{}, false, true
	case burst > max(burstOf, burstFor*call.rate):
		// More went out at once than the rate in force. It may be right, and what
		// the server takes at once is known now.
		r.spare, r.burst = burst, true
	case call.probed > 0:
		exact = r.probed(call)
	default:
		exact = r.failed(call)
	}
	r.learned, r.follows = true, false
	r.believe(r.held)
	r.plan(exact)
	r.low = beta * min(call.rate, r.plateau())
	r.used, r.over, r.idle = 0, 0, 0
	r.since, r.before, r.lowered = call, r.lowered, r.number
	if r.flooded = r.flooded.Add(1); call.at.After(r.flooded) { // else it was told by a clock that is ahead
		r.flooded = call.at
	}
	r.move()
	return true
}

// plan sets after how much use the rate is probed. What is no more than an estimate is
// probed soon, and a bet does not tell yet whether the limit has moved.
func (r *Rate) plan(exact bool) {
	r.hold = probeAfter
	if r.bet.Before > 0 {
		return
	}
	if r.held > hasMoved*r.where || r.where > hasMoved*r.held {
		r.where, r.stood = r.held, 0
	}
	if exact && r.stood > settled {
		r.hold = min(probeShare*r.stood, probeLast)
	}
}

// failed lowers what is believed to hold, since it did not. It reports whether that is
// more than an estimate.
func (r *Rate) failed(call Call) (exact bool) {
	passed, span := r.passed(call)
	if r.bet.Before > 0 {
		r.lost(call, passed)
	} else {
		r.held, r.sure = max(beta*call.rate, passed), false
	}
	return span > probeAfter
}

// lost ends a bet that call has lost: the probe got so far only because the server takes
// more at once.
func (r *Rate) lost(call Call, passed float64) {
	probe, wait := r.ramp(r.bet.Base, r.bet.Length), r.again.Sub(r.since.at).Seconds()
	r.held = max(min(r.bet.Before, call.rate), passed)
	if !r.bet.Doubt {
		r.held = r.explain(call, probe, wait, r.held)
	}
	spare := probe.beyond(r.held)
	if r.bet.Doubt && spare < muchSaved*wait*r.held {
		// What had held is right, and so is the spare that follows from it, nearly. Of a
		// server that takes much at once the limit is known without it.
		r.spare = (r.spare + spare) / 2
	} else {
		r.spare = max(r.spare, spare)
	}
	r.bet, r.sure = Bet{}, r.bet.Doubt
}

// explain returns the limit, from least up to the rate in force, that explains both the
// probe of a lost bet and that it was lost with this call: since the probe the server
// gave what its limit allows, and before that what it had saved in the wait, which is no
// more than it takes at once, as the probe showed.
func (r *Rate) explain(call Call, probe ramp, wait, least float64) float64 {
	span := call.at.Sub(r.again).Seconds()
	passed := float64(call.number - r.lowered - 1)
	passed += min(0.5, (1-margin)*passed) // and a part of one more, if the margin bears the doubt
	step, best, off := (call.rate-least)/40, least, math.Inf(1)
	for i := range 41 { // there may be two that fit, or none
		at := least + float64(i)*step
		if o := math.Abs(at*span + min(at*wait, probe.beyond(at)) - passed); o < off {
			best, off = at, o
		}
	}
	return best
}

// passed is how many calls a second the server let through since the last flood, and
// over how many seconds. It had nothing left then and has nothing left now, so its
// limit is that, or more. What went out between that flood and its answer was
// refused too.
func (r *Rate) passed(call Call) (rate, span float64) {
	span = call.at.Sub(r.since.at).Seconds()
	if r.since.number == 0 || span <= 0 {
		return 0, 0
	}
	return min(call.rate, float64(call.number-r.lowered-1)/span), span
}

// probed takes in that a probe ended in a flood, and reports what failed does.
func (r *Rate) probed(call Call) (exact bool) {
	probe := r.ramp(r.plateau(), call.probed)
	if probe.beyond(r.held) < min(r.spare, 1)/2 {
		// It was refused before it was a probe, so the limit has fallen. When that
		// happens again and again, the server takes less at once than it did.
		exact = r.failed(call)
		r.spare = max(noSpare, lessSpare*r.spare)
		return exact
	}
	r.bet = Bet{}
	passed, _ := r.passed(call)
	r.held = max(r.held, passed)
	beyond := probe.beyond(r.held)
	same := beyond <= sameProbe*r.spare // it got as far as it would with the same limit
	if same && r.sure {
		return true
	}
	spare := r.spare
	if same {
		spare = doubt * min(spare, beyond)
	}
	if proven := probe.limit(r.held, spare); proven > sameRate*r.held {
		r.bet, r.held = Bet{Before: r.held, Base: probe.base, Length: probe.length, Doubt: same}, proven
	}
	return true
}
