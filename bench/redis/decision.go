package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"regexp"
	"slices"
	"strconv"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"github.com/weirtg/weir/quota"
	"github.com/weirtg/weir/ratelimit"
	"github.com/weirtg/weir/redisstore"
)

// kinds are the decisions that are measured.
func kinds() []string {
	return []string{
		"one bucket", "chat, category and global", "group window, category and global",
		"quota bucket", "quota sliding", "redis_rate", "redis_rate, one after the other for three",
	}
}

// decider returns what makes the n-th decision of a kind. There is always room: only
// so are all of them the same.
func decider(ctx context.Context, kind, addr, account string, messages *atomic.Int64) (func(context.Context, int) error, func(), error) {
	client := redis.NewClient(&redis.Options{
		Addr: addr, ContextTimeoutEnabled: true, MaxRetries: -1, PoolSize: 40, DisableIdentity: true,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			if err != nil || messages == nil {
				return c, err
			}
			return counted{c, messages}, nil
		},
	})
	end := func() { _ = client.Close() }
	s, err := redisstore.New(redisstore.Options{Client: client, Account: account, Timeout: 10 * time.Second})
	if err != nil {
		end()
		return nil, nil, err
	}
	peer := redis_rate.NewLimiter(client)

	const chats = 10_000
	wide := ratelimit.Limit{Rate: 1e6, Burst: 1 << 20}
	chat := ratelimit.Charge{Gate: "chat", Rule: ratelimit.Limit{Rate: 1000, Burst: 1000}, Cost: 1}
	group := ratelimit.Charge{Gate: "group", Rule: ratelimit.Window{Limit: 20, Period: 100 * time.Millisecond}, Cost: 1}
	category := ratelimit.Charge{Gate: "message", Rule: wide, Cost: 1}
	global := ratelimit.Charge{Gate: "global", Rule: wide, Cost: 1}
	take := func(ctx context.Context, charges ...ratelimit.Charge) error {
		admitted, _, err := s.Take(ctx, charges)
		if err == nil && !admitted {
			err = fmt.Errorf("there was no room")
		}
		return err
	}
	decide := func(ctx context.Context, n int, w quota.Window) error {
		r := quota.Request{Key: strconv.Itoa(n % chats), Window: w, Cost: 1, Record: true}
		got, err := s.Decide(ctx, r)
		if err == nil && got.Limited {
			err = fmt.Errorf("there was no room")
		}
		return err
	}
	allow := func(ctx context.Context, key string) error {
		got, err := peer.Allow(ctx, account+key, redis_rate.Limit{Rate: 1e6, Burst: 1 << 20, Period: time.Second})
		if err == nil && got.Allowed == 0 {
			err = fmt.Errorf("there was no room")
		}
		return err
	}
	return func(ctx context.Context, n int) error {
		chat, group := chat, group
		chat.Key, group.Key = uint64(n%chats), uint64(n%chats)
		switch kind {
		case "one bucket":
			return take(ctx, global)
		case "chat, category and global":
			return take(ctx, chat, category, global)
		case "group window, category and global":
			return take(ctx, group, category, global)
		case "quota bucket":
			return decide(ctx, n, quota.Window{Limit: 1 << 20, Period: time.Second, Kind: quota.Bucket})
		case "quota sliding":
			return decide(ctx, n, quota.Window{Limit: 20, Period: 100 * time.Millisecond})
		case "redis_rate":
			return allow(ctx, "global")
		default:
			for _, key := range []string{strconv.Itoa(n % chats), "message", "global"} {
				if err := allow(ctx, key); err != nil {
					return err
				}
			}
			return nil
		}
	}, end, nil
}

// counted counts what is sent on a connection.
type counted struct {
	net.Conn
	messages *atomic.Int64
}

func (c counted) Write(b []byte) (int, error) {
	c.messages.Add(1)
	return c.Conn.Write(b)
}

func decision(ctx context.Context, addr string, d time.Duration, out io.Writer) error {
	if d == 0 {
		d = 3 * time.Second
	}
	stats := redis.NewClient(&redis.Options{Addr: addr})
	defer stats.Close()
	account := fmt.Sprint("bench-", time.Now().UnixNano())
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "decision\tmessages\ttime\tp99\tscript\tdecisions/s\t1 process\t4 processes")
	for _, kind := range kinds() {
		one, err := alone(ctx, stats, kind, addr, account, d)
		if err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		fmt.Fprintf(table, "%s\t%.2f\t%v\t%v\t%.1fµs\t%.0f", kind, one.messages, one.median, one.p99, one.script, one.rate)
		for _, n := range []int{1, 4} {
			all, err := processes(ctx, n, job{
				Addr: addr, Account: account, Kind: kind, Callers: 32, Start: time.Now().Add(500 * time.Millisecond), Duration: d,
			})
			if err != nil {
				return fmt.Errorf("%s, %d processes: %w", kind, n, err)
			}
			asked := 0
			for _, p := range all {
				asked += p.Asked
			}
			fmt.Fprintf(table, "\t%.0f", float64(asked)/d.Seconds())
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return news(ctx, addr, account, out)
}

// single is what decisions one after the other are like.
type single struct {
	messages    float64       // a decision
	median, p99 time.Duration // as the caller sees it
	script      float64       // microseconds of the server's, in the round in which it was disturbed least
	rate        float64       // a second
}

func alone(ctx context.Context, stats *redis.Client, kind, addr, account string, d time.Duration) (single, error) {
	var messages atomic.Int64
	decide, end, err := decider(ctx, kind, addr, account, &messages)
	if err != nil {
		return single{}, err
	}
	defer end()
	for n := range 1000 { // the connection is there, and the script known
		if err := decide(ctx, n); err != nil {
			return single{}, err
		}
	}
	messages.Store(0)
	var times []time.Duration
	script, began := math.Inf(1), time.Now()
	const rounds = 10
	for round := 1; round <= rounds; round++ {
		before, err := scriptTime(ctx, stats)
		if err != nil {
			return single{}, err
		}
		first := len(times)
		for time.Since(began) < d*time.Duration(round)/rounds {
			asked := time.Now()
			if err := decide(ctx, len(times)); err != nil {
				return single{}, err
			}
			times = append(times, time.Since(asked))
		}
		after, err := scriptTime(ctx, stats)
		if err != nil {
			return single{}, err
		}
		if n := len(times) - first; n > 0 {
			script = min(script, (after-before)/float64(n))
		}
	}
	took, n := time.Since(began), float64(len(times))
	slices.Sort(times)
	return single{
		messages: float64(messages.Load()) / n,
		median:   times[len(times)/2], p99: times[len(times)*99/100],
		script: script,
		rate:   n / took.Seconds(),
	}, nil
}

// scriptTime is for how many microseconds the server has run scripts.
func scriptTime(ctx context.Context, stats *redis.Client) (usec float64, err error) {
	info, err := stats.Info(ctx, "commandstats").Result()
	if err != nil {
		return 0, err
	}
	m := regexp.MustCompile(`cmdstat_evalsha:calls=\d+,usec=(\d+)`).FindStringSubmatch(info)
	if m == nil {
		return 0, nil // none yet
	}
	return strconv.ParseFloat(m[1], 64)
}
