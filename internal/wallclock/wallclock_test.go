package wallclock_test

import (
	"sync"
	"testing"
	"time"

	"github.com/gotd/neo"
	"github.com/gotd/td/clock"
	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/internal/wallclock"
)

// wall is a wall clock that can be set.
type wall struct {
	*neo.Time
	off time.Duration
}

func newWall() *wall {
	return &wall{Time: neo.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC))}
}

func (w *wall) Now() time.Time                      { return w.Time.Now().Add(w.off) }
func (w *wall) Timer(d time.Duration) clock.Timer   { return w.Time.Timer(d) }
func (w *wall) Ticker(d time.Duration) clock.Ticker { return w.Time.Ticker(d) }

func TestAClockThatIsSetNeverRunsBackward(t *testing.T) {
	w := newWall()
	s := wallclock.New(w, time.Time{})
	now := func() time.Time { at, _ := s.Now(); return at }
	start := now()
	require.Equal(t, w.Now().UnixMicro(), start.UnixMicro())

	w.Travel(time.Hour)
	require.Equal(t, time.Hour, now().Sub(start))

	// Set back by a day, it carries on from its last time.
	w.off -= 24 * time.Hour
	require.Equal(t, time.Hour, now().Sub(start))
	w.Travel(time.Minute)
	at, ahead := s.Now()
	require.Equal(t, time.Hour+time.Minute, at.Sub(start))
	require.Equal(t, 24*time.Hour, ahead)
	require.Equal(t, w.Now().UnixMicro(), at.Add(-ahead).UnixMicro())

	// Set back by little, it stands still until the wall clock has caught up.
	w.off -= 300 * time.Millisecond
	require.Equal(t, at, now())
	w.Travel(400 * time.Millisecond)
	require.Equal(t, 100*time.Millisecond, now().Sub(at))

	// Set forward, it follows.
	w.off += 2 * time.Hour
	require.Equal(t, 2*time.Hour+100*time.Millisecond, now().Sub(at))

	// Another one does not start before the last time of this one.
	last := now()
	w.off -= time.Hour
	again := wallclock.New(w, last)
	at, _ = again.Now()
	require.Equal(t, last.UnixMicro(), at.UnixMicro())
	w.Travel(time.Second)
	at, _ = again.Now()
	require.Equal(t, last.Add(time.Second).UnixMicro(), at.UnixMicro())
}

func TestConcurrentReadersNeverSeeTimeRunBackward(t *testing.T) {
	w := newWall()
	s := wallclock.New(w, time.Time{})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			var last time.Time
			for range 2000 {
				at, ahead := s.Now()
				if at.Before(last) || ahead != 0 {
					t.Errorf("%v after %v, ahead by %v", at, last, ahead)
				}
				last = at
			}
		})
	}
	for range 1000 {
		w.Travel(time.Millisecond)
	}
	all.Wait()
}
