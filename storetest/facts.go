package storetest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/store"
)

// MemoryHarness is an account's memory under test, which is empty.
type MemoryHarness struct {
	Clock
	Memory store.Facts
	// Other is another process's of the same account. Nil if there can be none.
	Other store.Facts
	// Reopen closes Memory and opens its data anew, if that is to outlive it.
	Reopen func() store.Facts
}

// Memory tests an account's memory. It calls start for each test, which closes what it
// has opened with t.Cleanup.
func Memory(t *testing.T, start func(t *testing.T) MemoryHarness) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, MemoryHarness)
	}{
		{"KeepsFacts", keepsFacts},
		{"FactsExpire", factsExpire},
		{"NilForgets", nilForgets},
		{"LargestFact", largestFact},
		{"BadFactsAreRefusedAndNothingSaved", badFacts},
		{"ManyAtOnce", manyAtOnce},
		{"Watch", watch},
		{"FactsOutliveTheirProcess", factsOutlive},
		{"ADoneContextSavesNothing", doneContextSaves},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, start(t)) })
	}
}

// facts are those that a memory loads, by key. Of a value, it is the text.
func facts(t *testing.T, m store.Facts) map[string]string {
	t.Helper()
	all, err := m.Load(context.Background())
	require.NoError(t, err)
	got := make(map[string]string)
	for _, f := range all {
		require.NotContains(t, got, f.Key, "loaded twice")
		require.NotNil(t, f.Value)
		require.False(t, f.Until.IsZero())
		got[f.Key] = string(f.Value)
	}
	return got
}

func save(t *testing.T, m store.Facts, facts ...store.Fact) {
	t.Helper()
	require.NoError(t, m.Save(context.Background(), facts...))
}

// fact is one that holds for a time. Until is within the precision of a millisecond,
// which is all that is asked of a memory.
func (h MemoryHarness) fact(key, value string, holds time.Duration) store.Fact {
	return store.Fact{Key: key, Value: []byte(value), Until: h.Now().Add(holds).Truncate(time.Millisecond)}
}

func keepsFacts(t *testing.T, h MemoryHarness) {
	require.Empty(t, facts(t, h.Memory))
	save(t, h.Memory)
	a := h.fact("a", "1", time.Hour)
	save(t, h.Memory, a, h.fact("b\x00\xff:", "\x00\xff", time.Minute), h.fact("empty", "", time.Hour))
	require.Equal(t, map[string]string{"a": "1", "b\x00\xff:": "\x00\xff", "empty": ""}, facts(t, h.Memory))
	save(t, h.Memory, h.fact("a", "2", time.Hour))
	require.Equal(t, map[string]string{"a": "2", "b\x00\xff:": "\x00\xff", "empty": ""}, facts(t, h.Memory))

	all, err := h.Memory.Load(context.Background())
	require.NoError(t, err)
	for _, f := range all {
		if f.Key == "a" {
			require.True(t, f.Until.Equal(a.Until), "until %v, was saved as %v", f.Until, a.Until)
		}
	}
}

func factsExpire(t *testing.T, h MemoryHarness) {
	short := h.fact("short", "1", time.Minute)
	save(t, h.Memory, short, h.fact("long", "2", time.Hour), h.fact("over", "3", -time.Second))
	require.Equal(t, map[string]string{"short": "1", "long": "2"}, facts(t, h.Memory))
	h.Advance(short.Until.Sub(h.Now()) - time.Millisecond)
	require.Contains(t, facts(t, h.Memory), "short")
	h.Advance(time.Millisecond)
	require.Equal(t, map[string]string{"long": "2"}, facts(t, h.Memory))
	save(t, h.Memory, h.fact("long", "3", time.Minute), h.fact("new", "4", time.Hour))
	h.Advance(time.Minute + time.Millisecond)
	require.Equal(t, map[string]string{"new": "4"}, facts(t, h.Memory), "the later saying holds, though it is the shorter")
	save(t, h.Memory, h.fact("new", "5", -time.Second))
	require.Empty(t, facts(t, h.Memory), "what has expired replaces what has not")
}

func nilForgets(t *testing.T, h MemoryHarness) {
	save(t, h.Memory, h.fact("a", "1", time.Hour), h.fact("b", "1", time.Hour))
	save(t, h.Memory, store.Fact{Key: "a"}, store.Fact{Key: "never saved"}, h.fact("c", "1", time.Hour))
	require.Equal(t, map[string]string{"b": "1", "c": "1"}, facts(t, h.Memory))
}

func largestFact(t *testing.T, h MemoryHarness) {
	key, value := strings.Repeat("k", store.MaxFactKey), strings.Repeat("v", store.MaxFactValue)
	save(t, h.Memory, h.fact(key, value, time.Hour))
	require.Equal(t, map[string]string{key: value}, facts(t, h.Memory))
}

func badFacts(t *testing.T, h MemoryHarness) {
	for field, bad := range map[string][]store.Fact{
		"fact.key": {
			h.fact("", "1", time.Hour), {}, h.fact(strings.Repeat("k", store.MaxFactKey+1), "1", time.Hour),
		},
		"fact.value": {h.fact("k", strings.Repeat("v", store.MaxFactValue+1), time.Hour)},
		"fact.until": {{Key: "k", Value: []byte("v")}},
	} {
		for _, f := range bad {
			err := h.Memory.Save(context.Background(), h.fact("good", "1", time.Hour), f)
			var argument *store.ArgumentError
			require.ErrorAs(t, err, &argument)
			require.Equal(t, field, argument.Field)
			require.NotErrorIs(t, err, store.ErrUnavailable)
		}
	}
	require.Empty(t, facts(t, h.Memory))
}

func manyAtOnce(t *testing.T, h MemoryHarness) {
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			for j := range 3 {
				f := h.fact(fmt.Sprint("fact ", i), fmt.Sprint(j), time.Hour)
				if err := h.Memory.Save(context.Background(), f); err != nil {
					t.Error(err)
				}
				if _, err := h.Memory.Load(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	got := facts(t, h.Memory)
	require.Len(t, got, 32)
	for key, value := range got {
		require.Equal(t, "2", value, key)
	}
}

func watch(t *testing.T, h MemoryHarness) {
	save(t, h.Memory, h.fact("before", "1", time.Hour))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	seen := make(chan store.Fact, 100)
	ended := make(chan error, 1)
	go func() {
		ended <- h.Memory.Watch(ctx, func(f store.Fact) { seen <- f })
	}()
	if h.Other != nil {
		see := func(key, value string) {
			t.Helper()
			for {
				select {
				case f := <-seen:
					if f.Key == key && string(f.Value) == value {
						require.Equal(t, value == "", f.Value == nil)
						return
					}
				case <-time.After(10 * time.Second):
					t.Fatalf("%q = %q was not seen", key, value)
				}
			}
		}
		see("before", "1")
		save(t, h.Other, h.fact("after", "2", time.Hour))
		see("after", "2")
		save(t, h.Other, store.Fact{Key: "after"})
		see("after", "")
	}
	select {
	case err := <-ended:
		t.Fatalf("Watch has ended: %v", err)
	default:
	}
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}

func factsOutlive(t *testing.T, h MemoryHarness) {
	if h.Reopen == nil {
		return
	}
	save(t, h.Memory, h.fact("a", "1", time.Hour), h.fact("b", "1", time.Minute))
	save(t, h.Memory, h.fact("c", "1", time.Hour), store.Fact{Key: "c"})
	h.Advance(2 * time.Minute)
	require.Equal(t, map[string]string{"a": "1"}, facts(t, h.Reopen()))
}

func doneContextSaves(t *testing.T, h MemoryHarness) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, h.Memory.Save(ctx, h.fact("a", "1", time.Hour)), context.Canceled)
	_, err := h.Memory.Load(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, h.Memory.Watch(ctx, func(store.Fact) {}), context.Canceled)
	require.Empty(t, facts(t, h.Memory))
}
