package redisstore

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync"
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
// Each of its calls is one message to the server and its answer. It returns after the
// Timeout at the latest, or when ctx is done; [Store.Check] takes longer. A question that
// is not answered by then goes on behind the call, in a goroutine of its own, until
// ConnectTimeout and Timeout have passed: so a connection that takes long to set up, or an
// answer that is late, is not thrown away. What a late [Store.Take] has charged is given
// back.
//
// An error is that of ctx if it is done; else it matches store.ErrUnavailable, and
// store.ErrMisconfigured too if waiting does not help. For an argument that cannot be used
// it is a [*store.ArgumentError].
type Store struct {
	client  redis.UniversalClient
	own     bool // the client is closed with the store
	prefix  string
	timeout time.Duration // of a question
	connect time.Duration // what setting a connection up may take on top
	pending atomic.Int32  // questions that have no answer yet
	saving  chan struct{} // held by the one Save that is under way
	running sync.WaitGroup
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
	_ quota.Store       = (*Store)(nil)
	_ store.Facts       = (*Store)(nil)
	_ ratelimit.Shared  = (*Store)(nil)
	_ ratelimit.Patient = (*Store)(nil)
	_ store.Checker     = (*Store)(nil)
)

var errClosed = errors.New("the store was closed")

// Close ends what is watched, and the connection if [Open] made it. Calls that come
// later fail.
func (s *Store) Close() error {
	s.end()
	if !s.own {
		return nil
	}
	err := s.client.Close()
	s.running.Wait() // every connection is closed, so each ends at once
	if err != nil && !errors.Is(err, redis.ErrClosed) {
		return fmt.Errorf("redis store: close: %w", err)
	}
	return nil
}

type scripts struct {
	decide, reset, take, giveBack, save, load *redis.Script

	sources []string // of all
}

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
	var all scripts
	script := func(parts ...string) *redis.Script {
		source := in.Replace(strings.Join(parts, ""))
		all.sources = append(all.sources, source)
		return redis.NewScript(source)
	}
	all.decide, all.reset = script(clockLua, hitsLua, decideLua), script(`return redis.call('DEL', unpack(KEYS))`)
	all.take = script(clockLua, hitsLua, gateLua, takeLua)
	all.giveBack = script(clockLua, hitsLua, gateLua, giveBackLua)
	all.save, all.load = script(saveLua), script(loadLua)
	return all
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
