package flood_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/flood"
)

func TestRefusalKindsHaveNamesOfTheirOwn(t *testing.T) {
	for k := flood.SpamLimited; k <= flood.AuthGone; k++ {
		text, err := k.MarshalText()
		require.NoError(t, err)
		require.Regexp(t, `^[a-z]+(_[a-z]+)*$`, string(text))
		var back flood.RefusalKind
		require.NoError(t, back.UnmarshalText(text))
		require.Equal(t, k, back)
	}
	_, err := flood.RefusalKind(0).MarshalText()
	require.ErrorContains(t, err, "0 is no kind of refusal")
	require.ErrorContains(t, new(flood.RefusalKind).UnmarshalText([]byte("unknown")), `unknown kind of refusal "unknown": want a name such as "spam_limited"`)
}
