package redisstore

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirtg/weir/quota"
	"github.com/weirtg/weir/ratelimit"
	"github.com/weirtg/weir/store"
)

// Store is what the processes of one account share on a Redis server. It is safe for
// concurrent use. Get one from [New] or [Open].
//
// Each of its calls is one message to the server and its answer, and ends after the
// Timeout at the latest, Ping after 5 s, when ctx is done or not. Its error is that of
// ctx if it is done; else it matches store.ErrUnavailable or, for arguments that cannot
// be used, is a [*store.ArgumentError].
type Store struct {
	client  redis.UniversalClient
	own     bool // the client is closed with the store
	prefix  string
	timeout time.Duration
	process string // tells this store from those of other processes
	scripts scripts
	start   time.Time

	life context.Context // done when the store is closed
	end  context.CancelFunc

	lag    atomic.Int64 // of late, the longest that a Take took
	failed atomic.Int64 // when a Take last failed, since start; 0 if never
	taken  history
}

var (
	_ quota.Store      = (*Store)(nil)
	_ store.Memory     = (*Store)(nil)
	_ ratelimit.Shared = (*Store)(nil)
)

var errClosed = errors.New("the store was closed")

// Close ends what is watched, and the connection if [Open] made it. Calls that come
// later fail.
func (s *Store) Close() error {
	s.end()
	if !s.own {
		return nil
	}
	if err := s.client.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
		return fmt.Errorf("redis store: close: %w", err)
	}
	return nil
}

type scripts struct{ decide, reset, take, giveBack, save, load *redis.Script }

var (
	//go:embed lua/clock.lua
	clockLua string
	//go:embed lua/hits.lua
	hitsLua string
	//go:embed lua/gate.lua
	gateLua string
	//go:embed lua/decide.lua
	decideLua string
	//go:embed lua/take.lua
	takeLua string
	//go:embed lua/giveback.lua
	giveBackLua string
	//go:embed lua/save.lua
	saveLua string
	//go:embed lua/load.lua
	loadLua string
)

// newScripts puts the scripts together. Tests replace the server's clock in them.
func newScripts(in *strings.Replacer) scripts {
	script := func(parts ...string) *redis.Script {
		return redis.NewScript(in.Replace(strings.Join(parts, "")))
	}
	return scripts{
		decide:   script(clockLua, hitsLua, decideLua),
		reset:    script(`return redis.call('DEL', unpack(KEYS))`),
		take:     script(clockLua, hitsLua, gateLua, takeLua),
		giveBack: script(clockLua, hitsLua, gateLua, giveBackLua),
		save:     script(saveLua),
		load:     script(loadLua),
	}
}

// run runs a script on the server. A script that the server does not know, because it
// was restarted, is sent whole.
func (s *Store) run(ctx context.Context, doing string, script *redis.Script, keys []string, args ...any) (any, error) {
	if err := s.ready(ctx, doing); err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	answer, err := script.Run(bounded, s.client, keys, args...).Result()
	if err != nil {
		return nil, unavailable(ctx, doing, s.timeout, err)
	}
	return answer, nil
}

// Ping asks the server whether it is there: before a program starts that is not to run
// without it, and so that a first connection that takes longer than the Timeout is there
// for the first call.
func (s *Store) Ping(ctx context.Context) error {
	const doing = "connect"
	if err := s.ready(ctx, doing); err != nil {
		return err
	}
	began := time.Now()
	bounded, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := s.client.Ping(bounded).Err(); err != nil {
		// A connection may have been given up sooner.
		return unavailable(ctx, doing, time.Since(began).Round(100*time.Millisecond), err)
	}
	return nil
}

func (s *Store) ready(ctx context.Context, doing string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("redis store: %s: %w", doing, err)
	}
	if s.life.Err() != nil {
		return fmt.Errorf("redis store: %s: %w: %w", doing, store.ErrUnavailable, errClosed)
	}
	return nil
}

// unavailable tells a call that the caller has ended from one that the server has let
// down.
func unavailable(ctx context.Context, doing string, timeout time.Duration, err error) error {
	done := ctx.Err()
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		done = context.DeadlineExceeded // the connection may know it sooner than the context
	}
	if done != nil {
		return fmt.Errorf("redis store: %s: %w", doing, done)
	}
	if late := net.Error(nil); errors.As(err, &late) && late.Timeout() {
		err = fmt.Errorf("no answer within %v", timeout) // and not that of a context of ours
	}
	return fmt.Errorf("redis store: %s: %w: %w", doing, store.ErrUnavailable, err)
}

// numbers is a script's answer as n whole numbers.
func (s *Store) numbers(doing string, answer any, n int) ([]int64, error) {
	list, _ := answer.([]any)
	got := make([]int64, 0, len(list))
	for _, v := range list {
		if i, ok := v.(int64); ok {
			got = append(got, i)
		}
	}
	if len(got) != n {
		return nil, fmt.Errorf("redis store: %s: %w: %d numbers in the answer: want %d", doing, store.ErrUnavailable, len(got), n)
	}
	return got, nil
}
