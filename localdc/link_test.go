package localdc

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gotd/td/telegram"
)

// echo is a server on loopback that answers every byte with itself.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}()
		}
	}()
	return l.Addr().String()
}

func newLink(t *testing.T, opts LinkOptions) *Link {
	t.Helper()
	link, err := NewLink(opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, link.Close()) })
	return link
}

func dial(t *testing.T, link *Link, addr string) net.Conn {
	t.Helper()
	conn, err := link.Dial(t.Context(), "tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func say(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	_, err := io.WriteString(conn, text)
	require.NoError(t, err)
}

// hear reads as many bytes as text has and wants them to be text.
func hear(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(10*time.Second)))
	got := make([]byte, len(text))
	_, err := io.ReadFull(conn, got)
	require.NoError(t, err)
	require.Equal(t, text, string(got))
}

// silent wants nothing to arrive for a moment.
func silent(t *testing.T, conn net.Conn) {
	t.Helper()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err := conn.Read(make([]byte, 1))
	var late net.Error
	require.ErrorAs(t, err, &late)
	require.True(t, late.Timeout())
}

func TestLinkDelaysEachWay(t *testing.T) {
	const latency = 20 * time.Millisecond
	link := newLink(t, LinkOptions{Latency: latency})
	began := time.Now()
	conn := dial(t, link, echo(t))
	require.GreaterOrEqual(t, time.Since(began), 2*latency, "a dial takes a round trip")

	began = time.Now()
	say(t, conn, "hello")
	hear(t, conn, "hello")
	require.GreaterOrEqual(t, time.Since(began), 2*latency)
}

func TestLinkKeepsOrderWhateverTheJitter(t *testing.T) {
	link := newLink(t, LinkOptions{Jitter: 5 * time.Millisecond})
	conn := dial(t, link, echo(t))
	const numbers = 200
	go func() {
		for i := range uint32(numbers) {
			_ = binary.Write(conn, binary.BigEndian, i)
		}
	}()
	for i := range uint32(numbers) {
		var got uint32
		require.NoError(t, binary.Read(conn, binary.BigEndian, &got))
		require.Equal(t, i, got)
	}
}

func TestLinkHasABandwidth(t *testing.T) {
	link := newLink(t, LinkOptions{Bandwidth: 100_000})
	conn := dial(t, link, echo(t))
	text := make([]byte, 5_000) // 50 ms up, and 50 ms down for what comes in one piece
	began := time.Now()
	_, err := conn.Write(text)
	require.NoError(t, err)
	_, err = io.ReadFull(conn, text)
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(began), 50*time.Millisecond)
}

func TestLinkDelaysAreThoseOfItsSeed(t *testing.T) {
	draw := func(seed uint64) (all []time.Duration) {
		link := newLink(t, LinkOptions{Latency: time.Second, Jitter: time.Second, Seed: seed})
		d, err := link.delays()
		require.NoError(t, err)
		for range 10 {
			all = append(all, d.draw())
		}
		return all
	}
	require.Equal(t, draw(1), draw(1))
	require.NotEqual(t, draw(1), draw(2))
	for _, d := range draw(3) {
		require.GreaterOrEqual(t, d, time.Second)
		require.LessOrEqual(t, d, 2*time.Second)
	}
}

func TestConnectionDiesAfterSoManyBytes(t *testing.T) {
	link := newLink(t, LinkOptions{DieAfter: 1000})
	addr := echo(t)
	for range 2 { // each connection has its own count
		conn := dial(t, link, addr)
		say(t, conn, "short") // 5 bytes there, 5 back
		hear(t, conn, "short")
		_, _ = conn.Write(make([]byte, 990))
		_, err := io.ReadFull(conn, make([]byte, 990))
		require.Error(t, err)
	}
}

func TestLineThatFails(t *testing.T) {
	link := newLink(t, LinkOptions{})
	addr := echo(t)
	conn := dial(t, link, addr)
	link.Fail()
	_, err := conn.Read(make([]byte, 1))
	require.Error(t, err, "open connections are reset")
	_, err = link.Dial(t.Context(), "tcp", addr)
	require.ErrorIs(t, err, syscall.ENETUNREACH)

	link.Restore()
	conn = dial(t, link, addr)
	say(t, conn, "back")
	hear(t, conn, "back")
}

func TestLineThatHangs(t *testing.T) {
	link := newLink(t, LinkOptions{})
	addr := echo(t)
	conn := dial(t, link, addr)
	link.Hang()
	say(t, conn, "one ")
	say(t, conn, "two")
	silent(t, conn)

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := link.Dial(ctx, "tcp", addr)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	link.Restore()
	hear(t, conn, "one two")
}

func TestHalfOpenConnection(t *testing.T) {
	link := newLink(t, LinkOptions{})
	addr := echo(t)
	conn := dial(t, link, addr)
	say(t, conn, "hello")
	hear(t, conn, "hello")
	require.Equal(t, 1, link.Strand())
	say(t, conn, "anybody?")
	silent(t, conn)

	fresh := dial(t, link, addr)
	say(t, fresh, "hello")
	hear(t, fresh, "hello")
	require.Equal(t, 2, link.Cut())
	_, err := conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}

func TestWhatWasWrittenBeforeCloseArrives(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	heard := make(chan string, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		text, _ := io.ReadAll(conn)
		heard <- string(text)
	}()
	link := newLink(t, LinkOptions{Latency: 10 * time.Millisecond})
	conn := dial(t, link, l.Addr().String())
	say(t, conn, "last words")
	require.NoError(t, conn.Close())
	require.Equal(t, "last words", <-heard)
}

func TestClosedLink(t *testing.T) {
	link, err := NewLink(LinkOptions{})
	require.NoError(t, err)
	addr := echo(t)
	conn := dial(t, link, addr)
	link.Hang()
	say(t, conn, "hello")
	require.NoError(t, link.Close())
	_, err = conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	_, err = link.Dial(t.Context(), "tcp", addr)
	require.ErrorIs(t, err, net.ErrClosed)
	require.NoError(t, link.Close(), "a second time does nothing")
}

func TestBadLinkIsRefusedByName(t *testing.T) {
	for field, opts := range map[string]LinkOptions{
		"Latency is -1ns":      {Latency: -1},
		"Latency is 1m0.001s":  {Latency: time.Minute + time.Millisecond},
		"Jitter is -1s":        {Jitter: -time.Second},
		"Jitter is 24h":        {Jitter: 24 * time.Hour},
		"Bandwidth is -1":      {Bandwidth: -1},
		"Bandwidth is 999":     {Bandwidth: 999},
		"DieAfter is -9223372": {DieAfter: -1 << 63},
	} {
		_, err := NewLink(opts)
		require.ErrorContains(t, err, field)
		require.ErrorContains(t, err, "want ")
	}
}

func TestClientOverALink(t *testing.T) {
	const latency = 15 * time.Millisecond
	link := newLink(t, LinkOptions{Latency: latency})
	cloud, err := New(Options{Link: link})
	require.NoError(t, err)
	defer cloud.Close()
	client := telegram.NewClient(1, "hash", cloud.ClientOptions())
	require.NoError(t, client.Run(t.Context(), func(ctx context.Context) error {
		began := time.Now()
		_, err := client.API().HelpGetConfig(ctx)
		require.GreaterOrEqual(t, time.Since(began), 2*latency)
		if err != nil {
			return err
		}
		link.Fail()
		link.Restore()
		for ctx.Err() == nil { // gotd fails calls that it writes to the connection that has just died
			if _, err = client.API().HelpGetConfig(ctx); err == nil {
				return nil
			}
		}
		return err
	}))
}
