package redisstore

import (
	"strings"
	"testing"

	"github.com/weirtg/weir/keyed"
	"github.com/weirtg/weir/store"
	"github.com/weirtg/weir/store/storetest"
)

func TestKeyedStore(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		storetest.Keyed(t, func(t *testing.T) storetest.KeyedHarness {
			w := w.another(t)
			h := storetest.KeyedHarness{
				Clock:  w.clock(t),
				Store:  w.open(t),
				Other:  w.open(t),
				Reopen: func() keyed.Store { return w.open(t) },
			}
			if w.mini != nil {
				h.Kept = func() (n int) {
					for _, key := range w.keys(t) {
						if strings.HasPrefix(key, w.prefix()+"key:") {
							n++
						}
					}
					return n
				}
			}
			return h
		})
	})
}

func TestMemory(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		storetest.Memory(t, func(t *testing.T) storetest.MemoryHarness {
			w := w.another(t)
			return storetest.MemoryHarness{
				Clock:  w.clock(t),
				Memory: w.open(t),
				Other:  w.open(t),
				Reopen: func() store.Memory { return w.open(t) },
			}
		})
	})
}
