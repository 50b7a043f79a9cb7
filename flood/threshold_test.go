package flood_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/flood"
)

func TestNeverAlwaysAndDefaultAreThreeThings(t *testing.T) {
	for _, tt := range []struct {
		t     flood.Threshold
		text  string
		limit time.Duration
	}{
		{flood.Default, "default", 10 * time.Second},
		{flood.Never, "never", 0},
		{flood.Always, "always", math.MaxInt64},
		{flood.UpTo(90 * time.Second), "1m30s", 90 * time.Second},
	} {
		text, err := tt.t.MarshalText()
		require.NoError(t, err)
		require.Equal(t, tt.text, string(text))
		back := flood.UpTo(time.Hour)
		require.NoError(t, back.UnmarshalText(text))
		require.Equal(t, tt.t, back)

		require.Equal(t, tt.limit, tt.t.Limit())
		require.True(t, tt.t.Allows(0))
		require.True(t, tt.t.Allows(tt.limit))
		if tt.t != flood.Always {
			require.False(t, tt.t.Allows(tt.limit+1))
		}
	}
	require.Equal(t, flood.Never, flood.UpTo(0))
	require.Equal(t, flood.Never, flood.UpTo(-5))
	require.Equal(t, flood.Never, flood.Default.Or(flood.Never))
	require.Equal(t, flood.Always, flood.Always.Or(flood.Never))
}

func TestAThresholdThatSaysNothingClearIsRefused(t *testing.T) {
	for text, remedy := range map[string]string{
		"0s": `say "never"`, "0": `say "never"`, "-1s": `say "never"`,
		"10": `"10s"`, "": `"10s"`, "soon": `"10s"`, "Never": `"never"`,
	} {
		th := flood.UpTo(time.Minute)
		err := th.UnmarshalText([]byte(text))
		require.ErrorContains(t, err, remedy, text)
		require.ErrorContains(t, err, `"`+text+`"`)
		require.Equal(t, flood.UpTo(time.Minute), th, "a refused text changes nothing")
	}
}
