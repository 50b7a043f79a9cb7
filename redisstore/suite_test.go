package redisstore

import (
	"strings"
	"testing"
	"time"

	"github.com/weirtg/weir/quota"
	"github.com/weirtg/weir/store"
	"github.com/weirtg/weir/storetest"
)

func TestQuota(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		storetest.Quota(t, func(t *testing.T) storetest.QuotaHarness {
			w := w.another(t)
			h := storetest.QuotaHarness{
				Clock:  w.clock(t),
				Store:  w.open(t),
				Other:  w.open(t),
				Hung:   storeAt(t, silent(t).Addr().String(), 5*time.Second),
				Reopen: func() quota.Store { return w.open(t) },
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
				Reopen: func() store.Facts { return w.open(t) },
			}
		})
	})
}
