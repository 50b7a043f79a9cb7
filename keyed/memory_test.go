package keyed_test

import (
	"testing"
	"time"

	"github.com/gotd/neo"
	"github.com/gotd/td/clock"

	"github.com/weirtg/weir/keyed"
	"github.com/weirtg/weir/store/storetest"
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

func (w *wall) controls() storetest.Clock {
	return storetest.Clock{
		Now:     w.Now,
		Advance: func(d time.Duration) { w.Travel(d) },
		SetBack: func(d time.Duration) { w.off -= d },
	}
}

func TestMemory(t *testing.T) {
	storetest.Keyed(t, func(t *testing.T) storetest.KeyedHarness {
		w := newWall()
		m := keyed.NewMemory(keyed.MemoryOptions{Clock: w})
		t.Cleanup(func() { _ = m.Close() })
		return storetest.KeyedHarness{Clock: w.controls(), Store: m, Kept: m.Len}
	})
}
