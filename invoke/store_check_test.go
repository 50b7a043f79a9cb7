package invoke_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/store"
)

// checked is a store that says before its first use whether it can be used.
type checked struct {
	*stuck
	err error
}

// sharing is one that holds the gates too.
type sharing struct {
	checked
	alone
}

func (c checked) Check(context.Context) error { return c.err }

var errPassword = fmt.Errorf("%w, %w: wrong password", store.ErrUnavailable, store.ErrMisconfigured)

func TestStoreThatWaitingDoesNotMendFailsTheLimiterUnderEveryPolicy(t *testing.T) {
	for _, policy := range []store.Policy{store.FailClosed, store.FailOpen, store.FailLocal} {
		for name, opts := range map[string]invoke.Options{
			"facts":           {Store: checked{stuck: &stuck{disk: newDisk()}, err: errPassword}},
			"facts and gates": {Store: sharing{checked: checked{stuck: &stuck{disk: newDisk()}, err: errPassword}}},
		} {
			t.Run(fmt.Sprint(policy, " ", name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					opts.OnFailure = policy
					limiter, err := invoke.NewLimiter(opts)
					require.ErrorIs(t, err, store.ErrMisconfigured)
					require.ErrorContains(t, err, "wrong password")
					require.Nil(t, limiter)
				})
			})
		}
	}
}

func TestStoreThatIsAwayAtTheStartFailsTheLimiterUnderClosedOnly(t *testing.T) {
	for _, policy := range []store.Policy{store.FailClosed, store.FailOpen, store.FailLocal} {
		synctest.Test(t, func(t *testing.T) {
			limiter, err := invoke.NewLimiter(invoke.Options{
				Store: sharing{checked: checked{stuck: &stuck{disk: newDisk()}, err: store.ErrUnavailable}}, OnFailure: policy, Logger: zap.NewNop(),
			})
			if policy == store.FailClosed {
				require.ErrorIs(t, err, store.ErrUnavailable)
				return
			}
			require.NoError(t, err)
			limiter.Close()
		})
	}
}

func TestStoreThatIsLostIsLoggedWithoutAnObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logged := observer.New(zap.InfoLevel)
		d := &stuck{disk: newDisk()}
		d.set(false, true)
		limiter, err := invoke.NewLimiter(invoke.Options{Store: d, OnFailure: store.FailLocal, Logger: zap.New(core)})
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, 1, logged.FilterMessageSnippet("The store is away").Len())
		require.Equal(t, "stuck: store unavailable", logged.All()[0].ContextMap()["error"])
		d.set(false, false)
		limiter.Close()
	})
}

// A fact that claims to last for ever is no change of limits for ever.
func TestFactThatIsToLastBeyondReasonIsIgnoredAndLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logged := observer.New(zap.InfoLevel)
		d := newDisk()
		bucket := []byte(`{"bucket":{"Rate":0.001,"Burst":1}}`)
		for _, category := range []string{"message", "query"} {
			require.NoError(t, d.Save(t.Context(), store.Fact{Key: "limit/" + category, Value: bucket, Until: time.UnixMicro(1 << 60)}))
		}
		limiter, err := invoke.NewLimiter(invoke.Options{Store: sharing{checked: checked{stuck: &stuck{disk: d}}}, Logger: zap.New(core)})
		require.NoError(t, err)
		defer limiter.Close()
		require.Equal(t, 30, limitsOf(limiter, classify.Message).Burst)
		require.Equal(t, 1, logged.FilterMessageSnippet("Ignored an entry").Len())
	})
}
