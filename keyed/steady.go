package keyed

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/gotd/td/clock"
)

// Steady is a wall clock that never goes back, for those who write a store. When the
// clock below it is set back by more than a second, it goes on from where it was, and
// is ahead by that much from then on; so are the days that [Aligned] windows keep to. When it is set back by less, as clocks are that
// are being kept right, it stands still until it is reached again. It is safe for
// concurrent use.
type Steady struct {
	clock clock.Clock
	last  atomic.Int64 // the latest time that was told, in microseconds
	ahead atomic.Int64 // of clock
	step  sync.Mutex   // held while ahead is changed
}

// stands is how far a clock may be set back for a Steady to wait for it.
const stands = int64(time.Second / time.Microsecond)

// MaxAhead is how far a time that was stored may be ahead of the clock and still be believed.
// One further on is damage, or the clock was wrong by more than anybody needs made up for.
const MaxAhead = 366 * 24 * time.Hour

// NewSteady returns a clock that does not go back before last, which is a time that
// another Steady has told, or zero. A last that is more than [MaxAhead] after c, or before
// 1970, counts as zero.
func NewSteady(c clock.Clock, last time.Time) *Steady {
	s := &Steady{clock: c}
	if last.UnixMicro() > 0 && !last.After(c.Now().Add(MaxAhead)) {
		s.last.Store(last.UnixMicro())
	}
	return s
}

// Now returns the time in whole microseconds, and by how much it is ahead of the
// clock below.
func (s *Steady) Now() (now time.Time, ahead time.Duration) {
	for {
		by := s.ahead.Load()
		t, last := s.clock.Now().UnixMicro()+by, s.last.Load()
		switch {
		case t < last-stands:
			s.goOn()
			continue
		case t < last:
			t = last
		case !s.last.CompareAndSwap(last, t):
			continue
		}
		return time.UnixMicro(t), time.Duration(by) * time.Microsecond
	}
}

// goOn makes up for a clock that was set back.
func (s *Steady) goOn() {
	s.step.Lock()
	defer s.step.Unlock()
	if back := s.last.Load() - s.clock.Now().UnixMicro() - s.ahead.Load(); back > stands {
		s.ahead.Add(back)
	}
}
