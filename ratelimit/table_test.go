package ratelimit

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The table is held against a map.
func TestTableIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table table
		model := map[uint64]int64{}
		key := rapid.OneOf(
			rapid.Uint64Range(0, 40),
			rapid.Map(rapid.Uint64Range(0, 40), func(k uint64) uint64 { return k << 58 }), // one home
			rapid.Map(rapid.Uint64Range(0, 40), func(k uint64) uint64 { return -k }),
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
