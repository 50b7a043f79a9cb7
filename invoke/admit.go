package invoke

import (
	"context"
	"errors"
	"time"

	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/internal/floods"
	"github.com/weirtg/weir/ratelimit"
)

// admit waits until the call may be sent: no flood covers it and its tokens are
// taken.
func (c *call) admit(ctx context.Context) (floods.Pass, error) {
	tracker := c.m.limiter.tracker
	var w waits
	fc := c.floodCall(ctx)
	c.queued = false
	for {
		if c.m.life.Err() != nil {
			return floods.Pass{}, ErrClosed
		}
		if err := c.m.limiter.breaker.Check(c.breakerCall()); err != nil {
			return floods.Pass{}, err
		}
		if err := c.connected(ctx); err != nil {
			return floods.Pass{}, err
		}
		pass, err := c.enter(ctx, fc, &w)
		if err != nil {
			return floods.Pass{}, err
		}
		c.m.limiter.learned.ForgetRested(c.counted())
		c.m.limiter.learned.MakeRoom(c.counted())
		c.m.limiter.pacing(&c.pass, c.Peer)
		waited, err := c.acquire(ctx, pass, &w)
		if err != nil {
			tracker.Abandon(pass)
			return floods.Pass{}, err
		}
		covered := false
		if waited {
			pass, err = tracker.Wait(ctx, fc, 0)
			covered = err != nil
		} else {
			covered = tracker.Covered(fc, pass)
		}
		if !covered && c.m.outage.Load() == nil && !c.m.limiter.repaced(&c.pass, c.Peer) {
			if err := c.m.limiter.breaker.Check(c.breakerCall()); err != nil { // too many of those before it were refused
				tracker.Abandon(pass)
				c.refund()
				return floods.Pass{}, err
			}
			c.admitted(pass, &w)
			if c.m.life.Err() == nil { // the observer may end it too
				return pass, nil
			}
		}
		// A flood came while it waited for the tokens, or what its chat learned from one,
		// or the connection was lost, or the end.
		tracker.Abandon(pass)
		c.refund()
	}
}

// admitted tells the observer that the call is about to be sent. An observer can end the
// goroutine, as a test does that fails there. The call is then not sent, so it costs nothing
// and does not go first.
func (c *call) admitted(pass floods.Pass, w *waits) {
	returned := false
	defer func() {
		if !returned {
			c.m.limiter.tracker.Abandon(pass)
			c.refund()
		}
	}()
	c.observe(Event{Kind: Admitted, Wait: w.sum, Gate: w.gate})
	returned = true
}

// waits is what a call waited for before one attempt.
type waits struct {
	sum     time.Duration
	longest time.Duration
	gate    string // that of the longest
}

func (w *waits) note(gate string, waited time.Duration) {
	w.sum += waited
	if w.gate == "" || waited > w.longest {
		w.gate, w.longest = gate, waited
	}
}

// enter waits for the floods that are known.
func (c *call) enter(ctx context.Context, fc floods.Call, w *waits) (floods.Pass, error) {
	pass, err := c.m.limiter.tracker.Wait(ctx, fc, 0)
	known, ok := errors.AsType[*flood.WaitError](err)
	if !ok {
		return pass, err
	}
	patience := c.patience()
	if known.Wait > patience && known.Reason != flood.AnotherFirst || patience == 0 {
		return pass, err
	}
	c.gate = FloodGate
	c.observe(Event{Kind: Queued, Wait: known.Wait, Gate: FloodGate})
	waiting, release := c.m.join(ctx)
	defer release()
	pass, err = c.m.limiter.tracker.Wait(waiting, fc, patience)
	for again(err) {
		pass, err = c.m.limiter.tracker.Wait(waiting, fc, patience)
	}
	if known.Kind != flood.PremiumWait {
		c.slept += pass.Waited
	}
	w.note(FloodGate, pass.Waited)
	return pass, c.closed(ctx, err)
}

// again reports whether the patience of a call has ended only because the file part that
// goes first after a premium wait takes its time. That is the speed of the line, and no
// wait that anybody ordered.
func again(err error) bool {
	known, ok := errors.AsType[*flood.WaitError](err)
	return ok && known.Kind == flood.PremiumWait && known.Reason == flood.AnotherFirst
}

// acquire takes the call's tokens, but for those that a permit has paid. It tells
// whether it had to wait for them.
func (c *call) acquire(ctx context.Context, pass floods.Pass, w *waits) (waited bool, err error) {
	if !c.prepaid() {
		return c.take(ctx, pass, c.pass.all(), w)
	}
	waited, err = c.take(ctx, pass, c.pass.own(), w)
	if err != nil {
		c.m.limiter.limiter.Cancel(c.opt.cost, c.pass.shared()...)
	}
	return waited, err
}

func isChatGate(name string) bool {
	return name == PrivateGate || name == GroupGate || name == PaceGate
}

func (c *call) take(ctx context.Context, pass floods.Pass, gates []ratelimit.Gate, w *waits) (waited bool, err error) {
	limiter := c.m.limiter.limiter
	err = limiter.TryBegin(c.opt.cost, gates...)
	if err == nil || c.opt.noWait || errors.Is(err, ratelimit.ErrImpossible) {
		return false, err
	}
	refused, ok := errors.AsType[*ratelimit.RefusedError](err)
	if !ok {
		return false, err
	}
	// If it was to go first after a flood, it must not keep the others from it while it
	// waits for tokens that they may have.
	c.m.limiter.tracker.Abandon(pass)
	c.gate = refused.Gate
	c.observe(Event{Kind: Queued, Wait: refused.Wait, Gate: refused.Gate, Pending: refused.Pending})
	c.queued = c.queued || isChatGate(refused.Gate)
	waiting, release := c.m.join(ctx)
	defer release()
	start := c.m.clock.Now()
	err = c.queue(waiting, refused, gates)
	w.note(refused.Gate, c.m.clock.Now().Sub(start))
	return true, c.closed(ctx, err)
}

// prepaid uses the permit on the context, if it pays for this call. A permit pays
// for one dispatch: retries are charged.
func (c *call) prepaid() bool {
	p := c.opt.permit
	return p != nil && c.sent == 0 && c.pass.common > 0 && p.Cost() == c.opt.cost &&
		p.Pays(c.m.limiter.gates[c.Category]) && p.Use()
}

func (c *call) refund() { c.m.limiter.limiter.Cancel(c.opt.cost, c.pass.all()...) }
