package redisstore

import (
	"context"
	"strconv"
	"time"

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
	answer, err := s.run(ctx, doing, question{
		script: s.scripts.decide,
		keys:   []string{s.clockKey(), s.stateKey(r.Window.Kind, r.Key)},
		args:   []any{r.Window.Kind.String(), r.Window.Limit, r.Window.Period.Microseconds(), r.Cost, record},
	})
	if err != nil {
		return quota.Result{}, err
	}
	got, err := s.numbers(doing, answer, 3)
	if err != nil {
		return quota.Result{}, err
	}
	return quota.Result{
		Limited:    got[0] > 0,
		RetryAfter: micros(got[0]),
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
	_, err := s.run(ctx, "reset", question{script: s.scripts.reset, keys: keys})
	return err
}

func (s *Store) clockKey() string { return s.prefix + "clock" }

func (s *Store) stateKey(kind quota.Kind, key string) string {
	return s.prefix + "key:" + strconv.Itoa(int(kind)) + ":" + key
}
