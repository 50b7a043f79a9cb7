package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/weirtg/weir/config"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/keyed"
	"github.com/weirtg/weir/store"
	"github.com/weirtg/weir/store/boltstore"
	"github.com/weirtg/weir/store/redisstore"
)

// keep is where the bot keeps what outlives it: floods, learned rates, awards.
type keep struct {
	limits invoke.Options // with what the store is for
	awards *keyed.Limiter
	// close closes the store, after everything that uses it.
	close func() error
}

// awardTimeout is how long an award may take to be written down: a disk that is busy takes
// longer than most stores.
const awardTimeout = 2 * time.Second

// open opens the store that the configuration names. A Redis server may be away, and come
// later, unless nothing is to go on without it.
func (s settings) open(ctx context.Context, cfg config.Config) (keep, error) {
	policy := store.Local // a bot that goes on by what it knows is what most want
	if cfg.OnStoreFailure != "" {
		policy, _ = store.ParsePolicy(cfg.OnStoreFailure) // it has been checked
	}
	k := keep{limits: s.limits, close: func() error { return nil }}
	k.limits.OnFailure = policy
	meanwhile := "what is to be kept is written when it is back"
	var counts keyed.Store
	switch {
	case cfg.RedisURL.Reveal() != "":
		// The number before the colon is the bot's id, which everybody may know.
		id, _, _ := strings.Cut(cfg.BotToken.Reveal(), ":")
		redis, err := redisstore.Open(cfg.RedisURL.Reveal(), cmp.Or(cfg.Account, id, "demo"))
		if err != nil { // it talks to nobody: what it refuses is the configuration
			return keep{}, usageError{err}
		}
		if err := redis.Ping(ctx); err != nil && policy == store.Closed { // else the limiter says so
			err = fmt.Errorf("store: %w: start the server, or set on_store_failure to local or open to go on without it", err)
			return keep{}, errors.Join(err, redis.Close())
		}
		k.limits.Store, counts, k.close = redis, redis, redis.Close
		meanwhile = withoutRedis(policy)
	case cfg.StoreFile != "":
		file, err := boltstore.Open(cfg.StoreFile, boltstore.Options{})
		if err != nil {
			return keep{}, err
		}
		k.limits.Store, counts, k.close = file, file, file.Close
	}
	k.limits.Observer = invoke.Observers(s.limits.Observer, storeLog{s.client.Logger, meanwhile})
	var err error
	if k.awards, err = keyed.New(keyed.Options{Store: counts, OnFailure: policy, Timeout: awardTimeout}); err != nil {
		return keep{}, errors.Join(err, k.close())
	}
	return k, nil
}

// withoutRedis says what becomes of calls while the server is away.
func withoutRedis(policy store.Policy) string {
	switch policy {
	case store.Open:
		return "calls go out without limits until it is back"
	case store.Local:
		return "this process keeps to the limits by itself until it is back"
	default:
		return "calls are refused until it is back"
	}
}

// storeLog says in the log when the store is lost, and when it is back.
type storeLog struct {
	logger    *zap.Logger
	meanwhile string
}

// Observe implements invoke.Observer.
func (l storeLog) Observe(e invoke.Event) {
	switch e.Kind {
	case invoke.StoreLost:
		l.logger.Warn("The store is away: "+l.meanwhile, zap.Error(e.Err))
	case invoke.StoreBack:
		l.logger.Info("The store is back")
	}
}

// temporary is the configuration of a demonstration, whose store goes with it: it is to
// leave no trace, and to find none of an account.
func temporary(cfg config.Config) (_ config.Config, remove func() error, err error) {
	if cfg.StoreFile == "" {
		return cfg, func() error { return nil }, nil
	}
	dir, err := os.MkdirTemp("", "examplebot")
	if err != nil {
		return cfg, nil, fmt.Errorf("a place for the demonstration's store: %w", err)
	}
	cfg.StoreFile = filepath.Join(dir, filepath.Base(config.DefaultStoreFile))
	return cfg, func() error { return os.RemoveAll(dir) }, nil
}
