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

// results runs the program and reads what it printed.
func results(t *testing.T, args ...string) (all []result) {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, bench(t.Context(), append(args, "-scale", "10", "-json"), &out, io.Discard))
	require.NoError(t, json.Unmarshal(out.Bytes(), &all))
	for _, r := range all {
		t.Logf("%+v", r)
		assert.Equal(t, r.Messages, r.Sent+r.Failed)
	}
	return all
}

func TestWeirSendsEverything(t *testing.T) {
	// Floods are left to the benchmark: at this scale the network's jitter on a busy
	// machine is a good part of a period.
	all := results(t, "-workload", "groups,media,interactive", "-contender", "weir")
	require.Len(t, all, 3)
	for _, r := range all {
		assert.True(t, r.Done)
		assert.Zero(t, r.Failed)
		assert.GreaterOrEqual(t, r.Seconds, r.Least-0.1)
	}
	user := all[2].Interactive
	require.NotNil(t, user)
	assert.Equal(t, user.Calls, user.Answered)
	assert.LessOrEqual(t, user.P50, user.P99)
}

func TestOthersAreFloodedAndStoppedInTime(t *testing.T) {
	all := results(t, "-workload", "groups", "-contender", "waiter+ratelimit,nothing", "-timeout", "1s")
	require.Len(t, all, 2)
	for _, r := range all {
		assert.NotZero(t, r.Floods, "the data centre enforces the limits")
		assert.NotZero(t, r.Failed)
	}
	assert.False(t, all[0].Done)
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
