package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirtg/weir/store"
)

// maxPending bounds the questions that wait for an answer, so that a server that hangs does
// not collect goroutines.
const maxPending = 1024

// question is one run of a script.
type question struct {
	script *redis.Script
	keys   []string
	args   []any
	late   func(answer any) // is handed an answer that nobody waits for any more; may be nil
	ended  func()           // called once, when the question is over; may be nil
}

func (q question) end() {
	if q.ended != nil {
		q.ended()
	}
}

// answered is how a question ended.
type answered struct {
	value any
	err   error
}

// run runs a script on the server, and waits for the answer for the Timeout. A script that
// the server does not know, because it was restarted, is sent whole.
//
// The question may outlast the call. go-redis sets a connection up in the time of the
// question that needs it: were that cut off with the call, a server that is far away would
// never be connected to.
func (s *Store) run(ctx context.Context, doing string, q question) (any, error) {
	if err := s.ready(ctx, doing); err != nil {
		q.end()
		return nil, err
	}
	if s.pending.Add(1) > maxPending {
		s.pending.Add(-1)
		q.end()
		return nil, fmt.Errorf("redis store: %s: %w: %d questions have no answer yet", doing, store.ErrUnavailable, maxPending)
	}
	// The channel holds nothing: an answer is handed over, or it is late.
	answers, left := make(chan answered), make(chan struct{})
	defer close(left)
	s.running.Go(func() {
		defer s.pending.Add(-1)
		defer q.end()
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.connect+s.timeout)
		defer cancel()
		defer context.AfterFunc(s.life, cancel)()
		var a answered
		a.value, a.err = q.script.Run(bounded, s.client, q.keys, q.args...).Result()
		select {
		case answers <- a:
		case <-left:
			if a.err == nil && q.late != nil {
				q.late(a.value)
			}
		}
	})
	timer := time.NewTimer(s.timeout)
	defer timer.Stop()
	select {
	case a := <-answers:
		if a.err != nil {
			return nil, s.unavailable(ctx, doing, s.timeout, a.err)
		}
		return a.value, nil
	case <-ctx.Done():
		return nil, s.unavailable(ctx, doing, s.timeout, ctx.Err())
	case <-s.life.Done():
		return nil, s.ready(ctx, doing)
	case <-timer.C:
		return nil, s.unavailable(ctx, doing, s.timeout, context.DeadlineExceeded)
	}
}

// unavailable tells a call that the caller has ended from one that the server has let
// down, and that from one that no waiting helps.
func (s *Store) unavailable(ctx context.Context, doing string, timeout time.Duration, err error) error {
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
	if advice := s.advice(err); advice != "" {
		return fmt.Errorf("redis store: %s: %w, %w: %s: %w", doing, store.ErrUnavailable, store.ErrMisconfigured, advice, err)
	}
	return fmt.Errorf("redis store: %s: %w: %w", doing, store.ErrUnavailable, err)
}
