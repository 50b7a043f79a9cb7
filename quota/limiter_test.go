package quota_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gotd/td/clock"
	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/quota"
	"github.com/weirtg/weir/store"
)

var (
	bg        = context.Background()
	daily     = quota.Window{Limit: 3, Period: 24 * time.Hour}
	errBroken = errors.New("connection refused")
)

func limiter(t *testing.T, o quota.Options) *quota.Limiter {
	t.Helper()
	l, err := quota.New(o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestThreeADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter(t, quota.Options{})
		for i := range 3 {
			got, err := l.Charge(bg, "k", daily)
			require.NoError(t, err)
			require.False(t, got.Limited)
			require.Equal(t, 2-i, got.Remaining)
			time.Sleep(time.Hour)
		}
		got, err := l.Charge(bg, "k", daily)
		require.NoError(t, err)
		require.True(t, got.Limited)
		require.Equal(t, 21*time.Hour, got.RetryAfter)
		require.Equal(t, 23*time.Hour, time.Until(got.ResetAt))

		time.Sleep(got.RetryAfter - time.Microsecond)
		got, err = l.Peek(bg, "k", daily)
		require.NoError(t, err)
		require.True(t, got.Limited)
		time.Sleep(time.Microsecond)
		got, err = l.ChargeN(bg, "k", daily, 1)
		require.NoError(t, err)
		require.False(t, got.Limited)
		require.NoError(t, l.Reset(bg, "k"))
		got, err = l.ChargeN(bg, "k", daily, 3)
		require.NoError(t, err)
		require.False(t, got.Limited)
	})
}

func TestALimitLeftOutIsOneAndPartsOfAMicrosecondCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter(t, quota.Options{})
		w := quota.Window{Period: time.Millisecond + time.Nanosecond}
		got, err := l.Charge(bg, "k", w)
		require.NoError(t, err)
		require.False(t, got.Limited)
		require.Equal(t, 0, got.Remaining)
		got, err = l.Charge(bg, "k", w)
		require.NoError(t, err)
		require.Equal(t, 1001*time.Microsecond, got.RetryAfter)
	})
}

func TestBadInput(t *testing.T) {
	l := limiter(t, quota.Options{})
	for _, c := range []struct {
		key        string
		w          quota.Window
		cost       int
		field, say string
	}{
		{"", daily, 1, "key", "key is empty: want 1 to 1024 bytes"},
		{strings.Repeat("x", 1<<20), daily, 1, "key", "key is 1048576 bytes: want 1 to 1024 bytes"},
		{"k", quota.Window{}, 1, "window.period", "window.period is 0s: want 1ms to 100 years (876600h0m0s)"},
		{"k", quota.Window{Period: -time.Hour}, 1, "window.period", "-1h0m0s"},
		{"k", quota.Window{Period: 101 * 365 * 24 * time.Hour}, 1, "window.period", "884760h0m0s"},
		{"k", quota.Window{Period: time.Microsecond}, 1, "window.period", "1µs"},
		{"k", quota.Window{Limit: -1, Period: time.Hour}, 1, "window.limit", "window.limit is -1: want 1 to 1048576"},
		{"k", quota.Window{Limit: 1<<20 + 1, Period: time.Hour}, 1, "window.limit", "1048577"},
		{"k", quota.Window{Period: time.Hour, Kind: 4}, 1, "window.kind", "window.kind is Kind(4): want Sliding, Aligned, FirstHit or Bucket"},
		{"k", daily, 0, "cost", "cost is 0: want at least 1"},
		{"k", daily, -7, "cost", "-7"},
		{"k", daily, 4, "cost", "cost is 4: want at most the window's limit, 3"},
	} {
		got, err := l.ChargeN(bg, c.key, c.w, c.cost)
		var argument *store.ArgumentError
		require.ErrorAs(t, err, &argument)
		require.Equal(t, c.field, argument.Field)
		require.ErrorContains(t, err, c.say)
		require.True(t, got.Limited)
		require.Equal(t, c.cost > c.w.Limit && c.field == "cost", errors.Is(err, quota.ErrImpossible))
		require.NotErrorIs(t, err, store.ErrUnavailable)
	}
	for _, err := range []error{l.Reset(bg, ""), l.Reset(bg, strings.Repeat("x", 1025))} {
		require.ErrorAs(t, err, new(*store.ArgumentError))
	}
	for field, o := range map[string]quota.Options{
		"OnFailure": {OnFailure: 3}, "Timeout": {Timeout: -1}, "MaxKeys": {MaxKeys: -1},
	} {
		_, err := quota.New(o)
		require.ErrorContains(t, err, field)
	}
	for _, period := range []time.Duration{quota.MinPeriod, quota.MaxPeriod} {
		got, err := l.Charge(bg, period.String(), quota.Window{Period: period, Kind: quota.Aligned})
		require.NoError(t, err)
		require.False(t, got.Limited)
	}
}

// fake is a store that fails when answer does.
type fake struct {
	quota.Store
	answer func(ctx context.Context) error
}

func (f *fake) Decide(ctx context.Context, r quota.Request) (quota.Result, error) {
	if err := f.answer(ctx); err != nil {
		return quota.Result{}, err
	}
	return f.Store.Decide(ctx, r)
}

func (f *fake) Reset(ctx context.Context, key string) error {
	if err := f.answer(ctx); err != nil {
		return err
	}
	return f.Store.Reset(ctx, key)
}

// failing are the ways in which a store may fail.
var failing = map[string]func(context.Context) error{
	"an error":             func(context.Context) error { return errBroken },
	"an error of a store":  func(context.Context) error { return fmt.Errorf("%w: full", store.ErrUnavailable) },
	"no answer in time":    func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	"a context of its own": func(context.Context) error { return context.DeadlineExceeded },
}

func TestPoliciesOfAStoreThatFails(t *testing.T) {
	for policy := store.FailClosed; policy <= store.FailLocal; policy++ {
		t.Run(policy.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for name, answer := range failing {
					var reported []error
					l := limiter(t, quota.Options{
						Store: &fake{quota.NewMemory(clock.System, 1<<21), answer}, OnFailure: policy,
						OnError: func(err error) { reported = append(reported, err) },
					})
					start := time.Now()
					got, err := l.ChargeN(bg, "k", daily, 2)
					require.LessOrEqual(t, time.Since(start), 100*time.Millisecond, name)
					require.ErrorIs(t, got.Degraded, store.ErrUnavailable, name)
					require.Equal(t, []error{got.Degraded}, reported, name)
					switch policy {
					case store.FailClosed:
						require.ErrorIs(t, err, store.ErrUnavailable, name)
						require.NotErrorIs(t, err, context.DeadlineExceeded, "the caller's context is not done")
						require.True(t, got.Limited)
					case store.FailOpen:
						require.NoError(t, err)
						require.False(t, got.Limited)
						require.Equal(t, 3, got.Remaining)
						got, err = l.ChargeN(bg, "k", daily, 2)
						require.NoError(t, err)
						require.False(t, got.Limited)
					case store.FailLocal:
						require.NoError(t, err)
						require.False(t, got.Limited)
						require.Equal(t, 1, got.Remaining)
						got, err = l.ChargeN(bg, "k", daily, 2)
						require.NoError(t, err)
						require.True(t, got.Limited)
						require.Positive(t, got.RetryAfter)
						require.Error(t, got.Degraded)
					}
					require.ErrorIs(t, l.Reset(bg, "k"), store.ErrUnavailable, name)
				}
			})
		})
	}
}

func TestTheStoreDecidesAgainWhenItIsBack(t *testing.T) {
	var down atomic.Bool
	l := limiter(t, quota.Options{OnFailure: store.FailOpen, Store: &fake{
		quota.NewMemory(clock.System, 1<<21),
		func(context.Context) error {
			if down.Load() {
				return errBroken
			}
			return nil
		},
	}})
	charge := func() quota.Result {
		got, err := l.Charge(bg, "k", quota.Window{Limit: 1, Period: time.Hour})
		require.NoError(t, err)
		return got
	}
	require.False(t, charge().Limited)
	down.Store(true)
	require.False(t, charge().Limited)
	down.Store(false)
	got := charge()
	require.True(t, got.Limited)
	require.NoError(t, got.Degraded)
}

func TestTheCallersContextIsNoFailureOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter(t, quota.Options{
			Store: &fake{quota.NewMemory(clock.System, 1<<21), failing["no answer in time"]}, OnFailure: store.FailOpen,
			OnError: func(err error) { t.Error(err) },
		})
		ctx, cancel := context.WithTimeout(bg, 10*time.Millisecond)
		defer cancel()
		start := time.Now()
		got, err := l.Charge(ctx, "k", daily)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 10*time.Millisecond, time.Since(start))
		require.True(t, got.Limited)
		require.NoError(t, got.Degraded)

		ctx, cancel = context.WithCancel(bg)
		cancel()
		l = limiter(t, quota.Options{})
		_, err = l.Charge(ctx, "k", daily)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, l.Reset(ctx, "k"), context.Canceled)
		got, err = l.Peek(bg, "k", daily)
		require.NoError(t, err)
		require.Equal(t, 3, got.Remaining)
	})
}

func TestCloseLeavesAStoreThatWasGiven(t *testing.T) {
	m := quota.NewMemory(clock.System, 1<<21)
	a, b := limiter(t, quota.Options{Store: m}), limiter(t, quota.Options{Store: m})
	require.NoError(t, a.Close())
	got, err := a.Charge(bg, "k", daily)
	require.ErrorIs(t, err, quota.ErrClosed)
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.True(t, got.Limited)
	require.ErrorIs(t, a.Reset(bg, "k"), quota.ErrClosed)
	_, err = b.Charge(bg, "k", daily)
	require.NoError(t, err)
	require.NoError(t, m.Close())
	_, err = b.Charge(bg, "k", daily)
	require.ErrorIs(t, err, quota.ErrClosed)
}

func TestChargeAllocatesNothing(t *testing.T) {
	l := limiter(t, quota.Options{})
	for kind := quota.Sliding; kind <= quota.Bucket; kind++ {
		for _, limit := range []int{3, 100} {
			w := quota.Window{Limit: limit, Period: time.Millisecond, Kind: kind}
			key := fmt.Sprint(kind, limit)
			for range 1000 {
				_, _ = l.Charge(bg, key, w)
			}
			require.Zero(t, testing.AllocsPerRun(1000, func() { _, _ = l.Charge(bg, key, w) }), "%v", kind)
		}
	}
}
