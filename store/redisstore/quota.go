package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirtg/weir/quota"
)

// Decide implements quota.Store. Times are those of the server, whose clock is kept from
// going back.
func (s *Store) Decide(ctx context.Context, r quota.Request) (quota.Result, error) {
	record := 0
	if r.Record {
		record = 1
	}
	const doing = "decide"
	answer, err := s.runUntilDone(ctx, doing, s.scripts.decide,
		[]string{s.clockKey(), s.stateKey(r.Window.Kind, r.Key)},
		r.Window.Kind.String(), r.Window.Limit, r.Window.Period.Microseconds(), r.Cost, record)
	if err != nil {
		return quota.Result{}, err
	}
	got, err := s.numbers(doing, answer, 3)
	if err != nil {
		return quota.Result{}, err
	}
	return quota.Result{
		Limited:    got[0] > 0,
		RetryAfter: time.Duration(got[0]) * time.Microsecond,
		Remaining:  int(got[1]),
		ResetAt:    time.UnixMicro(got[2]),
	}, nil
}

// Reset implements quota.Store.
func (s *Store) Reset(ctx context.Context, key string) error {
	var keys []string
	for kind := quota.Sliding; kind <= quota.Bucket; kind++ {
		keys = append(keys, s.stateKey(kind, key))
	}
	_, err := s.runUntilDone(ctx, "reset", s.scripts.reset, keys)
	return err
}

// runUntilDone runs a script as run does, and returns when ctx is done. go-redis keeps to
// a deadline, but does not notice while it waits for an answer that its context was
// cancelled. It needs a goroutine for that, which ends after the Timeout at the latest.
func (s *Store) runUntilDone(ctx context.Context, doing string, script *redis.Script, keys []string, args ...any) (any, error) {
	if ctx.Done() == nil {
		return s.run(ctx, doing, script, keys, args...)
	}
	type result struct {
		answer any
		err    error
	}
	answered := make(chan result, 1)
	go func() {
		answer, err := s.run(ctx, doing, script, keys, args...)
		answered <- result{answer, err}
	}()
	select {
	case r := <-answered:
		return r.answer, r.err
	case <-ctx.Done():
		return nil, fmt.Errorf("redis store: %s: %w", doing, ctx.Err())
	}
}

func (s *Store) clockKey() string { return s.prefix + "clock" }

func (s *Store) stateKey(kind quota.Kind, key string) string {
	return s.prefix + "key:" + strconv.Itoa(int(kind)) + ":" + key
}
