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

const (
	silence = time.Second            // after so long, the server is asked whether it is there
	pause   = 250 * time.Millisecond // between two attempts to connect
)

// Watch implements store.Facts. It outlasts lost connections: it returns only when ctx
// is done, the store is closed, or the server refuses for a reason that matches
// store.ErrMisconfigured, such as a channel that the user may not use. What this store saves itself is delivered too, in its
// place among what others save, so that the last word on a fact is what the server
// keeps. What others forget while the connection is lost is not heard of.
func (s *Store) Watch(ctx context.Context, f func(store.Fact)) error {
	const doing = "watch facts"
	if err := s.ready(ctx, doing); err != nil {
		return err
	}
	following, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	for {
		err := s.follow(following, f)
		if s.advice(err) != "" && ctx.Err() == nil {
			return s.unavailable(ctx, doing, s.timeout, err) // to try once more does not help
		}
		select {
		case <-following.Done():
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("redis store: %s: %w", doing, err)
			}
			return fmt.Errorf("redis store: %s: %w: %w", doing, store.ErrUnavailable, errClosed)
		case <-time.After(pause):
		}
	}
}

// follow subscribes, tells all facts and then what is saved, until the connection is
// lost or ctx is done.
func (s *Store) follow(ctx context.Context, f func(store.Fact)) error {
	connecting, cancel := context.WithTimeout(ctx, max(silence, s.connect))
	defer cancel()
	sub := s.client.Subscribe(ctx)
	// To connect to a server that hangs takes the client's own time, whatever becomes of ctx,
	// and Close of sub waits for it.
	connected := make(chan error, 1)
	go func() { connected <- sub.Subscribe(connecting, s.newsChannel()) }()
	select {
	case err := <-connected:
		defer sub.Close()
		if err != nil {
			return err
		}
	case <-ctx.Done():
		go func() {
			<-connected
			_ = sub.Close()
		}()
		return ctx.Err()
	}
	defer context.AfterFunc(ctx, func() { sub.Close() })() // ends a read
	receiving := connecting                                // it may connect once more
	for asked := false; ; receiving = ctx {
		wait := silence
		if receiving == connecting { // no answer yet
			wait = max(silence, s.connect)
		}
		heard, err := sub.ReceiveTimeout(receiving, wait)
		if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() && !asked {
			asked = true
			err = sub.Ping(ctx)
			if err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		asked = false

		var facts []store.Fact
		switch heard := heard.(type) {
		case *redis.Subscription: // by now, nothing that is saved can be missed
			facts, err = s.Load(ctx)
		case *redis.Message:
			facts, err = readNews(heard.Payload)
		}
		if err != nil {
			return err
		}
		for _, fact := range facts {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			f(fact)
		}
	}
}
