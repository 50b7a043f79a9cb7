package quota_test

import (
	"testing"
	"time"
	"unsafe"

	"github.com/gotd/neo"
	"github.com/gotd/td/clock"
	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/quota"
	"github.com/weirtg/weir/store"
	"github.com/weirtg/weir/storetest"
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
	storetest.Quota(t, func(t *testing.T) storetest.QuotaHarness {
		w := newWall()
		m := quota.NewMemory(w, 1<<21)
		t.Cleanup(func() { _ = m.Close() })
		return storetest.QuotaHarness{Clock: w.controls(), Store: m, Kept: m.Len}
	})
}

// A crowd of keys does not push out other keys, and finds room once those have expired.
func TestMemoryIsBounded(t *testing.T) {
	w := newWall()
	l := limiter(t, quota.Options{Clock: w, MaxKeys: 1000})
	for i := range 1000 {
		_, err := l.Charge(bg, quota.Key("member", i), minutely)
		require.NoError(t, err)
	}
	got, err := l.Charge(bg, "one more", minutely)
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.ErrorContains(t, err, "1000 keys")
	require.True(t, got.Limited)
	got, err = l.Peek(bg, "one more", minutely)
	require.NoError(t, err)
	require.False(t, got.Limited)
	got, err = l.Charge(bg, quota.Key("member", 7), minutely)
	require.NoError(t, err)
	require.True(t, got.Limited)
	w.Travel(time.Minute)
	_, err = l.Charge(bg, quota.Key("member", 7), minutely)
	require.NoError(t, err)

	w.Travel(time.Minute + time.Second)
	for i := range 10_000 {
		_, err = l.Charge(bg, quota.Key("other", i), minutely)
		require.NoError(t, err)
		w.Travel(time.Second)
		require.LessOrEqual(t, quota.Kept(l), 1000)
	}
}

// The key is copied, so a key that is part of a message does not keep the message in
// memory.
func TestMemoryKeepsNoCallersMemory(t *testing.T) {
	key := []byte("a key that will change")
	l := limiter(t, quota.Options{})
	_, err := l.Charge(bg, unsafe.String(&key[0], len(key)), minutely)
	require.NoError(t, err)
	before := string(key)
	copy(key, "XXXXXXXX")
	got, err := l.Peek(bg, before, minutely)
	require.NoError(t, err)
	require.True(t, got.Limited)
}

// A full memory counts as a store that is unavailable. store.FailLocal has nowhere else to
// count, so it refuses.
func TestAFullMemoryFollowsThePolicy(t *testing.T) {
	for policy, limited := range map[store.Policy]bool{store.FailClosed: true, store.FailOpen: false, store.FailLocal: true} {
		l := limiter(t, quota.Options{MaxKeys: 1, OnFailure: policy})
		_, err := l.Charge(bg, "a", minutely)
		require.NoError(t, err)
		got, err := l.Charge(bg, "b", minutely)
		require.Equal(t, limited, err != nil)
		require.Equal(t, limited, got.Limited)
		require.ErrorIs(t, got.Degraded, store.ErrUnavailable)
	}
}

// A crowd that has gone costs nothing: each charge deletes some of its keys, whichever
// key is charged.
func TestExpiredKeysAreForgottenByTheChargesOfOthers(t *testing.T) {
	w := newWall()
	l := limiter(t, quota.Options{Clock: w})
	for i := range 1000 {
		_, err := l.Charge(bg, quota.Key("member", i), minutely)
		require.NoError(t, err)
	}
	require.Equal(t, 1000, quota.Kept(l))
	w.Travel(time.Minute)
	for range 510 {
		_, err := l.Charge(bg, "k", quota.Window{Limit: 1000, Period: time.Hour})
		require.NoError(t, err)
	}
	require.Equal(t, 1, quota.Kept(l))
}
