package invoke_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"

	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/invoke"
)

// month is a server that a bot talks to for a month: now and then a chat is flooded or the
// connection is lost, before or after the message has arrived.
type month struct {
	mu        sync.Mutex
	rand      *rand.Rand
	until     map[int64]time.Time // when the flood of a chat is over
	arrived   map[int64]int       // messages by random_id
	requests  int
	floods    int
	lost      int
	intruders int // requests inside a flood that the client knew
}

func (w *month) Invoke(_ context.Context, input bin.Encoder, output bin.Decoder) error {
	time.Sleep(50 * time.Millisecond)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests++
	req := input.(*tg.MessagesSendMessageRequest)
	chat, now := chatOf(input), time.Now()
	if until := w.until[chat]; until.After(now) {
		w.intruders++
		return tgerr.New(420, "FLOOD_WAIT_60")
	}
	switch dice := w.rand.IntN(2000); {
	case dice < 3:
		w.floods++
		seconds := [...]time.Duration{5, 30, 3600}[dice]
		w.until[chat] = now.Add(seconds * time.Second)
		return tgerr.New(420, [...]string{"FLOOD_WAIT_5", "FLOOD_WAIT_30", "FLOOD_WAIT_3600"}[dice])
	case dice < 20: // the connection is lost before the message
		w.lost++
		return io.EOF
	}
	if w.arrived[req.RandomID] > 0 {
		return tgerr.New(500, "RANDOM_ID_DUPLICATE")
	}
	w.arrived[req.RandomID]++
	if w.rand.IntN(100) == 0 { // or after it
		w.lost++
		return io.ErrUnexpectedEOF
	}
	return nil
}

// A bot is restarted twice a day for a month. Each of its messages is there once, no call
// fails but for a flood of its own chat, none is sent into a flood that is known, and in the
// end nothing is left of all that.
func TestAMonthOfFloodsCutsAndRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const chats, days, life = 8, 30, 12 * time.Hour
		w := &month{rand: rand.New(rand.NewPCG(1, 2)), until: map[int64]time.Time{}, arrived: map[int64]int{}}
		d := newDisk()
		ids, failures := int64(0), 0
		for range days * int(24*time.Hour/life) {
			m, err := invoke.New(invoke.Options{Store: d, Chats: invoke.ChatLimits{Mode: invoke.ChatsAlways}})
			require.NoError(t, err)
			call := m.Handle(telegram.InvokeFunc(w.Invoke))
			ctx, cancel := context.WithTimeout(t.Context(), life)
			var bots sync.WaitGroup
			for chat := range int64(chats) {
				bots.Go(func() {
					for n := 0; ctx.Err() == nil; n++ {
						w.mu.Lock()
						ids++
						id := ids
						w.mu.Unlock()
						req := &tg.MessagesSendMessageRequest{Peer: &tg.InputPeerUser{UserID: chat + 1}, RandomID: id}
						err := call(t.Context(), req, &tg.UpdatesBox{})
						w.mu.Lock()
						switch stands := w.until[chat+1].After(time.Now()); {
						case err == nil:
							require.Equal(t, 1, w.arrived[id])
						case errors.Is(err, flood.ErrGivenUp) && stands:
							failures++
						default:
							t.Errorf("chat %d: %v", chat+1, err)
						}
						w.mu.Unlock()
						if n%5 == 4 { // five in a row, and a rest
							time.Sleep(15 * time.Minute)
						}
					}
				})
			}
			bots.Wait()
			cancel()
			m.Close()
		}
		t.Logf("%d requests, %d floods, %d connections lost, %d calls given up", w.requests, w.floods, w.lost, failures)
		require.Greater(t, w.requests, 80_000)
		require.Greater(t, w.floods, 50)
		require.Zero(t, w.intruders)

		time.Sleep(24 * time.Hour)
		m, err := invoke.New(invoke.Options{Store: d})
		require.NoError(t, err)
		defer m.Close()
		require.Empty(t, m.Limiter().Floods())
		call := m.Handle(telegram.InvokeFunc(func(context.Context, bin.Encoder, bin.Decoder) error { return nil }))
		for range 15 {
			start := time.Now()
			require.NoError(t, call(t.Context(), to(1), nil))
			require.Zero(t, time.Since(start), "nothing is slower than it was")
		}
	})
}
