package client_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gotd/neo"
	"github.com/gotd/td/session"
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/telegram/dcs"
	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/boltstore"
	"github.com/weirtg/weir/client"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/localdc"
)

const getConfig = "help.getConfig"

// flooding is a cloud whose time stands still, and clients of it that share its clock.
type flooding struct {
	*localdc.Cloud
	now *neo.Time
	l   *line
}

func newFlooding(t *testing.T) *flooding {
	now := neo.NewTime(time.Now())
	return &flooding{newCloud(t, localdc.Options{Clock: now}), now, &line{}}
}

func (f *flooding) configs() int { return f.Record().Methods[getConfig].Calls }

// sends waits until so many requests for the configuration have arrived, and then whether more
// do. gotd alone sends the next half a second after the first.
func (f *flooding) sends(t *testing.T, n int) {
	t.Helper()
	eventually(t, func() bool { return f.configs() >= n }, "%d connections were begun", n)
	require.Never(t, func() bool { return f.configs() > n }, 2*time.Second, 10*time.Millisecond)
}

func TestFloodOfTheFirstRequestIsSatOutAndSaidOnce(t *testing.T) {
	f := newFlooding(t)
	require.NoError(t, f.FailNext(getConfig, 420, "FLOOD_WAIT_7", 1))
	r := &events{}
	c, logged := over(t, f.Cloud, f.l, client.Options{Options: invoke.Options{Clock: f.now, Observer: r}})
	done := call(func() error { return c.Run(t.Context(), func(context.Context) error { return nil }) })
	f.sends(t, 1)
	record := waitsForFlood(t, c, 1)
	require.Equal(t, getConfig, record.Method)

	// Nor does a connection that is lost meanwhile make another that sends it.
	f.l.set(nil)
	eventually(t, func() bool { return len(c.Floods()) == 1 && c.Floods()[0].Waiting == 1 }, "the next waits")
	f.sends(t, 1)

	f.now.Travel(8 * time.Second)
	require.NoError(t, ended(t, done))
	require.Equal(t, 2, f.configs())
	require.Equal(t, 1, logged.FilterMessage("Flood, waiting").Len())
	require.Len(t, r.of(invoke.Flooded, getConfig), 1)
}

func TestFloodOfTheFirstRequestAboveTheThresholdEndsRunAndOutlivesTheProcess(t *testing.T) {
	f := newFlooding(t)
	require.NoError(t, f.FailNext(getConfig, 420, "FLOOD_WAIT_3600", 1))
	path := t.TempDir() + "/weir.db"
	run := func(f *flooding) *flood.WaitError {
		file, err := boltstore.Open(path, boltstore.Options{Clock: f.now})
		require.NoError(t, err)
		defer func() { assert.NoError(t, file.Close()) }()
		c, logged := over(t, f.Cloud, f.l, client.Options{Options: invoke.Options{Clock: f.now, Store: file}})
		wait := asWait(t, ended(t, call(func() error {
			return c.Run(t.Context(), func(context.Context) error { return errors.New("must not run") })
		})))
		require.LessOrEqual(t, logged.FilterMessage("Flood, given up").Len(), 1)
		require.Equal(t, getConfig, wait.Method)
		return wait
	}
	first := run(f)
	require.Equal(t, flood.OverThreshold, first.Reason)
	require.Equal(t, time.Hour, first.Wait)
	require.Equal(t, 1, first.Attempts)
	f.now.Travel(10 * time.Minute)
	second := run(f)
	require.Equal(t, flood.KnownFlood, second.Reason)
	require.Equal(t, 50*time.Minute, second.Wait)
	require.Equal(t, 1, f.configs(), "nothing was sent into it")
}

func TestFloodOfTheFirstRequestOfAPoolLeavesTheMainConnectionAlone(t *testing.T) {
	f := newFlooding(t)
	c, _ := over(t, f.Cloud, f.l, client.Options{Options: invoke.Options{Clock: f.now}})
	asBot(t, c, func(ctx context.Context) error {
		_, err := f.Fail(localdc.Scope{Method: getConfig, DC: 4}, 420, "FLOOD_WAIT_3600", localdc.Forever)
		require.NoError(t, err)
		before := f.configs()
		short, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		_, err = c.DC(short, 4, 1)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 1, f.configs()-before)
		if floods := c.Floods(); assert.Len(t, floods, 1) {
			assert.Equal(t, 4, floods[0].DC)
		}
		_, err = c.Self(ctx)
		return err
	})
}

// tooMany is a server that answers every connection with the transport error -429. It tells
// when each came.
func tooMany(t *testing.T) (addr *net.TCPAddr, came <-chan time.Time) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	var wg sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	times := make(chan time.Time, 100)
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			times <- time.Now()
			wg.Go(func() {
				defer conn.Close()
				_, _ = io.ReadFull(conn, make([]byte, 4)) // the protocol
				frame := binary.LittleEndian.AppendUint32(nil, 4)
				code := int32(-429)
				_, _ = conn.Write(binary.LittleEndian.AppendUint32(frame, uint32(code)))
				_, _ = io.Copy(io.Discard, conn)
			})
		}
	})
	return l.Addr().(*net.TCPAddr), times
}

func TestDataCentreThatRefusesConnectionsIsAskedLessAndLessOften(t *testing.T) {
	addr, came := tooMany(t)
	l := &line{}
	opts := client.Options{Telegram: telegram.Options{SessionStorage: &session.StorageMemory{}}}
	opts.Telegram.DC = 2
	opts.Telegram.DCList = dcs.List{Options: []tg.DCOption{{ID: 2, IPAddress: addr.IP.String(), Port: addr.Port, Static: true}}}
	opts.Telegram.Resolver = dcs.Plain(dcs.PlainOptions{Dial: l.dial})
	c, err := client.New(1, "hash", opts)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := call(func() error { return c.Run(ctx, func(context.Context) error { return nil }) })
	first := <-came
	second := <-came
	third := <-came
	require.GreaterOrEqual(t, second.Sub(first), time.Second)
	require.GreaterOrEqual(t, third.Sub(second), 2*time.Second)
	cancel()
	err = ended(t, done)
	require.ErrorIs(t, err, client.ErrNeverConnected)
	require.ErrorContains(t, err, "transport flood")
	require.NotErrorIs(t, err, syscall.ECONNREFUSED)
}
