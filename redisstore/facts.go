package redisstore

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weirtg/weir/store"
)

// Load implements store.Facts. Facts expire by the server's clock. What is kept and is no
// fact is passed over.
func (s *Store) Load(ctx context.Context) ([]store.Fact, error) {
	answer, err := s.run(ctx, "load facts", question{script: s.scripts.load, keys: []string{s.factsKey()}})
	if err != nil {
		return nil, err
	}
	list, _ := answer.([]any)
	facts := make([]store.Fact, 0, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		key, _ := list[i].(string)
		kept, _ := list[i+1].(string)
		if f, err := decode(key, kept); err == nil {
			facts = append(facts, f)
		}
	}
	return facts, nil
}

// Save implements store.Facts. Until is kept to the microsecond.
func (s *Store) Save(ctx context.Context, facts ...store.Fact) error {
	const doing = "save facts"
	last := make(map[string]int, len(facts)) // of two facts with one key, the later holds
	for i, f := range facts {
		if err := f.Validate(); err != nil {
			return fmt.Errorf("redis store: %s: %w", doing, err)
		}
		last[f.Key] = i
	}
	if len(facts) == 0 {
		return s.ready(ctx, doing)
	}
	var news []byte
	args := []any{s.newsChannel(), nil}
	for i, f := range facts {
		if last[f.Key] != i {
			continue
		}
		kept, expires := encode(f)
		news = appendString(appendString(news, f.Key), kept)
		args = append(args, f.Key, kept, expires)
	}
	args[1] = news
	// A Save that its caller has left may still be under way. The next waits for it, or what
	// is older could overwrite what is newer.
	turn := time.NewTimer(s.timeout)
	defer turn.Stop()
	select {
	case s.saving <- struct{}{}:
	case <-ctx.Done():
		return s.unavailable(ctx, doing, s.timeout, ctx.Err())
	case <-s.life.Done():
		return s.ready(ctx, doing)
	case <-turn.C:
		return s.unavailable(ctx, doing, s.timeout, context.DeadlineExceeded)
	}
	_, err := s.run(ctx, doing, question{
		script: s.scripts.save, keys: []string{s.factsKey(), s.prefix + "expiry"}, args: args,
		ended: func() { <-s.saving },
	})
	return err
}

func (s *Store) factsKey() string    { return s.prefix + "facts" }
func (s *Store) newsChannel() string { return s.prefix + "news" }

// encode returns a fact as the server keeps it, when it expires in microseconds, a
// colon and the value, and "" if it is to be forgotten.
func encode(f store.Fact) (kept string, expires int64) {
	if f.Value == nil {
		return "", 0
	}
	const last = 1<<53 - 1 // in the year 2255: what Lua can compare
	expires = last
	if f.Until.Before(time.UnixMicro(last)) {
		expires = max(0, f.Until.UnixMicro())
	}
	return strconv.FormatInt(expires, 10) + ":" + string(f.Value), expires
}

func decode(key, kept string) (store.Fact, error) {
	if kept == "" {
		return store.Fact{Key: key}, nil
	}
	expires, value, ok := strings.Cut(kept, ":")
	until, err := strconv.ParseInt(expires, 10, 64)
	if !ok || err != nil {
		return store.Fact{}, fmt.Errorf("what is kept of fact %q is not a fact", key)
	}
	return store.Fact{Key: key, Value: []byte(value), Until: time.UnixMicro(until)}, nil
}

// News, what is told of a Save, is of each fact the key and what the server keeps, each
// after its length.

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func readNews(news string) ([]store.Fact, error) {
	next := func() (string, bool) {
		n, size := binary.Uvarint([]byte(news[:min(len(news), binary.MaxVarintLen64)]))
		if size <= 0 || n > uint64(len(news)-size) {
			return "", false
		}
		s := news[size:][:n]
		news = news[size:][n:]
		return s, true
	}
	var facts []store.Fact
	for news != "" {
		key, ok := next()
		kept, both := next()
		if !ok || !both {
			return nil, fmt.Errorf("news that cannot be read")
		}
		f, err := decode(key, kept)
		if err != nil {
			return nil, err
		}
		facts = append(facts, f)
	}
	return facts, nil
}
