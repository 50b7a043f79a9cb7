package redisstore

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirtg/weir/store"
)

//go:embed lua/check.lua
var checkLua string

// Check implements store.Checker: it connects, and tries every command, key pattern and
// channel that the store needs, on a key of its own that it takes away again. It blocks
// until ctx is done, or for ConnectTimeout and Timeout at most. After it, the connection
// and the scripts are ready, so that a server that is far away answers within the Timeout.
//
// The error says what is missing and what to do. It matches store.ErrMisconfigured, besides
// store.ErrUnavailable, if waiting does not help.
func (s *Store) Check(ctx context.Context) error {
	const doing = "check"
	if err := s.ready(ctx, doing); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, s.connect+s.timeout)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	heard := make(chan error, 1)
	go func() { heard <- s.checkChannel(bounded) }()
	err := s.checkScripts(bounded)
	if err != nil {
		cancel() // one reason is enough
		return s.unfit(ctx, doing, err)
	}
	select {
	case err = <-heard:
	case <-bounded.Done():
		err = context.DeadlineExceeded
	}
	return s.unfit(ctx, doing, err)
}

// unfit keeps what checkScripts found to be missing, and explains all other errors.
func (s *Store) unfit(ctx context.Context, doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case s.life.Err() != nil:
		return s.ready(ctx, doing)
	case errors.Is(err, store.ErrMisconfigured):
		return fmt.Errorf("redis store: %s: %w, %w", doing, store.ErrUnavailable, err)
	}
	return s.unavailable(ctx, doing, s.connect+s.timeout, err)
}

func (s *Store) checkScripts(ctx context.Context) error {
	keys := []string{s.prefix + "check"}
	for _, name := range []string{"clock", "facts", "expiry", "key:check", "gate:check", "hits:check"} {
		keys = append(keys, s.prefix+name)
	}
	script := redis.NewScript(checkLua)
	// Not Run, which sends one of EVAL and EVALSHA, and another another time.
	answer, err := script.Eval(ctx, s.client, keys, s.newsChannel()).Result()
	if err != nil {
		return s.maybeLacks("eval", err)
	}
	list, _ := answer.([]any)
	if len(list) > 1 { // the first is reason enough
		command, _ := list[0].(string)
		said, _ := list[1].(string)
		err := errors.New(said)
		if advice := s.advice(err); advice == "" || strings.Contains(said, "OOM") {
			return err // it may pass
		}
		forbidden := strings.Contains(said, "NOPERM") || strings.Contains(said, "ACL failure") || strings.Contains(said, "can't run this command")
		if forbidden && !strings.Contains(said, "channel") && !strings.Contains(said, " key") {
			return s.lacksCommand(command, err)
		}
		return err
	}
	return s.maybeLacks("evalsha", s.loadScripts(ctx, script, keys))
}

// maybeLacks says it of an error that is about a right to a command.
func (s *Store) maybeLacks(command string, err error) error {
	if err != nil && strings.Contains(err.Error(), "NOPERM") && strings.Contains(err.Error(), "'"+command+"'") {
		return s.lacksCommand(command, err)
	}
	return err
}

// loadScripts saves the first question of each script a round trip. A user that may not
// load scripts still runs them. The error is that of running one, which the server knows, by
// its hash.
func (s *Store) loadScripts(ctx context.Context, known *redis.Script, keys []string) error {
	var byHash *redis.Cmd
	// Script.Load would take the empty answer of a command that is not sent yet for the
	// script's hash.
	_, _ = s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, source := range s.scripts.sources {
			p.ScriptLoad(ctx, source)
		}
		byHash = p.EvalSha(ctx, known.Hash(), keys, s.newsChannel())
		return nil
	})
	if err := byHash.Err(); err != nil && !redis.HasErrorPrefix(err, "NOSCRIPT") { // a server that keeps none, as a stand-in does
		return err
	}
	return nil
}

func (s *Store) lacksCommand(command string, err error) error {
	return fmt.Errorf("%w: the user may not run the command %s: allow it with ACL SETUSER <user> +%s: %w",
		store.ErrMisconfigured, strings.ToUpper(command), command, err)
}

// checkChannel listens to what other processes save, for a moment. Without the right to do
// so, their floods would never arrive.
func (s *Store) checkChannel(ctx context.Context) error {
	sub := s.client.Subscribe(ctx)
	defer sub.Close()
	defer context.AfterFunc(ctx, func() { sub.Close() })()
	err := sub.Subscribe(ctx, s.newsChannel())
	if err == nil {
		_, err = sub.ReceiveTimeout(ctx, time.Until(deadline(ctx)))
	}
	if err == nil {
		return nil
	}
	return s.maybeLacks("subscribe", err)
}

// deadline is that of a context which has one.
func deadline(ctx context.Context) time.Time {
	at, _ := ctx.Deadline()
	return at
}
