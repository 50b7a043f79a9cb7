package redisstore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/quota"
	"github.com/weirtg/weir/ratelimit"
)

// Numbers on the server that nobody can have written neither close a gate for good nor switch
// limits off.
func TestNumbersOnTheServerThatAreBeyondReasonAreNotBelieved(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		s := w.open(t)
		hour := ratelimit.Window{Limit: 3, Period: time.Hour, Kind: ratelimit.FirstHit}
		for _, big := range []string{"1152921504606846976", "9223372036854775807", "9007199254740991", "99999999999999999999"} {
			for name, kept := range map[string]string{
				"clock": big + " 0 " + big, "gate:0:b": "b " + big + " 1000000 3", "gate:0:c": "b 0 0 0",
				"gate:0:f": "f " + big + " 1 0 3600000000", "gate:0:d": "b " + big + " " + big + " " + big + "|x " + big + " " + big + " " + big,
			} {
				require.NoError(t, w.client.Set(ctx, w.prefix()+name, kept, time.Hour).Err())
			}
			for gate, rule := range map[string]ratelimit.Rule{"b": perSecond(1, 3), "c": perSecond(1, 3), "d": perSecond(1, 3), "f": hour} {
				admitted := 0
				for range 10 {
					ok, found, err := s.Take(ctx, []ratelimit.Charge{charge(gate, rule, 1)})
					require.NoError(t, err, "%s %s", big, gate)
					require.LessOrEqual(t, found[0].Wait, 2*time.Hour, "%s %s", big, gate)
					if ok {
						admitted++
					}
				}
				require.LessOrEqual(t, admitted, 3, "%s %s: limits are off", big, gate)
			}
			w.advance(t, 3*time.Hour)
			for gate, rule := range map[string]ratelimit.Rule{"b": perSecond(1, 3), "c": perSecond(1, 3), "d": perSecond(1, 3), "f": hour} {
				ok, _, err := s.Take(ctx, []ratelimit.Charge{charge(gate, rule, 1)})
				require.NoError(t, err)
				require.True(t, ok, "%s %s: it is closed for good", big, gate)
			}
			window := quota.Window{Limit: 1, Period: time.Hour, Kind: quota.Bucket}
			limited := 0
			for i := range 3 {
				got, err := s.Decide(ctx, quota.Request{Key: fmt.Sprint(big), Window: window, Cost: 1, Record: true})
				require.NoError(t, err)
				require.WithinDuration(t, w.time, got.ResetAt, 2*time.Hour, i)
				if got.Limited {
					limited++
				}
			}
			require.Equal(t, 2, limited)
		}
	})
}
