package limiter

import (
	"runtime"
	"testing"
	"time"

	"github.com/gotd/td/clock"

	"github.com/weirtg/weir/ratelimit"
)

// heap is the memory in use after what is garbage has gone, maps' and pools' included.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// keyBytes is a chat's key in a gate set, which the figures leave out.
const keyBytes = 8

// Bytes a live chat beyond its key, with 1,000,000 of them, each used once a minute for
// three minutes.
//
// A private chat (1/s, burst 3) is live for 3 s to 6 s after its last message, so few of
// the million are at any moment; lib=weir/chat=private-at-once has all of them live by
// sending to all within a second. A group (20 a minute) is live for a minute at least,
// so all of them are, with one time in each window; chat=group-full has had its 20.
func BenchmarkBytesALiveChat(b *testing.B) {
	private := ratelimit.Limit{Rate: 1, Burst: 3}
	group := ratelimit.Window{Limit: 20, Period: time.Minute}
	for _, c := range []struct {
		name   string
		rule   ratelimit.Rule
		period time.Duration // in which each chat is used once
		rounds int
		chats  int
	}{
		{"private", private, time.Minute, 3, 1_000_000},
		{"private-at-once", private, time.Second, 1, 1_000_000},
		{"group", group, time.Minute, 3, 1_000_000},
		{"group-full", group, time.Second, 20, 100_000},
	} {
		b.Run("lib=weir/chat="+c.name, func(b *testing.B) {
			for range b.N {
				before := heap()
				clk := &manual{Clock: clock.System, now: time.Now()}
				l := ratelimit.New(ratelimit.Options{Clock: clk})
				gates := newGates(b, l, "chat", c.rule)
				for range c.rounds {
					for i := range c.chats {
						clk.now = clk.now.Add(c.period / time.Duration(c.chats))
						if err := l.Try(1, gates.Key(uint64(i))); err != nil {
							b.Fatal(err)
						}
					}
				}
				used, live := heap()-before, gates.Stats().Live
				b.ReportMetric(float64(used)/float64(live)-keyBytes, "B/live-chat")
				b.ReportMetric(float64(used)/float64(c.chats), "B/chat")
				b.ReportMetric(float64(live), "live")
				runtime.KeepAlive(l)
			}
		})
	}
	// The peers forget nothing, or not for hours: each chat that was ever used is live.
	for _, k := range keyedLimiters() {
		if k.lib == "weir" {
			continue
		}
		b.Run("lib="+k.lib+"/chat=private-at-once", func(b *testing.B) {
			const chats = 1_000_000
			keys := names(chats)
			for range b.N {
				before := heap()
				take := k.new(b, keys)
				for i := range chats {
					take(i)
				}
				used := heap() - before
				b.ReportMetric(float64(used)/chats-float64(k.keyBytes), "B/live-chat")
				b.ReportMetric(float64(used)/chats, "B/chat")
				runtime.KeepAlive(take)
				runtime.KeepAlive(keys)
			}
		})
	}
}
