package floods_test

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/internal/floods"
)

const forever = time.Duration(math.MaxInt64)

func send(chat int64) floods.Call {
	return floods.Call{Method: "messages.sendMessage", Chat: chat}
}

func notice(t testing.TB, msg string) flood.Notice {
	t.Helper()
	n, ok := flood.Parse(420, msg)
	require.True(t, ok, msg)
	return n
}

// enter expects the call to be let go.
func enter(t testing.TB, b *floods.Tracker, call floods.Call) floods.Pass {
	t.Helper()
	p, err := b.Wait(t.Context(), call, forever)
	require.NoError(t, err)
	return p
}

// sent expects the call to be let go at once.
func sent(t testing.TB, b *floods.Tracker, call floods.Call) floods.Pass {
	t.Helper()
	p, err := b.Wait(t.Context(), call, 0)
	require.NoError(t, err)
	require.Zero(t, p.Waited)
	return p
}

// held expects that the call would have to wait.
func held(t testing.TB, b *floods.Tracker, call floods.Call) *flood.WaitError {
	t.Helper()
	_, err := b.Wait(t.Context(), call, 0)
	e, ok := errors.AsType[*flood.WaitError](err)
	require.True(t, ok, "%v: %v", call, err)
	return e
}

func flooded(t testing.TB, b *floods.Tracker, call floods.Call, msg string) flood.Record {
	t.Helper()
	return b.Flooded(sent(t, b, call), notice(t, msg))
}

func through(t testing.TB, b *floods.Tracker, call floods.Call) {
	t.Helper()
	b.Passed(sent(t, b, call))
}

func TestAWaitIsServedOnceAndNotAgainLongAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		start := time.Now()
		r := flooded(t, b, send(1), "FLOOD_WAIT_30")
		require.Equal(t, start.Add(30*time.Second), r.Until)
		require.Equal(t, flood.Chat, r.Scope)
		require.True(t, r.News)
		require.False(t, r.Widened)

		// A call made ten seconds later waits for what is left.
		time.Sleep(10 * time.Second)
		p := enter(t, b, send(1))
		require.Equal(t, 20*time.Second, p.Waited)
		b.Passed(p)

		// And one made an hour later for nothing, nor does it keep others waiting.
		require.Empty(t, b.Snapshot())
		time.Sleep(time.Hour)
		sent(t, b, send(1))
		sent(t, b, send(1))
	})
}

func TestAFloodThatNobodyWaitedForEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		inFlight := sent(t, b, send(1))
		require.Equal(t, 1, flooded(t, b, send(1), "FLOOD_WAIT_5").Hits)
		time.Sleep(5 * time.Second)
		require.Equal(t, 1, b.Flooded(inFlight, notice(t, "FLOOD_WAIT_5")).Hits, "another flood, not the same")
		require.Len(t, b.Snapshot(), 1)
		time.Sleep(5 * time.Second)
		require.Empty(t, b.Snapshot())
		sent(t, b, send(1))
		sent(t, b, send(1))
	})
}

func TestOneFloodedChatDoesNotFreezeTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		flooded(t, b, send(1), "FLOOD_WAIT_300")
		held(t, b, send(1))
		for chat := range int64(1000) {
			through(t, b, send(chat+2))
		}
		through(t, b, floods.Call{Method: "messages.sendMedia", Chat: 1})

		// A second noisy chat, and a third: the quiet ones go on.
		flooded(t, b, send(2), "FLOOD_WAIT_300")
		through(t, b, send(4))
		r := flooded(t, b, send(3), "FLOOD_WAIT_300")
		require.Equal(t, flood.Chat, r.Scope)
		through(t, b, send(4))
	})
}

func TestSlowModeHoldsOnlyWhatSendsToItsChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		flooded(t, b, send(1), "SLOWMODE_WAIT_3600")
		r := flooded(t, b, send(2), "SLOWMODE_WAIT_3600")
		require.Equal(t, flood.Chat, r.Scope, "two chats in slow mode are two chats")
		for _, method := range []string{
			"sendMessage", "sendMedia", "sendMultiMedia", "forwardMessages", "sendInlineBotResult",
		} {
			e := held(t, b, floods.Call{Method: "messages." + method, Chat: 1})
			require.Equal(t, flood.SlowMode, e.Kind)
			sent(t, b, floods.Call{Method: "messages." + method, Chat: 3})
		}
		for _, method := range []string{"editMessage", "deleteMessages", "getHistory", "setTyping"} {
			sent(t, b, floods.Call{Method: "messages." + method, Chat: 1})
		}

		// Where the chat of a call is not known, slow mode is still not everybody's.
		flooded(t, b, send(0), "SLOWMODE_WAIT_3600")
		held(t, b, send(0))
		sent(t, b, send(3))
	})
}

func TestMessagesToASlowChatGoOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		var (
			wg      sync.WaitGroup
			mu      sync.Mutex
			next    time.Time // when the chat takes the next message
			refused int
		)
		for range 5 {
			wg.Go(func() {
				for {
					p := enter(t, b, send(1))
					b.Start(&p)
					time.Sleep(50 * time.Millisecond)
					mu.Lock()
					left := time.Until(next)
					if left <= 0 {
						next = time.Now().Add(30 * time.Second)
					} else {
						refused++
					}
					mu.Unlock()
					if left <= 0 {
						b.Passed(p)
						return
					}
					b.Flooded(p, flood.Notice{Kind: flood.SlowMode, Wait: left})
				}
			})
		}
		start := time.Now()
		wg.Wait()
		require.Equal(t, 7, refused, "the four sent at first, then one for each message")
		require.Less(t, time.Since(start), 125*time.Second)
		require.Empty(t, b.Snapshot())
	})
}

func TestThirtyFilePartsFloodedTogetherAreNotSentAgainTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		part := floods.Call{DC: 2, Method: "upload.saveFilePart"}
		var (
			wg      sync.WaitGroup
			news    atomic.Int32
			arrived = map[time.Duration]int{} // when, how many
			mu      sync.Mutex
		)
		start := time.Now()
		for range 30 {
			wg.Go(func() {
				for attempt := range 2 {
					p, err := b.Wait(t.Context(), part, 10*time.Second)
					if err != nil {
						t.Error(err)
						return
					}
					b.Start(&p)
					mu.Lock()
					arrived[time.Since(start)]++
					mu.Unlock()
					time.Sleep(50 * time.Millisecond) // the round trip
					if attempt == 1 {
						b.Passed(p)
					} else if b.Flooded(p, notice(t, "FLOOD_WAIT_10")).News {
						news.Add(1)
					}
				}
			})
		}
		wg.Wait()
		require.Equal(t, map[time.Duration]int{
			0:                        30,
			10050 * time.Millisecond: 1,
			10100 * time.Millisecond: 29,
		}, arrived)
		require.EqualValues(t, 1, news.Load(), "thirty floods are one piece of news")
		require.Empty(t, b.Snapshot())
	})
}

func TestOfAThousandCallsOneGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		flooded(t, b, send(1), "FLOOD_WAIT_60")
		var (
			wg   sync.WaitGroup
			gone = make(chan floods.Pass, 1000)
		)
		for range 1000 {
			wg.Go(func() { gone <- enter(t, b, send(1)) })
		}
		synctest.Wait()
		require.Equal(t, 1000, b.Snapshot()[0].Waiting)
		time.Sleep(60 * time.Second)
		synctest.Wait()
		require.Len(t, gone, 1)

		// For as long as it may take, and whoever comes anew.
		time.Sleep(flood.FirstTimeout - time.Second)
		require.Equal(t, time.Second, held(t, b, send(1)).Wait)
		synctest.Wait()
		require.Len(t, gone, 1)

		// Flooded again: all wait for the new deadline, then one goes first.
		r := b.Flooded(<-gone, notice(t, "FLOOD_WAIT_60"))
		require.True(t, r.News)
		require.Equal(t, 2, r.Hits)
		require.Equal(t, 1, r.Repeats)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Empty(t, gone, "and a second more, as a minute was not enough")
		time.Sleep(time.Second)
		synctest.Wait()
		require.Len(t, gone, 1)

		p := <-gone
		require.Equal(t, floods.Released{Scope: flood.Chat, Calls: 998}, b.Opens(p))
		b.Passed(p)
		wg.Wait()
		require.Len(t, gone, 998)
		require.Empty(t, b.Snapshot())
	})
}

func TestACallThatWasToGoFirstAndDoesNotHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		flooded(t, b, send(1), "FLOOD_WAIT_5")
		gone := make(chan floods.Pass, 3)
		for range 3 {
			go func() { gone <- enter(t, b, send(1)) }()
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		for range 3 {
			require.Len(t, gone, 1)
			p := <-gone
			b.Abandon(p)
			b.Abandon(p) // once too often: no harm
			synctest.Wait()
		}
		require.Empty(t, gone)
		require.Empty(t, b.Snapshot())

		// A refusal that no waiting helps against hands over as well.
		flooded(t, b, send(1), "FLOOD_WAIT_5")
		for range 2 {
			go func() { gone <- enter(t, b, send(1)) }()
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		r := b.Flooded(<-gone, notice(t, "FROZEN_METHOD_INVALID"))
		require.Equal(t, flood.Frozen, r.Kind)
		require.True(t, r.Until.IsZero())
		synctest.Wait()
		require.Len(t, gone, 1)
	})
}
