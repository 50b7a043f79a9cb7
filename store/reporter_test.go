package store_test

import (
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/store"
)

func TestStoreIsLostWhileAnyOfItsUsersFindsItSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []error
		r := store.NewReporter(nil, func(err error) { told = append(told, err) })
		defer r.Close()
		gates, facts := store.NewHealth(store.HealthOptions{Reporter: r}), store.NewHealth(store.HealthOptions{Reporter: r})
		errGates := errors.New("gates")
		for _, step := range []struct {
			user *store.Health
			err  error
			told []error
		}{
			{facts, nil, nil},
			{facts, errAway, []error{errAway}},
			{facts, errors.New("still"), []error{errAway}},
			{gates, errGates, []error{errAway}},
			{facts, nil, []error{errAway}},
			{gates, nil, []error{errAway, nil}},
			{gates, errGates, []error{errAway, nil, errGates}},
		} {
			step.user.Heard(step.err)
			synctest.Wait()
			require.Equal(t, step.told, told)
		}
	})
}

// Whoever meets a change holds locks, and whoever hears of it may want them.
func TestChangeIsToldByAnotherGoroutineOneAtATimeAndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h *store.Health
		var told []bool
		busy := 0
		r := store.NewReporter(nil, func(err error) {
			busy++
			assert.Equal(t, 1, busy)
			_, now := h.Lost()
			assert.Equal(t, err, now)
			told = append(told, err != nil)
			time.Sleep(time.Second)
			busy--
		})
		defer r.Close()
		h = store.NewHealth(store.HealthOptions{Reporter: r})
		start := time.Now()
		for range 3 {
			h.Heard(errAway)
			synctest.Wait()
			h.Heard(nil)
			h.Heard(errAway) // which undo each other
			h.Heard(nil)
			require.Zero(t, time.Since(start), "nobody waits for it")
			time.Sleep(3 * time.Second)
			synctest.Wait()
			start = time.Now()
		}
		require.Equal(t, []bool{true, false, true, false, true, false}, told)
	})
}

func TestReporterOutlivesAFunctionThatPanicsOrEndsItsGoroutine(t *testing.T) {
	for name, end := range map[string]func(){"panics": func() { panic("told") }, "ends": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told []bool
				r := store.NewReporter(nil, func(err error) {
					told = append(told, err != nil)
					time.Sleep(time.Second)
					end()
				})
				h := store.NewHealth(store.HealthOptions{Reporter: r})
				h.Heard(errAway)
				synctest.Wait()
				h.Heard(nil) // while it is told of the loss
				time.Sleep(time.Minute)
				synctest.Wait()
				require.Equal(t, []bool{true, false}, told)
				start := time.Now()
				r.Close()
				require.Zero(t, time.Since(start), "there is nobody to wait for")
			})
		})
	}
}

func TestNothingIsToldAfterClose(t *testing.T) {
	for _, takes := range []time.Duration{0, time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			told := 0
			r := store.NewReporter(nil, func(error) {
				told++
				time.Sleep(takes)
			})
			h := store.NewHealth(store.HealthOptions{Reporter: r})
			h.Heard(errAway)
			synctest.Wait()
			h.Heard(nil)
			start := time.Now()
			r.Close()
			require.Equal(t, min(takes, 2*time.Second), time.Since(start))
			before := told
			h.Heard(errAway)
			synctest.Wait()
			h.Heard(nil)
			time.Sleep(2 * time.Hour)
			synctest.Wait()
			require.Equal(t, before, told)
		})
	}
}
