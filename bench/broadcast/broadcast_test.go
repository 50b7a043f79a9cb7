package main

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/weirtg/weir/localdc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLeastIsComputedFromTheLimits(t *testing.T) {
	least := map[string]time.Duration{}
	for _, w := range workloads(1) {
		least[w.name] = w.least().Round(time.Millisecond)
	}
	assert.Equal(t, map[string]time.Duration{
		"even":        9 * time.Second,          // (300 − 30) / 30
		"few":         12 * time.Second,         // 15 a chat: (15 − 3) / 1
		"groups":      6 * time.Second,          // 60 a group: 20, 20 a period later, 20 two periods later
		"media":       10 * time.Second,         // 60 photos: (60 − 10) / 5
		"interactive": 10333 * time.Millisecond, // (300 + 40 − 30) / 30
	}, least)
	assert.Zero(t, bucket(localdc.Rate{}, 1000))
	assert.Zero(t, window(localdc.Window{}, 1000))
	assert.Zero(t, window(localdc.Window{Limit: 20, Period: time.Second}, 20))
}

func TestShortBroadcastThroughEachContender(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, bench(t.Context(), []string{"-workload", "groups", "-scale", "10", "-timeout", "1500ms", "-json"}, &out, io.Discard))
	var results []result
	require.NoError(t, json.Unmarshal(out.Bytes(), &results))
	require.Len(t, results, len(contenders()))
	for _, r := range results {
		t.Logf("%+v", r)
		assert.Equal(t, r.Messages, r.Sent+r.Failed)
		switch r.Contender {
		case "weir":
			assert.True(t, r.Done)
			assert.Zero(t, r.Failed)
			assert.GreaterOrEqual(t, r.Seconds, r.Least-0.1)
		case "nothing":
			assert.NotZero(t, r.Failed, "the data centre lets everything pass")
			assert.NotZero(t, r.Floods)
		}
	}
}

func TestPhotosAndTheUserInTheMiddleAreSent(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, bench(t.Context(), []string{"-workload", "media,interactive", "-contender", "weir", "-scale", "10", "-json"}, &out, io.Discard))
	var results []result
	require.NoError(t, json.Unmarshal(out.Bytes(), &results))
	require.Len(t, results, 2)
	for _, r := range results {
		assert.True(t, r.Done)
		assert.Equal(t, r.Messages, r.Sent)
	}
	user := results[1].Interactive
	require.NotNil(t, user)
	assert.Equal(t, user.Calls, user.Answered)
	assert.LessOrEqual(t, user.P50, user.P99)
}

func TestBadFlagsAreNamed(t *testing.T) {
	for flag, value := range map[string]string{"-workload": "evening", "-contender": "weird", "-scale": "0", "-workers": "0"} {
		err := bench(t.Context(), []string{flag, value}, io.Discard, io.Discard)
		require.ErrorContains(t, err, flag)
		require.ErrorContains(t, err, value)
	}
}

func TestQuantile(t *testing.T) {
	ms := func(n int) (all []time.Duration) {
		for i := range n {
			all = append(all, time.Duration(i+1)*time.Millisecond)
		}
		return all
	}
	assert.InDelta(t, 50, quantile(ms(100), 50), 0)
	assert.InDelta(t, 99, quantile(ms(100), 99), 0)
	assert.InDelta(t, 40, quantile(ms(40), 99), 0)
	assert.Zero(t, quantile(nil, 99))
}
