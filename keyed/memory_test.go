package keyed_test

import (
	"testing"
	"time"
	"unsafe"

	"github.com/gotd/neo"
	"github.com/gotd/td/clock"
	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/keyed"
	"github.com/weirtg/weir/store"
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

// A crowd of keys cannot push out others, and finds room when what counted is over.
func TestMemoryIsBounded(t *testing.T) {
	w := newWall()
	m := keyed.NewMemory(keyed.MemoryOptions{Clock: w, MaxKeys: 1000})
	l := limiter(t, keyed.Options{Store: m})
	for i := range 1000 {
		_, err := l.Charge(bg, keyed.Key("member", i), minutely)
		require.NoError(t, err)
	}
	got, err := l.Charge(bg, "one more", minutely)
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.ErrorContains(t, err, "1000 keys")
	require.True(t, got.Limited)
	got, err = l.Peek(bg, "one more", minutely)
	require.NoError(t, err)
	require.False(t, got.Limited)
	got, err = l.Charge(bg, keyed.Key("member", 7), minutely)
	require.NoError(t, err)
	require.True(t, got.Limited)
	w.Travel(time.Minute)
	_, err = l.Charge(bg, keyed.Key("member", 7), minutely)
	require.NoError(t, err)

	w.Travel(time.Minute + time.Second)
	for i := range 10_000 {
		_, err = l.Charge(bg, keyed.Key("other", i), minutely)
		require.NoError(t, err)
		w.Travel(time.Second)
		require.LessOrEqual(t, m.Len(), 1000)
	}
}

// The key is copied: that of a message does not keep the message.
func TestMemoryKeepsNoCallersMemory(t *testing.T) {
	key := []byte("a key that will change")
	l := limiter(t, keyed.Options{})
	_, err := l.Charge(bg, unsafe.String(&key[0], len(key)), minutely)
	require.NoError(t, err)
	before := string(key)
	copy(key, "XXXXXXXX")
	got, err := l.Peek(bg, before, minutely)
	require.NoError(t, err)
	require.True(t, got.Limited)
}

// A memory that is full is a store that is unavailable, with the policy for it.
func TestAFullMemoryFollowsThePolicy(t *testing.T) {
	for policy, limited := range map[store.Policy]bool{store.Closed: true, store.Open: false, store.Local: false} {
		m := keyed.NewMemory(keyed.MemoryOptions{MaxKeys: 1})
		l := limiter(t, keyed.Options{Store: m, OnFailure: policy})
		_, err := l.Charge(bg, "a", minutely)
		require.NoError(t, err)
		got, err := l.Charge(bg, "b", minutely)
		require.Equal(t, limited, err != nil)
		require.Equal(t, limited, got.Limited)
		require.ErrorIs(t, got.Degraded, store.ErrUnavailable)
	}
}
