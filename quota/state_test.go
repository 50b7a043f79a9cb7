package quota_test

import (
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weirtg/weir/quota"
)

// hit is a charge.
type hit struct{ at, cost int64 }

// counted is what still counts at now of hits in a window, said in the plainest way:
// their sum, and when each of them stops to count.
func counted(w quota.Window, hits []hit, now int64) (sum int64, ends []hit) {
	p := w.Period.Microseconds()
	var begun int64 = -1 << 62 // of the FirstHit window
	for _, h := range hits {
		end := h.at + p
		switch w.Kind {
		case quota.Aligned:
			end = h.at/p*p + p
		case quota.FirstHit:
			if h.at >= begun+p {
				begun = h.at
			}
			end = begun + p
		}
		if end > now {
			sum += h.cost
			ends = append(ends, hit{end, h.cost})
		}
	}
	return sum, ends
}

// plainWindow decides by all that was ever charged.
func plainWindow(w quota.Window, hits []hit, cost, now int64, record bool) (quota.Result, []hit) {
	limit := int64(w.Limit)
	sum, ends := counted(w, hits, now)
	var got quota.Result
	if got.Limited = sum+cost > limit; got.Limited {
		left := sum
		for _, e := range ends {
			left -= e.cost
			if left+cost <= limit {
				got.RetryAfter = time.Duration(e.at-now) * time.Microsecond
				break
			}
		}
	} else if record {
		hits = append(hits, hit{now, cost})
		sum, ends = counted(w, hits, now)
	}
	got.Remaining = int(max(0, limit-sum))
	reset := now
	if len(ends) > 0 {
		reset = ends[len(ends)-1].at
	}
	got.ResetAt = time.UnixMicro(reset).UTC()
	return got, hits
}

// plainBucket decides with rational numbers. full is when it is full.
func plainBucket(w quota.Window, full *big.Rat, cost, at int64, record bool) (quota.Result, *big.Rat) {
	now, period := big.NewRat(at, 1), big.NewRat(w.Period.Microseconds(), 1)
	token := new(big.Rat).Quo(period, big.NewRat(int64(w.Limit), 1))
	if full.Cmp(now) < 0 {
		full = now
	}
	up := func(r *big.Rat) int64 {
		q, m := new(big.Int).DivMod(r.Num(), r.Denom(), new(big.Int))
		if m.Sign() > 0 {
			return q.Int64() + 1
		}
		return q.Int64()
	}
	var got quota.Result
	then := new(big.Rat).Add(full, new(big.Rat).Mul(token, big.NewRat(cost, 1)))
	over := new(big.Rat).Sub(new(big.Rat).Sub(then, now), period)
	if got.Limited = over.Sign() > 0; got.Limited {
		got.RetryAfter = time.Duration(up(over)) * time.Microsecond
	} else if record {
		full = then
	}
	room := new(big.Rat).Sub(period, new(big.Rat).Sub(full, now))
	tokens := room.Quo(room, token)
	got.Remaining = int(new(big.Int).Div(tokens.Num(), tokens.Denom()).Int64())
	got.ResetAt = time.UnixMicro(up(full)).UTC()
	return got, full
}

func plain(r quota.Result) quota.Result {
	r.ResetAt = time.UnixMicro(r.ResetAt.UnixMicro()).UTC()
	return r
}

// Random programs are decided as by who keeps everything and reckons plainly.
func TestStateDecidesAsPlainReckoningDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := quota.Window{
			Limit: rapid.OneOf(rapid.IntRange(1, 5), rapid.IntRange(1, 300), rapid.IntRange(1, quota.MaxLimit)).Draw(t, "limit"),
			Period: time.Duration(rapid.OneOf(
				rapid.Int64Range(1000, 3000), rapid.Int64Range(1000, quota.MaxPeriod.Microseconds()),
			).Draw(t, "period")) * time.Microsecond,
			Kind: quota.Kind(rapid.IntRange(0, int(quota.Bucket)).Draw(t, "kind")),
		}
		now := rapid.Int64Range(0, 4e15).Draw(t, "start")
		period := w.Period.Microseconds()
		var state quota.State
		var hits []hit
		full := new(big.Rat)
		var last quota.Result
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "time") {
			case 0:
				now += last.RetryAfter.Microseconds()
			case 1:
				now += max(0, last.RetryAfter.Microseconds()-1)
			case 2:
				now += rapid.Int64Range(0, 2*period).Draw(t, "pass")
			case 3:
				now += rapid.Int64Range(0, period/int64(w.Limit)+1).Draw(t, "pass a bit")
			}
			r := quota.Request{Key: "k", Window: w, Record: rapid.IntRange(0, 3).Draw(t, "peek") > 0}
			r.Cost = rapid.OneOf(rapid.Just(1), rapid.IntRange(1, w.Limit)).Draw(t, "cost")
			if err := r.Validate(); err != nil {
				t.Fatal(err)
			}
			got, next, err := state.Decide(r, time.UnixMicro(now))
			if err != nil {
				t.Fatal(err)
			}
			state = next
			var want quota.Result
			if w.Kind == quota.Bucket {
				want, full = plainBucket(w, full, int64(r.Cost), now, r.Record)
			} else {
				want, hits = plainWindow(w, hits, int64(r.Cost), now, r.Record)
			}
			if plain(got) != want {
				t.Fatalf("%+v at %d:\n%+v, want\n%+v", r, now, plain(got), want)
			}
			if state.Expired(time.UnixMicro(now)) != (want.ResetAt.UnixMicro() == now) {
				t.Fatalf("expired is %v, and it counts until %v", state.Expired(time.UnixMicro(now)), want.ResetAt)
			}
			last = got
		}
	})
}

// A sliding window keeps little more than what counts.
func TestSlidingKeepsWhatCounts(t *testing.T) {
	for _, limit := range []int{1, 3, 100, 10_000} {
		w := quota.Window{Limit: limit, Period: time.Duration(limit) * time.Second}
		var state quota.State
		now := time.Unix(1_700_000_000, 0)
		for range 5 * limit {
			got, next, err := state.Decide(quota.Request{Key: "k", Window: w, Cost: 1, Record: true}, now)
			require.NoError(t, err)
			require.False(t, got.Limited)
			state, now = next, now.Add(time.Second)
		}
		require.LessOrEqual(t, len(state), 50+2*12*limit, "limit %d", limit)
		require.LessOrEqual(t, cap(state), 100+3*12*limit, "limit %d", limit)
	}
}

// Charges of the same microsecond are one hit.
func TestChargesAtOnceTakeTheRoomOfOne(t *testing.T) {
	w := quota.Window{Limit: 1000, Period: time.Hour}
	var state quota.State
	for range 1000 {
		got, next, err := state.Decide(quota.Request{Key: "k", Window: w, Cost: 1, Record: true}, time.Unix(1, 0))
		require.NoError(t, err)
		require.False(t, got.Limited)
		state = next
	}
	require.Len(t, state, 29)
}

// What was charged at a time that is now ahead counts, and locks nothing for longer
// than a period after it.
func TestStateOfATimeAhead(t *testing.T) {
	for kind := quota.Sliding; kind <= quota.Bucket; kind++ {
		w := quota.Window{Limit: 2, Period: time.Minute, Kind: kind}
		r := quota.Request{Key: "k", Window: w, Cost: 1, Record: true}
		now := time.Unix(3600, 0)
		_, state, err := quota.State(nil).Decide(r, now.Add(time.Minute))
		require.NoError(t, err)
		got, state, err := state.Decide(r, now)
		require.NoError(t, err)
		if kind != quota.Bucket { // which is not full for two minutes: no room for now
			require.False(t, got.Limited, "%v", kind)
		}
		got, _, err = state.Decide(r, now)
		require.NoError(t, err)
		require.True(t, got.Limited, "%v", kind)
		require.Zero(t, got.Remaining)
		require.LessOrEqual(t, got.RetryAfter, 2*time.Minute, "%v", kind)
	}
}

// Every charge counts until it is a period old, and not a microsecond longer: the first
// of several, those behind it, and one from before the period was made shorter.
func TestAChargeCountsUntilItIsAPeriodOldToTheMicrosecond(t *testing.T) {
	const tick = time.Microsecond
	start := time.Unix(3600, 0)
	ask := func(state quota.State, w quota.Window, cost int, after time.Duration) (quota.Result, quota.State) {
		got, next, err := state.Decide(quota.Request{Key: "k", Window: w, Cost: cost, Record: true}, start.Add(after))
		require.NoError(t, err)
		return got, next
	}
	w := quota.Window{Limit: 3, Period: time.Minute}
	var state quota.State
	for _, after := range []time.Duration{0, 10 * time.Second, 20 * time.Second} {
		_, state = ask(state, w, 1, after)
	}
	for _, after := range []time.Duration{0, 10 * time.Second, 20 * time.Second} {
		got, same := ask(state, w, 1, after+time.Minute-tick)
		require.True(t, got.Limited, "%v: a charge was forgotten too soon", after)
		require.Equal(t, tick, got.RetryAfter)
		got, state = ask(same, w, 1, after+time.Minute)
		require.False(t, got.Limited, "%v: a charge counted for too long", after)
		require.Zero(t, got.Remaining, "%v", after)
	}

	for _, kind := range []quota.Kind{quota.Sliding, quota.FirstHit} {
		hour := quota.Window{Limit: 1, Period: time.Hour, Kind: kind}
		minute := quota.Window{Limit: 1, Period: time.Minute, Kind: kind}
		_, state := ask(nil, hour, 1, 0)
		got, state := ask(state, minute, 1, time.Minute-tick)
		require.True(t, got.Limited, "%v", kind)
		require.Equal(t, tick, got.RetryAfter, "%v", kind)
		got, state = ask(state, minute, 1, time.Minute)
		require.False(t, got.Limited, "%v: it counted for too long", kind)
		got, _ = ask(state, minute, 1, time.Minute)
		require.Equal(t, time.Minute, got.RetryAfter, "%v: the new charge was not recorded", kind)
	}
}

// A charge at a time before that of the last one counts for as long as the last one.
func TestAChargeInThePastDoesNotMakeTheLastOneForgotten(t *testing.T) {
	r := quota.Request{Key: "k", Window: quota.Window{Limit: 2, Period: time.Minute}, Cost: 1, Record: true}
	now := time.Unix(3600, 0)
	_, state, err := quota.State(nil).Decide(r, now.Add(30*time.Second))
	require.NoError(t, err)
	_, state, err = state.Decide(r, now)
	require.NoError(t, err)
	got, _, err := state.Decide(r, now.Add(time.Minute+time.Second))
	require.NoError(t, err)
	require.True(t, got.Limited)
	require.Equal(t, 29*time.Second, got.RetryAfter)
}

func TestStateOfAnotherKindIsRefused(t *testing.T) {
	w := quota.Window{Limit: 2, Period: time.Minute}
	r := quota.Request{Key: "k", Window: w, Cost: 1, Record: true}
	_, state, err := quota.State(nil).Decide(r, time.Unix(3600, 0))
	require.NoError(t, err)
	r.Window.Kind = quota.Bucket
	_, _, err = state.Decide(r, time.Unix(3600, 0))
	require.ErrorIs(t, err, quota.ErrState)
}

// A damaged state is refused, or decided by in some way that harms nobody.
func FuzzState(f *testing.F) {
	for kind := quota.Sliding; kind <= quota.Bucket; kind++ {
		var state quota.State
		for i := range 3 {
			r := quota.Request{Key: "k", Window: quota.Window{Limit: 5, Period: time.Hour, Kind: kind}, Cost: 1, Record: true}
			_, state, _ = state.Decide(r, time.Unix(int64(1000+i), 0))
		}
		f.Add([]byte(state), uint8(kind), 5, int64(3600e6), 1, int64(1001e6))
		f.Add([]byte(state), uint8(kind), 1<<20, int64(3e15), 1<<19, int64(1e15))
	}
	f.Fuzz(func(t *testing.T, bytes []byte, kind uint8, limit int, period int64, cost int, now int64) {
		if period > 1<<53 || period < 0 {
			return
		}
		w := quota.Window{Limit: limit, Period: time.Duration(period) * time.Microsecond, Kind: quota.Kind(kind)}
		r := quota.Request{Key: "k", Window: w, Cost: cost, Record: true}
		if r.Validate() != nil {
			return
		}
		state := quota.State(bytes)
		for range 3 {
			got, next, err := state.Decide(r, time.UnixMicro(now))
			if err != nil {
				require.ErrorIs(t, err, quota.ErrState)
				return
			}
			require.Equal(t, got.RetryAfter > 0, got.Limited, fmt.Sprint(got))
			require.GreaterOrEqual(t, got.Remaining, 0)
			require.LessOrEqual(t, got.Remaining, limit)
			state = next
		}
	})
}

func BenchmarkState(b *testing.B) {
	for kind := quota.Sliding; kind <= quota.Bucket; kind++ {
		for _, limit := range []int{3, 10_000} {
			b.Run(fmt.Sprintf("%v/limit=%d", kind, limit), func(b *testing.B) {
				r := quota.Request{Key: "k", Cost: 1, Record: true}
				r.Window = quota.Window{Limit: limit, Period: time.Duration(limit) * time.Millisecond, Kind: kind}
				var state quota.State
				now := time.Unix(1_700_000_000, 0)
				b.ReportAllocs()
				for b.Loop() {
					_, state, _ = state.Decide(r, now)
					now = now.Add(time.Millisecond)
				}
			})
		}
	}
}
