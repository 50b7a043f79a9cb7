package keyed_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/keyed"
)

func TestSteady(t *testing.T) {
	w := newWall()
	s := keyed.NewSteady(w, time.Time{})
	now := func() time.Time { at, _ := s.Now(); return at }
	start := now()
	require.Equal(t, w.Now().UnixMicro(), start.UnixMicro())

	w.Travel(time.Hour)
	require.Equal(t, time.Hour, now().Sub(start))

	// Set back by a day, it goes on from where it was.
	w.off -= 24 * time.Hour
	require.Equal(t, time.Hour, now().Sub(start))
	w.Travel(time.Minute)
	at, ahead := s.Now()
	require.Equal(t, time.Hour+time.Minute, at.Sub(start))
	require.Equal(t, 24*time.Hour, ahead)
	require.Equal(t, w.Now().UnixMicro(), at.Add(-ahead).UnixMicro())

	// Set back by little, it stands still.
	w.off -= 300 * time.Millisecond
	require.Equal(t, at, now())
	w.Travel(400 * time.Millisecond)
	require.Equal(t, 100*time.Millisecond, now().Sub(at))

	// Set forth, it follows.
	w.off += 2 * time.Hour
	require.Equal(t, 2*time.Hour+100*time.Millisecond, now().Sub(at))

	// Another one does not go back before what this one has told.
	last := now()
	w.off -= time.Hour
	again := keyed.NewSteady(w, last)
	at, _ = again.Now()
	require.Equal(t, last.UnixMicro(), at.UnixMicro())
	w.Travel(time.Second)
	at, _ = again.Now()
	require.Equal(t, last.Add(time.Second).UnixMicro(), at.UnixMicro())
}

// Nobody sees time go back, and reading the clock at the same time does not move it.
func TestSteadyAtOnce(t *testing.T) {
	w := newWall()
	s := keyed.NewSteady(w, time.Time{})
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
