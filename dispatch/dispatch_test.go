package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/gotd/td/telegram"
	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/dispatch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func message(user int64, pts int) tg.UpdateClass {
	return &tg.UpdateNewMessage{
		Message: &tg.Message{ID: pts, PeerID: &tg.PeerUser{UserID: user}}, Pts: pts, PtsCount: 1,
	}
}

func packet(updates ...tg.UpdateClass) *tg.Updates { return &tg.Updates{Updates: updates} }

// slow is a handler that waits until it is released, and remembers what it got.
type slow struct {
	release chan struct{}
	mu      sync.Mutex
	got     []string
	running int
	most    int
}

func (s *slow) Handle(ctx context.Context, u tg.UpdatesClass) error {
	s.mu.Lock()
	s.running++
	s.most = max(s.most, s.running)
	s.mu.Unlock()
	<-s.release
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	p, ok := u.(*tg.Updates)
	if !ok {
		s.got = append(s.got, fmt.Sprintf("%T", u))
		return nil
	}
	for _, one := range p.Updates {
		switch one := one.(type) {
		case *tg.UpdateNewMessage:
			m := one.Message.(*tg.Message)
			s.got = append(s.got, fmt.Sprint(m.PeerID.(*tg.PeerUser).UserID, "/", one.Pts))
		default:
			s.got = append(s.got, fmt.Sprintf("%T", one))
		}
	}
	return nil
}

// of returns what came of a chat.
func (s *slow) of(user int64) (out []string) {
	for _, one := range s.got {
		var u, pts int64
		if _, err := fmt.Sscanf(one, "%d/%d", &u, &pts); err == nil && u == user {
			out = append(out, one)
		}
	}
	return out
}

func TestChatsGoSideBySideAndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &slow{release: make(chan struct{})}
		d := dispatch.New(h, dispatch.Options{MaxHandlers: 3})
		for pts := 1; pts <= 40; pts += 4 {
			require.NoError(t, d.Handle(t.Context(), packet(message(1, pts), message(2, pts+1), message(3, pts+2), message(4, pts+3))))
		}
		synctest.Wait()
		require.Equal(t, 3, h.running, "as many as MaxHandlers")
		require.Equal(t, 37, d.Waiting())
		close(h.release)
		synctest.Wait()
		require.Equal(t, 3, h.most)
		for user := int64(1); user <= 4; user++ {
			var want []string
			for pts := int(user); pts <= 40; pts += 4 {
				want = append(want, fmt.Sprint(user, "/", pts))
			}
			require.Equal(t, want, h.of(user))
		}
		d.Close()
	})
}

func TestWhatWaitsIsPutInTheOrderOfPts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &slow{release: make(chan struct{})}
		d := dispatch.New(h, dispatch.Options{})
		for _, pts := range []int{1, 4, 3, 2} {
			require.NoError(t, d.Handle(t.Context(), packet(message(1, pts))))
		}
		close(h.release)
		synctest.Wait()
		require.Equal(t, []string{"1/1", "1/2", "1/3", "1/4"}, h.got)
		d.Close()
	})
}

func TestBoundIsSaidOnceAndNothingBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.WarnLevel)
		h := &slow{release: make(chan struct{})}
		d := dispatch.New(h, dispatch.Options{MaxWaiting: 10, Logger: zap.New(core)})
		for pts := 1; pts <= 100; pts++ {
			require.NoError(t, d.Handle(t.Context(), packet(message(int64(pts), pts))))
			require.NoError(t, d.Handle(t.Context(), packet(message(7, 1000+pts))))
		}
		require.LessOrEqual(t, d.Waiting(), 10)
		require.Equal(t, 1, logs.Len())
		close(h.release)
		synctest.Wait()
		require.Zero(t, d.Waiting())
		d.Close()
	})
}

// What is dropped in front of a Manager is a gap, which it is made to fetch.
func TestWhatIsDroppedInFrontOfAManagerIsFetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &slow{release: make(chan struct{})}
		d := dispatch.New(h, dispatch.Options{MaxWaiting: 4, InOrder: true})
		require.NoError(t, d.Handle(t.Context(), packet(message(1, 1))))
		synctest.Wait()
		for pts := 2; pts <= 9; pts++ {
			require.NoError(t, d.Handle(t.Context(), packet(message(1, pts))))
		}
		dropped := &tg.UpdateReadChannelInbox{ChannelID: 5, Pts: 3}
		require.NoError(t, d.Handle(t.Context(), packet(dropped)))
		close(h.release)
		synctest.Wait()
		require.Equal(t, []string{
			"1/1", "1/2", "1/3", "1/4", "1/5",
			"*tg.UpdateReadChannelInbox", "*tg.UpdateChannelTooLong", "*tg.UpdatesTooLong",
		}, h.got)
		d.Close()
	})
}

func TestBlockWaitsForRoomAndLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &slow{release: make(chan struct{})}
		d := dispatch.New(h, dispatch.Options{MaxWaiting: 2, Block: true})
		for pts := 1; pts <= 3; pts++ { // one is being handled
			require.NoError(t, d.Handle(t.Context(), packet(message(1, pts))))
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		refused := make(chan error, 1)
		go func() { refused <- d.Handle(ctx, packet(message(1, 4))) }()
		synctest.Wait()
		require.Empty(t, refused)
		cancel()
		require.ErrorIs(t, <-refused, context.Canceled)
		go func() { refused <- d.Handle(t.Context(), packet(message(1, 5))) }()
		close(h.release)
		require.NoError(t, <-refused)
		synctest.Wait()
		require.Equal(t, []string{"1/1", "1/2", "1/3", "1/5"}, h.got)
		d.Close()
	})
}

func TestCloseDropsWhatWaitsAndWaitsForWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &slow{release: make(chan struct{})}
		d := dispatch.New(h, dispatch.Options{})
		for pts := 1; pts <= 3; pts++ {
			require.NoError(t, d.Handle(t.Context(), packet(message(1, pts))))
		}
		synctest.Wait()
		closed := make(chan struct{})
		go func() { d.Close(); close(closed) }()
		synctest.Wait()
		select {
		case <-closed:
			require.Fail(t, "a handler runs")
		default:
		}
		close(h.release)
		<-closed
		require.Equal(t, []string{"1/1"}, h.got)
		require.NoError(t, d.Handle(t.Context(), packet(message(1, 4))))
		require.Len(t, h.got, 1)
	})
}

func TestErrorOfAHandlerIsLogged(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	d := dispatch.New(telegram.UpdateHandlerFunc(func(context.Context, tg.UpdatesClass) error {
		return errors.New("no such award")
	}), dispatch.Options{Logger: zap.New(core)})
	require.NoError(t, d.Handle(t.Context(), packet(message(1, 1))))
	require.Eventually(t, func() bool { return logs.Len() == 1 }, 1e10, 1e6)
	d.Close()
	require.Equal(t, "no such award", logs.All()[0].ContextMap()["error"])
}

// A packet that is counted by seq and has updates of two chats counts once.
func TestSeqIsHandedOverOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var seqs []int
		d := dispatch.New(telegram.UpdateHandlerFunc(func(_ context.Context, u tg.UpdatesClass) error {
			mu.Lock()
			defer mu.Unlock()
			seqs = append(seqs, u.(*tg.Updates).Seq)
			return nil
		}), dispatch.Options{})
		u := packet(message(1, 1), message(2, 2))
		u.Seq = 9
		require.NoError(t, d.Handle(t.Context(), u))
		synctest.Wait()
		require.ElementsMatch(t, []int{9, 0}, seqs)
		d.Close()
	})
}

func Example() {
	handler := tg.NewUpdateDispatcher()
	handled := make(chan string)
	handler.OnNewMessage(func(_ context.Context, _ tg.Entities, u *tg.UpdateNewMessage) error {
		handled <- u.Message.(*tg.Message).Message
		return nil
	})
	d := dispatch.New(handler, dispatch.Options{})
	defer d.Close()
	options := telegram.Options{UpdateHandler: d}

	// gotd does this when an update comes. It returns at once.
	err := options.UpdateHandler.Handle(context.Background(), &tg.Updates{Updates: []tg.UpdateClass{
		&tg.UpdateNewMessage{Message: &tg.Message{Message: "hello", PeerID: &tg.PeerUser{UserID: 1}}},
	}})
	fmt.Println(err, <-handled)
	// Output: <nil> hello
}
