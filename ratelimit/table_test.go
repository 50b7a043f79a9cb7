package ratelimit

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// unspread undoes the multiplication that spreads keys.
const unspread = 0xf1de83e19937733d

// The table is held against a map.
func TestTableIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table table
		model := map[uint64]int64{}
		key := rapid.OneOf(
			rapid.Uint64Range(0, 40),
			rapid.Map(rapid.Uint64Range(0, 40), func(k uint64) uint64 { return k * unspread }),  // at home in the first slot
			rapid.Map(rapid.Uint64Range(1, 40), func(k uint64) uint64 { return -k * unspread }), // and in the last
		)
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				k, at := key.Draw(t, "key"), rapid.Int64Range(0, 1000).Draw(t, "at")
				st := table.put(k, state{at: at})
				if had, ok := model[k]; ok {
					require.Equal(t, had, st.at)
				} else {
					require.Equal(t, at, st.at)
				}
				st.at, model[k] = at, at
			},
			"remove": func(t *rapid.T) {
				k := key.Draw(t, "key")
				table.remove(k)
				delete(model, k)
			},
			"sweep": func(t *rapid.T) {
				now := rapid.Int64Range(0, 1000).Draw(t, "now")
				table.sweep(2*len(table.slots)+2, bucket{interval: 1}, now)
				for k, at := range model {
					if at <= now {
						delete(model, k)
					}
				}
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(model), table.n)
				for k, at := range model {
					require.NotNil(t, table.get(k))
					require.Equal(t, at, table.get(k).at)
				}
				for k := range uint64(50) {
					if _, ok := model[k]; !ok {
						require.Nil(t, table.get(k))
					}
				}
			},
		})
	})
}

func TestTableGrowsAndKeepsAll(t *testing.T) {
	var table table
	const keys = 100_000
	for k := range uint64(keys) {
		table.put(k*k, state{at: int64(k)})
		require.GreaterOrEqual(t, 4*len(table.slots), 5*table.n)
	}
	require.Less(t, len(table.slots), 2*keys)
	for k := range uint64(keys) {
		require.Equal(t, int64(k), table.get(k*k).at)
	}
}

// What a window remembers beside the table goes when its gate does.
func TestHistoriesGoWithTheirGates(t *testing.T) {
	for _, kind := range []WindowKind{Sliding, Aligned, FirstHit} {
		synctest.Test(t, func(t *testing.T) {
			l := New(Options{})
			gates, err := l.NewGates("window", Window{Limit: 2, Period: time.Minute, Kind: kind})
			require.NoError(t, err)
			fill := func() {
				for k := range uint64(1000) {
					require.NoError(t, l.Try(1, gates.Key(k)))
					require.NoError(t, l.Try(1, gates.Key(k)))
				}
				require.Len(t, gates.set.kept.all, 1000)
			}
			fill()
			require.NoError(t, l.Acquire(t.Context(), 2, gates.Key(7)), "which had a queue meanwhile")
			time.Sleep(time.Minute)
			require.Zero(t, gates.Stats().Live)
			require.Empty(t, gates.set.kept.all)
			fill()
			require.NoError(t, l.Update(map[Gate]Change{gates.Set(): Change{}.Inherit(Reset)}))
			require.Empty(t, gates.set.kept.all)
		})
	}
}

func TestTableShrinksWhenItIsEmpty(t *testing.T) {
	var table table
	for k := range uint64(100_000) {
		table.put(k, state{at: 1})
	}
	for range 20 {
		table.sweep(2*len(table.slots), bucket{interval: 1}, 1)
	}
	require.Zero(t, table.n)
	require.Len(t, table.slots, minSlots)
}
