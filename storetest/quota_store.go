package storetest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weirtg/weir/quota"
	"github.com/weirtg/weir/store"
)

func keysDoNotMeet(t *testing.T, h QuotaHarness) {
	keys := []string{
		"a", "a:", ":a", "a:b", "a\x00", "a\x00b", "\x00", "\x00\x00", "a{b}", "{a}b", "{}", "a b", "a\nb", "*", "%s", "sliding",
		strings.Repeat("x", quota.MaxKey), strings.Repeat("x", quota.MaxKey-1),
	}
	for b := range 256 {
		keys = append(keys, "byte"+string([]byte{byte(b)}))
	}
	w := quota.Window{Limit: 1, Period: day}
	for _, key := range keys {
		require.False(t, charge(t, h.Store, key, w, 1).Limited, "%q is another's", key)
	}
	for _, key := range keys {
		require.True(t, peek(t, h.Store, key, w).Limited, "%q was not kept", key)
	}
	for i, key := range keys {
		if i%2 == 0 {
			require.NoError(t, h.Store.Reset(context.Background(), key))
		}
	}
	for i, key := range keys {
		require.Equal(t, i%2 == 1, peek(t, h.Store, key, w).Limited, "%q", key)
	}
}

func lastSlotOnce(t *testing.T, h QuotaHarness) {
	stores := []quota.Store{h.Store}
	if h.Other != nil {
		stores = append(stores, h.Other)
	}
	for kind := quota.Sliding; kind <= quota.Bucket; kind++ {
		h.toNext(time.Hour, 0)
		w := quota.Window{Limit: 10, Period: time.Hour, Kind: kind}
		var passed atomic.Int32
		var all sync.WaitGroup
		for i := range 64 {
			all.Go(func() {
				r := quota.Request{Key: "k", Window: w, Cost: 1, Record: true}
				got, err := stores[i%len(stores)].Decide(context.Background(), r)
				if err != nil {
					t.Error(err)
				} else if !got.Limited {
					passed.Add(1)
				}
			})
		}
		all.Wait()
		require.EqualValues(t, 10, passed.Load(), "%v", kind)
	}
}

// A random program, run on the store and on plain states.
func decidesAsTheModel(t *testing.T, h QuotaHarness) {
	stores := []quota.Store{h.Store}
	if h.Other != nil {
		stores = append(stores, h.Other)
	}
	type ident struct {
		key  string
		kind quota.Kind
	}
	window := rapid.Custom(func(t *rapid.T) quota.Window {
		return quota.Window{
			Limit:  rapid.OneOf(rapid.IntRange(1, 7), rapid.IntRange(1, quota.MaxLimit)).Draw(t, "limit"),
			Period: time.Duration(rapid.Int64Range(1000, 20_000).Draw(t, "period")) * time.Microsecond,
			Kind:   quota.Kind(rapid.IntRange(0, int(quota.Bucket)).Draw(t, "kind")),
		}
	})
	program := 0
	rapid.Check(t, func(t *rapid.T) {
		program++
		states := make(map[ident]quota.State)
		windows := rapid.SliceOfN(window, 1, 4).Draw(t, "windows")
		var last quota.Result
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			s := rapid.SampledFrom(stores).Draw(t, "store")
			key := fmt.Sprintf("%d:%d", program, rapid.IntRange(0, 1).Draw(t, "key"))
			switch rapid.IntRange(0, 9).Draw(t, "do") {
			case 0:
				h.Advance(time.Duration(rapid.Int64Range(1, 25_000).Draw(t, "pass")) * time.Microsecond)
			case 1:
				h.Advance(last.RetryAfter)
			case 2:
				h.Advance(max(0, last.RetryAfter-tick))
			case 3:
				if err := s.Reset(context.Background(), key); err != nil {
					t.Fatal(err)
				}
				for kind := quota.Sliding; kind <= quota.Bucket; kind++ {
					delete(states, ident{key, kind})
				}
			default:
				w := rapid.SampledFrom(windows).Draw(t, "window")
				r := quota.Request{Key: key, Window: w, Record: rapid.IntRange(0, 4).Draw(t, "peek") > 0}
				r.Cost = rapid.OneOf(rapid.Just(1), rapid.IntRange(1, w.Limit)).Draw(t, "cost")
				want, state, err := states[ident{key, w.Kind}].Decide(r, h.Now())
				if err != nil {
					t.Fatal(err)
				}
				states[ident{key, w.Kind}] = state
				if last, err = s.Decide(context.Background(), r); err != nil {
					t.Fatal(err)
				}
				if plain(last) != plain(want) {
					t.Fatalf("%+v:\nthe store says %+v,\nthe model     %+v", r, plain(last), plain(want))
				}
			}
		}
	})
}

func idleForgotten(t *testing.T, h QuotaHarness) {
	if h.Kept == nil {
		return
	}
	const idle = 500
	w := quota.Window{Limit: 2, Period: time.Minute}
	for i := range idle {
		charge(t, h.Store, fmt.Sprintf("idle %d", i), w, 1)
	}
	require.GreaterOrEqual(t, h.Kept(), idle)
	h.Advance(time.Minute)
	for i := range 2 * idle {
		charge(t, h.Store, fmt.Sprintf("busy %d", i%10), w, 1)
		h.Advance(time.Second)
	}
	require.Less(t, h.Kept(), idle/4)
}

func clockSetBack(t *testing.T, h QuotaHarness) {
	if h.SetBack == nil {
		return
	}
	for kind := quota.Sliding; kind <= quota.Bucket; kind++ {
		key := kind.String()
		w := quota.Window{Limit: 2, Period: time.Hour, Kind: kind}
		h.toNext(time.Hour, 0)
		charge(t, h.Store, key, w, 2)
		h.Advance(10 * time.Minute)
		require.True(t, peek(t, h.Store, key, w).Limited)
		h.SetBack(day)
		got := charge(t, h.Store, key, w, 2)
		require.True(t, got.Limited, "%v: the clock set back has made room", kind)
		require.LessOrEqual(t, got.RetryAfter, 50*time.Minute, "%v: locked for as long as the clock was set back", kind)
		h.Advance(got.RetryAfter)
		require.False(t, charge(t, h.Store, key, w, 2).Limited, "%v", kind)
	}
}

func outlives(t *testing.T, h QuotaHarness) {
	if h.Reopen == nil {
		return
	}
	w := quota.Window{Limit: 3, Period: day}
	charge(t, h.Store, "k", w, 2)
	h.Advance(time.Hour)
	h.Store = h.Reopen()
	h.passes(t, charge(t, h.Store, "k", w, 1), 0, day)
	h.refuses(t, charge(t, h.Store, "k", w, 1), 0, 23*time.Hour, day)
	require.NoError(t, h.Store.Reset(context.Background(), "k"))
	h.Store = h.Reopen()
	h.passes(t, peek(t, h.Store, "k", w), 3, 0)
}

func doneContext(t *testing.T, h QuotaHarness) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	w := quota.Window{Limit: 3, Period: day}
	_, err := h.Store.Decide(ctx, quota.Request{Key: "k", Window: w, Cost: 1, Record: true})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, h.Store.Reset(ctx, "k"), context.Canceled)
	h.passes(t, peek(t, h.Store, "k", w), 3, 0)
}

// Time is real here: a hung store does not notice an injected clock.
func hungStore(t *testing.T, h QuotaHarness) {
	if h.Hung == nil {
		return
	}
	r := quota.Request{Key: "k", Window: quota.Window{Limit: 3, Period: day}, Cost: 1, Record: true}
	for doing, call := range map[string]func(context.Context) error{
		"decide": func(ctx context.Context) error { _, err := h.Hung.Decide(ctx, r); return err },
		"reset":  func(ctx context.Context) error { return h.Hung.Reset(ctx, r.Key) },
	} {
		const passes = 20 * time.Millisecond // until the context is done: the call is under way by then
		deadline, cancel := context.WithTimeout(context.Background(), passes)
		defer cancel()
		began := time.Now()
		require.ErrorIs(t, call(deadline), context.DeadlineExceeded, doing)
		require.Less(t, time.Since(began), passes+quota.ReturnWithin, "%s: after its deadline", doing)

		cancelled, cancel := context.WithCancel(context.Background())
		defer cancel()
		var at time.Time
		time.AfterFunc(passes, func() { at = time.Now(); cancel() })
		require.ErrorIs(t, call(cancelled), context.Canceled, doing)
		require.Less(t, time.Since(at), quota.ReturnWithin, "%s: after it was cancelled", doing)
	}
}

func closedFails(t *testing.T, h QuotaHarness) {
	require.NoError(t, h.Store.Close())
	r := quota.Request{Key: "k", Window: quota.Window{Limit: 3, Period: day}, Cost: 1, Record: true}
	_, err := h.Store.Decide(context.Background(), r)
	require.ErrorIs(t, err, store.ErrUnavailable)
	r.Record = false
	_, err = h.Store.Decide(context.Background(), r)
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.ErrorIs(t, h.Store.Reset(context.Background(), "k"), store.ErrUnavailable)
	require.NoError(t, h.Store.Close(), "closed twice")
}
