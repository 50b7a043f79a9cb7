package learn_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/internal/learn"
)

// What the first floods told may be wrong: calls overtake each other on the way, and some
// answers never come. Too large a spare would explain any probe by too low a limit, for
// ever, if it were not doubted.
func TestAWrongEstimateIsFoundOut(t *testing.T) {
	least := 1.0
	for _, burst := range []float64{1, 2, 5, 10, 30} {
		for _, held := range []float64{5, 7.3, 8.5, 9.5} {
			for _, spare := range []float64{0.01, 1, 3, 6, 12, 25} {
				s := newSim(t, 30, 40, newBucketServer(10, burst), 0.1)
				s.tokens = 1
				require.NoError(t, s.rate.Restore(learn.State{Held: held, Spare: spare, Flooded: clock(-1)}, clock(0)))
				s.work(1200)
				share := float64(between(s.passed, 600, 1200)) / 6000
				least = min(least, share)
				require.GreaterOrEqual(t, share, 0.7, "burst %v, held %v, spare %v", burst, held, spare)
				require.LessOrEqual(t, between(s.events, 0, 600), 15, "burst %v, held %v, spare %v", burst, held, spare)
			}
		}
	}
	t.Logf("of 10/s at least %.1f %% in the second ten minutes", 100*least)
}
