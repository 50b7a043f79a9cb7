package redisstore

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// startServer starts a Redis server of the test's own, with settings of its own, and returns
// its address. Where REDIS_ADDR is set, a server has to be installed.
func startServer(t *testing.T, settings ...string) string {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		if os.Getenv("REDIS_ADDR") != "" {
			t.Fatal("REDIS_ADDR is set, and there is no redis-server to start: install it")
		}
		t.Skip("redis-server is not installed")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	port := l.Addr().(*net.TCPAddr).Port
	require.NoError(t, l.Close())
	server := exec.Command(program, append([]string{
		"--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", t.TempDir(), "--save", "", "--appendonly", "no",
	}, settings...)...)
	var said bytes.Buffer
	server.Stdout = &said
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
		if t.Failed() {
			t.Logf("%s", said.String())
		}
	})
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, 10*time.Second, 10*time.Millisecond)
	return addr
}

// admin is a connection with all rights.
func admin(t *testing.T, addr string) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func openURL(t *testing.T, url string) *Store {
	t.Helper()
	s, err := Open(url, "a")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// farAway is a way to a server on which each message takes so long, and up to a fifth more.
func farAway(t *testing.T, server string, each time.Duration) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var running sync.WaitGroup
	ctx, end := context.WithCancel(context.Background())
	running.Go(func() {
		for n := 0; ; n++ {
			client, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				time.Sleep(2 * each) // the handshake of TCP
				far, err := net.Dial("tcp", server)
				if err != nil {
					_ = client.Close()
					return
				}
				stop := context.AfterFunc(ctx, func() { _, _ = client.Close(), far.Close() })
				defer stop()
				var both sync.WaitGroup
				both.Go(func() { carry(far, client, each) })
				both.Go(func() { carry(client, far, each) })
				both.Wait()
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		end()
		running.Wait()
	})
	return l.Addr().String()
}

// carry moves what one end sends to the other, each piece after its delay and in order.
func carry(to, from net.Conn, each time.Duration) {
	type piece struct {
		data []byte
		due  time.Time
	}
	pieces := make(chan piece, 1000)
	var sending sync.WaitGroup
	sending.Go(func() {
		for p := range pieces {
			time.Sleep(time.Until(p.due))
			_, _ = to.Write(p.data)
		}
		_ = to.Close()
	})
	buffer := make([]byte, 64<<10)
	for n := 0; ; n++ {
		size, err := from.Read(buffer)
		if size > 0 {
			jitter := each / 5 * time.Duration(n%4) / 3
			pieces <- piece{bytes.Clone(buffer[:size]), time.Now().Add(each + jitter)}
		}
		if err != nil {
			break
		}
	}
	close(pieces)
	sending.Wait()
}
