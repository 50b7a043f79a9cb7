package store_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/store"
)

var errAway = errors.New("away")

// ask asks a store that answers with err, and reports whether it was asked.
func ask(h *store.Health, err error) (asked bool) {
	attempt, lost := h.Begin()
	if lost != nil {
		return false
	}
	attempt.End(err)
	return true
}

func TestStoreThatIsLostIsTriedAtIntervalsThatDouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := store.NewHealth(store.HealthOptions{})
		start := time.Now()
		require.True(t, ask(h, errAway))
		var tries []time.Duration
		last := start
		for time.Since(start) < 20*time.Second {
			time.Sleep(10 * time.Millisecond)
			if ask(h, errAway) {
				tries = append(tries, time.Since(last))
				last = time.Now()
			}
		}
		ms := time.Millisecond
		require.Equal(t, []time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 5000 * ms, 5000 * ms}, tries)
		since, err := h.Lost()
		require.Equal(t, errAway, err)
		require.Equal(t, start, since)

		time.Sleep(5 * time.Second)
		require.True(t, ask(h, nil))
		for range 10 {
			require.True(t, ask(h, nil), "it is there")
		}
		_, err = h.Lost()
		require.NoError(t, err)
		require.True(t, ask(h, errAway))
		time.Sleep(100 * time.Millisecond)
		require.True(t, ask(h, nil), "the pauses have begun anew")
	})
}

func TestOneCallerAtATimeTriesAStoreThatIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := store.NewHealth(store.HealthOptions{})
		require.True(t, ask(h, errAway))
		time.Sleep(time.Minute)
		first, err := h.Begin()
		require.NoError(t, err)
		_, err = h.Begin()
		require.Equal(t, errAway, err, "why it was lost")
		first.Abandon()
		second, err := h.Begin()
		require.NoError(t, err, "the first has shown nothing")
		_, err = h.Begin()
		require.Error(t, err)
		require.False(t, second.End(nil))
		_, err = h.Begin()
		require.NoError(t, err)
	})
}

// Many questions were under way when the store was lost. They fail one after the other.
func TestQuestionsThatFailTogetherAreOneOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := store.NewHealth(store.HealthOptions{})
		var attempts []store.Attempt
		for range 10 {
			attempt, err := h.Begin()
			require.NoError(t, err)
			attempts = append(attempts, attempt)
		}
		for i, attempt := range attempts {
			require.Equal(t, i == 0, attempt.End(errAway), "it is lost once")
		}
		wait, lost := h.Due()
		require.True(t, lost)
		require.Equal(t, 100*time.Millisecond, wait, "the pause does not grow by them")
		time.Sleep(wait)
		require.True(t, ask(h, nil))
		_, lost = h.Due()
		require.False(t, lost)
	})
}
