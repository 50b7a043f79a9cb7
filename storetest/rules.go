package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/quota"
)

const (
	day  = 24 * time.Hour
	tick = time.Microsecond
)

func ask(t *testing.T, s quota.Store, key string, w quota.Window, cost int, record bool) quota.Result {
	t.Helper()
	r := quota.Request{Key: key, Window: w, Cost: cost, Record: record}
	require.NoError(t, r.Validate())
	got, err := s.Decide(context.Background(), r)
	require.NoError(t, err)
	require.NoError(t, got.Degraded)
	return got
}

func charge(t *testing.T, s quota.Store, key string, w quota.Window, cost int) quota.Result {
	t.Helper()
	return ask(t, s, key, w, cost, true)
}

func peek(t *testing.T, s quota.Store, key string, w quota.Window) quota.Result {
	t.Helper()
	return ask(t, s, key, w, 1, false)
}

// passes and refuses want all of a result, times as distances from now.
func (h QuotaHarness) passes(t *testing.T, got quota.Result, remaining int, reset time.Duration) {
	t.Helper()
	h.is(t, got, quota.Result{Remaining: remaining, ResetAt: h.Now().Add(reset)})
}

func (h QuotaHarness) refuses(t *testing.T, got quota.Result, remaining int, retry, reset time.Duration) {
	t.Helper()
	h.is(t, got, quota.Result{
		Limited: true, Remaining: remaining, RetryAfter: retry, ResetAt: h.Now().Add(reset),
	})
}

func (h QuotaHarness) is(t *testing.T, got, want quota.Result) {
	t.Helper()
	require.Equal(t, plain(want), plain(got))
}

// plain is a result without its time's location.
func plain(r quota.Result) quota.Result {
	r.ResetAt = time.UnixMicro(r.ResetAt.UnixMicro()).UTC()
	return r
}

// toNext lets time pass until the next multiple of period, and a bit.
func (h QuotaHarness) toNext(period, bit time.Duration) {
	past := time.Duration(h.Now().UnixMicro()%period.Microseconds()) * time.Microsecond
	h.Advance(period - past + bit)
}

func threeADay(t *testing.T, h QuotaHarness) {
	w := quota.Window{Limit: 3, Period: day}
	h.passes(t, charge(t, h.Store, "k", w, 1), 2, day)
	h.Advance(time.Hour)
	h.passes(t, charge(t, h.Store, "k", w, 1), 1, day)
	h.Advance(time.Hour)
	h.passes(t, charge(t, h.Store, "k", w, 1), 0, day)
	h.refuses(t, charge(t, h.Store, "k", w, 1), 0, 22*time.Hour, day)

	h.Advance(22*time.Hour - tick)
	h.refuses(t, charge(t, h.Store, "k", w, 1), 0, tick, 2*time.Hour+tick)
	h.Advance(tick)
	h.passes(t, charge(t, h.Store, "k", w, 1), 0, day)
	h.refuses(t, charge(t, h.Store, "k", w, 1), 0, time.Hour, day)
	h.refuses(t, ask(t, h.Store, "k", w, 2, true), 0, 2*time.Hour, day)
	h.Advance(day)
	h.passes(t, peek(t, h.Store, "k", w), 3, 0)
}

func alignedEndsAtMidnight(t *testing.T, h QuotaHarness) {
	w := quota.Window{Limit: 2, Period: day, Kind: quota.Aligned}
	h.toNext(day, 23*time.Hour)
	h.passes(t, charge(t, h.Store, "k", w, 1), 1, time.Hour)
	h.Advance(time.Hour - tick)
	h.passes(t, charge(t, h.Store, "k", w, 1), 0, tick)
	h.refuses(t, charge(t, h.Store, "k", w, 1), 0, tick, tick)
	h.Advance(tick)
	h.passes(t, peek(t, h.Store, "k", w), 2, 0)
	h.passes(t, charge(t, h.Store, "k", w, 2), 0, day)
	h.refuses(t, charge(t, h.Store, "k", w, 1), 0, day, day)
}

func firstHit(t *testing.T, h QuotaHarness) {
	w := quota.Window{Limit: 2, Period: time.Minute, Kind: quota.FirstHit}
	h.passes(t, charge(t, h.Store, "k", w, 1), 1, time.Minute)
	h.Advance(40 * time.Second)
	h.passes(t, charge(t, h.Store, "k", w, 1), 0, 20*time.Second)
	h.Advance(20*time.Second - tick)
	h.refuses(t, charge(t, h.Store, "k", w, 1), 0, tick, tick)
	h.Advance(tick)
	h.passes(t, peek(t, h.Store, "k", w), 2, 0)
	h.Advance(5 * time.Second)
	h.passes(t, charge(t, h.Store, "k", w, 1), 1, time.Minute)
}

func bucketRefills(t *testing.T, h QuotaHarness) {
	w := quota.Window{Limit: 3, Period: 30 * time.Second, Kind: quota.Bucket}
	h.passes(t, charge(t, h.Store, "k", w, 1), 2, 10*time.Second)
	h.passes(t, charge(t, h.Store, "k", w, 2), 0, 30*time.Second)
	h.refuses(t, charge(t, h.Store, "k", w, 1), 0, 10*time.Second, 30*time.Second)
	h.Advance(10*time.Second - tick)
	h.refuses(t, charge(t, h.Store, "k", w, 1), 0, tick, 20*time.Second+tick)
	h.Advance(tick)
	h.refuses(t, charge(t, h.Store, "k", w, 2), 1, 10*time.Second, 20*time.Second)
	h.passes(t, charge(t, h.Store, "k", w, 1), 0, 30*time.Second)
	h.Advance(time.Hour)
	h.passes(t, charge(t, h.Store, "k", w, 1), 2, 10*time.Second)

	// A seventh of a second is no whole number of microseconds. Seven of them are one
	// second, all the same, and none comes too soon.
	w = quota.Window{Limit: 7, Period: time.Second, Kind: quota.Bucket}
	h.passes(t, charge(t, h.Store, "seven", w, 7), 0, time.Second)
	for range 3 {
		for range 7 {
			got := charge(t, h.Store, "seven", w, 1)
			require.True(t, got.Limited)
			h.Advance(got.RetryAfter - tick)
			require.True(t, charge(t, h.Store, "seven", w, 1).Limited)
			h.Advance(tick)
			require.False(t, charge(t, h.Store, "seven", w, 1).Limited)
		}
		h.passes(t, peek(t, h.Store, "other", w), 7, 0)
		h.refuses(t, charge(t, h.Store, "seven", w, 7), 0, time.Second, time.Second)
	}
}

func peekRecordsNothing(t *testing.T, h QuotaHarness) {
	for kind := quota.Sliding; kind <= quota.Bucket; kind++ {
		w := quota.Window{Limit: 1, Period: time.Minute, Kind: kind}
		h.toNext(time.Minute, 0)
		for range 3 {
			h.passes(t, peek(t, h.Store, "k", w), 1, 0)
		}
		h.passes(t, charge(t, h.Store, "k", w, 1), 0, time.Minute)
		h.Advance(time.Second)
		for range 3 {
			h.refuses(t, peek(t, h.Store, "k", w), 0, 59*time.Second, 59*time.Second)
		}
		h.Advance(59 * time.Second)
		h.passes(t, charge(t, h.Store, "k", w, 1), 0, time.Minute)
	}
}

func costIsAllOrNone(t *testing.T, h QuotaHarness) {
	for kind := quota.Sliding; kind <= quota.Bucket; kind++ {
		w := quota.Window{Limit: 10, Period: 10 * time.Second, Kind: kind}
		h.toNext(10*time.Second, 0)
		require.Equal(t, 2, charge(t, h.Store, "k", w, 8).Remaining)
		got := charge(t, h.Store, "k", w, 3)
		require.True(t, got.Limited)
		require.Equal(t, 2, got.Remaining, "a refusal takes nothing")
		require.Equal(t, 0, charge(t, h.Store, "k", w, 2).Remaining)
	}
}

func resetForgets(t *testing.T, h QuotaHarness) {
	h.toNext(time.Minute, 0)
	for kind := quota.Sliding; kind <= quota.Bucket; kind++ {
		w := quota.Window{Limit: 1, Period: time.Minute, Kind: kind}
		charge(t, h.Store, "a", w, 1)
		charge(t, h.Store, "b", w, 1)
	}
	require.NoError(t, h.Store.Reset(context.Background(), "a"))
	require.NoError(t, h.Store.Reset(context.Background(), "never charged"))
	for kind := quota.Sliding; kind <= quota.Bucket; kind++ {
		w := quota.Window{Limit: 1, Period: time.Minute, Kind: kind}
		h.passes(t, charge(t, h.Store, "a", w, 1), 0, time.Minute)
		require.True(t, peek(t, h.Store, "b", w).Limited)
	}
}

func kindsAreApart(t *testing.T, h QuotaHarness) {
	h.toNext(time.Minute, 0)
	for kind := quota.Sliding; kind <= quota.Bucket; kind++ {
		w := quota.Window{Limit: 1, Period: time.Minute, Kind: kind}
		h.passes(t, charge(t, h.Store, "k", w, 1), 0, time.Minute)
		h.refuses(t, charge(t, h.Store, "k", w, 1), 0, time.Minute, time.Minute)
	}
}

func changedLimit(t *testing.T, h QuotaHarness) {
	for kind := quota.Sliding; kind <= quota.Bucket; kind++ {
		w := quota.Window{Limit: 4, Period: time.Minute, Kind: kind}
		h.toNext(time.Hour, 0)
		charge(t, h.Store, "k", w, 3)
		w.Limit = 6
		require.Equal(t, 3, peek(t, h.Store, "k", w).Remaining, "more: %v", kind)
		w.Limit = 2
		retry := time.Minute
		if kind == quota.Bucket {
			retry = 30 * time.Second // it refills one by one
		}
		h.refuses(t, peek(t, h.Store, "k", w), 0, retry, time.Minute)
		w = quota.Window{Limit: 4, Period: time.Hour, Kind: kind}
		require.Equal(t, 1, peek(t, h.Store, "k", w).Remaining, "longer: %v", kind)
		charge(t, h.Store, "k", w, 1)
		require.True(t, peek(t, h.Store, "k", w).Limited)
	}
}

func largestWindow(t *testing.T, h QuotaHarness) {
	for kind := quota.Sliding; kind <= quota.Bucket; kind++ {
		w := quota.Window{Limit: quota.MaxLimit, Period: quota.MaxPeriod, Kind: kind}
		require.Equal(t, 1, charge(t, h.Store, "long", w, quota.MaxLimit-1).Remaining)
		got := charge(t, h.Store, "long", w, quota.MaxLimit)
		require.True(t, got.Limited)
		require.Equal(t, 1, got.Remaining)
		require.Positive(t, got.RetryAfter)
		require.LessOrEqual(t, got.RetryAfter, quota.MaxPeriod)
		require.Equal(t, 0, charge(t, h.Store, "long", w, 1).Remaining)

		w.Period = quota.MinPeriod
		h.toNext(quota.MinPeriod, 0)
		require.Equal(t, 0, charge(t, h.Store, "short", w, quota.MaxLimit).Remaining)
		h.refuses(t, charge(t, h.Store, "short", w, quota.MaxLimit), 0, quota.MinPeriod, quota.MinPeriod)
		h.Advance(quota.MinPeriod)
		require.Equal(t, 0, charge(t, h.Store, "short", w, quota.MaxLimit).Remaining)
	}
}
