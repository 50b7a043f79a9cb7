package config_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/config"
)

// FuzzParse looks for a file that makes Parse panic, that gets a value past its
// bounds, or that brings a secret into an error. The fuzzer moves the marks
// about, in place of which the secrets stand.
func FuzzParse(f *testing.F) {
	f.Add(string(sample))
	f.Add("app_hash: <H>\nbot_token: <T>\n")
	f.Add("<T>: 1\nrate_limits: {<H>: {rate: <T>, burst: *<H>}}\nhttp: <T>\n")
	f.Add("app_id: &a 5\ndc: *a\n<<: *a\n? [x]\n: <T>\n")
	f.Add("test_dc: yes\nsleep_threshold: 0\nlog_level: |\n  <T>\n--- # <H>\n...")
	f.Add("rate_limits: &r\n  message: {rate: .nan, burst: 1e9}\n  media: *r\n")
	f.Add("chats: {mode: <T>, private: {rate: -0}, group: {limit: 1e3, period: -1m}}\nmax_waiters: <H>\n")
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.NewReplacer("<H>", hash, "<T>", token).Replace(text)
		c, err := config.Parse([]byte(text))
		if err != nil {
			var e *config.Error
			require.True(t, errors.As(err, &e))
			require.Len(t, strings.Split(err.Error(), "\n"), len(e.Faults))
			requireNoSecret(t, fmt.Sprintf("%v %#v", err, e.Faults), "error")
			return
		}
		require.True(t, 0 <= c.AppID && 0 <= c.DC && c.DC <= 5 && (!c.TestDC || c.DC <= 3))
		require.NotEmpty(t, c.SessionFile)
		require.False(t, strings.HasPrefix(c.HTTP, ":"))
		require.True(t, c.SleepThreshold.UpTo >= 0 && !(c.SleepThreshold.Never && c.SleepThreshold.Always))
		for _, limit := range append(slices.Collect(maps.Values(c.RateLimits)), c.Chats.Private) {
			require.True(t, limit.Rate == nil || 0 <= *limit.Rate && *limit.Rate <= 1e6)
			require.True(t, limit.Burst == nil || 0 <= *limit.Burst && *limit.Burst <= 1e6)
		}
		require.Contains(t, []string{"", "bots", "always", "never"}, c.Chats.Mode)
		require.True(t, c.Chats.Group.Limit == nil || 0 <= *c.Chats.Group.Limit && *c.Chats.Group.Limit <= 1e6)
		require.True(t, c.Chats.Group.Period == nil || *c.Chats.Group.Period > 0)
		require.True(t, c.MaxWaiters >= 0)
		c.SessionFile, c.StoreFile, c.HTTP = "", "", "" // they may be called as they like
		data, err := json.Marshal(c)
		require.NoError(t, err)
		requireNoSecret(t, string(data)+fmt.Sprintf("%+v", c), "config")
	})
}
