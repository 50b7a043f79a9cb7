package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weirtg/weir/boltstore"
	"github.com/weirtg/weir/config"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/quota"
	"github.com/weirtg/weir/redisstore"
	"github.com/weirtg/weir/store"
)

// keep is where the bot keeps what outlives it: floods, learned rates, awards.
type keep struct {
	limits invoke.Options // with what the store is for
	awards *quota.Limiter
	// close closes the store, after everything that uses it.
	close func() error
}

// awardTimeout is how long the store may take to count an award. A busy disk takes longer
// than the default.
const awardTimeout = 2 * time.Second

// open opens the store that the configuration names. A Redis server may be away, and come
// later, unless nothing is to go on without it.
func (s settings) open(ctx context.Context, cfg config.Config) (keep, error) {
	policy := store.FailLocal // a bot that goes on by what it knows is what most want
	if cfg.OnStoreFailure != "" {
		policy, _ = store.ParsePolicy(cfg.OnStoreFailure) // it has been checked
	}
	k := keep{limits: s.limits, close: func() error { return nil }}
	k.limits.OnFailure = policy
	var counts quota.Store
	switch {
	case cfg.RedisURL.Reveal() != "":
		// The number before the colon is the bot's id, which everybody may know.
		id, _, _ := strings.Cut(cfg.BotToken.Reveal(), ":")
		redis, err := redisstore.Open(cfg.RedisURL.Reveal(), cmp.Or(cfg.Account, id, "demo"))
		if err != nil { // it talks to nobody: what it refuses is the configuration
			return keep{}, usageError{err}
		}
		if err := redis.Check(ctx); err != nil && policy == store.FailClosed { // else the limiter says so
			err = fmt.Errorf("store: %w: start the server, or set on_store_failure to local or open to go on without it", err)
			return keep{}, errors.Join(err, redis.Close())
		}
		k.limits.Store, counts, k.close = redis, redis, redis.Close
	case cfg.StoreFile != "":
		file, err := boltstore.Open(cfg.StoreFile, boltstore.Options{})
		if err != nil {
			return keep{}, err
		}
		k.limits.Store, counts, k.close = file, file, file.Close
	}
	var err error
	if k.awards, err = quota.New(quota.Options{Store: counts, OnFailure: policy, Timeout: awardTimeout}); err != nil {
		return keep{}, errors.Join(err, k.close())
	}
	return k, nil
}
