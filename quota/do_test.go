package quota_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gotd/td/clock"
	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/quota"
	"github.com/weirtg/weir/store"
)

var minutely = quota.Window{Period: time.Minute}

func works(context.Context) error { return nil }

func TestDoChargesForWorkThatSucceeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter(t, quota.Options{})
		failed := errors.New("chat not found")
		got, err := l.Do(bg, "k", minutely, func(context.Context) error { return failed })
		require.Equal(t, failed, err)
		require.False(t, got.Limited)
		require.Panics(t, func() { _, _ = l.Do(bg, "k", minutely, func(context.Context) error { panic("oh") }) })

		got, err = l.Do(bg, "k", minutely, works)
		require.NoError(t, err)
		require.False(t, got.Limited)
		require.Equal(t, 0, got.Remaining)

		got, err = l.Do(bg, "k", minutely, func(context.Context) error {
			t.Error("limited, and done all the same")
			return nil
		})
		require.NoError(t, err)
		require.True(t, got.Limited)
		require.Equal(t, time.Minute, got.RetryAfter)
		time.Sleep(time.Minute)
		got, err = l.Do(bg, "k", minutely, works)
		require.NoError(t, err)
		require.False(t, got.Limited)
	})
}

// Two /award that come at the same time: one is done.
func TestDoTwiceAtOnceIsDoneOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter(t, quota.Options{})
		var done, limited atomic.Int32
		var all sync.WaitGroup
		start := time.Now()
		for i := range 20 {
			key := quota.Key("award", i%2)
			all.Go(func() {
				got, err := l.Do(bg, key, minutely, func(context.Context) error {
					time.Sleep(time.Second)
					done.Add(1)
					return nil
				})
				require.NoError(t, err)
				if got.Limited {
					limited.Add(1)
				}
			})
		}
		all.Wait()
		require.EqualValues(t, 2, done.Load())
		require.EqualValues(t, 18, limited.Load())
		require.Equal(t, time.Second, time.Since(start), "other keys are not waited for")
	})
}

func TestDoWaitsForItsTurnAsLongAsItsContextLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter(t, quota.Options{})
		go func() {
			_, _ = l.Do(bg, "k", minutely, func(context.Context) error {
				time.Sleep(time.Minute)
				return errors.New("failed")
			})
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		start := time.Now()
		got, err := l.Do(ctx, "k", minutely, works)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, got.Limited)
		require.Equal(t, time.Second, time.Since(start))
		got, err = l.Do(bg, "k", minutely, works)
		require.NoError(t, err)
		require.False(t, got.Limited)
		require.Equal(t, time.Minute, time.Since(start))
	})
}

func TestDoChargesWorkThatOutlivedItsContext(t *testing.T) {
	l := limiter(t, quota.Options{})
	ctx, cancel := context.WithCancel(bg)
	_, err := l.Do(ctx, "k", minutely, func(context.Context) error { cancel(); return nil })
	require.NoError(t, err)
	got, err := l.Peek(bg, "k", minutely)
	require.NoError(t, err)
	require.True(t, got.Limited)
}

// Limited says whether the work was done, whatever comes after it.
func TestDoSaysWhetherTheWorkWasDone(t *testing.T) {
	var down atomic.Bool
	l := limiter(t, quota.Options{Store: &fake{
		quota.NewMemory(clock.System, 1<<21),
		func(context.Context) error {
			if down.Load() {
				return errBroken
			}
			return nil
		},
	}})
	got, err := l.Do(bg, "k", minutely, func(context.Context) error { down.Store(true); return nil })
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.False(t, got.Limited, "it was done")

	got, err = l.Do(bg, "k", minutely, func(context.Context) error { t.Error("not admitted"); return nil })
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.True(t, got.Limited)

	down.Store(false)
	got, err = l.Do(bg, "k", minutely, func(ctx context.Context) error {
		_, err := l.Charge(ctx, "k", minutely) // as another process would
		return err
	})
	require.NoError(t, err)
	require.False(t, got.Limited, "it was done")
	require.Zero(t, got.Remaining)

	_, err = l.Do(bg, "k", minutely, nil)
	require.ErrorAs(t, err, new(*store.ArgumentError))
	_, err = l.Do(bg, "", minutely, works)
	require.ErrorAs(t, err, new(*store.ArgumentError))
}
