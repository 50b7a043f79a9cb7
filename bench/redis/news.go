package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/weirtg/weir/store"
	"github.com/weirtg/weir/store/redisstore"
)

// news measures how long a fact takes to another process that watches.
func news(ctx context.Context, addr, account string, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	saver, err := redisstore.Open(ctx, "redis://"+addr, account)
	if err != nil {
		return err
	}
	defer saver.Close()
	watcher, err := redisstore.Open(ctx, "redis://"+addr, account)
	if err != nil {
		return err
	}
	defer watcher.Close()
	seen := make(chan time.Time, 1)
	ended := make(chan error, 1)
	go func() { ended <- watcher.Watch(ctx, func(store.Fact) { seen <- time.Now() }) }()

	save := func(n int) (time.Duration, error) {
		began := time.Now()
		f := store.Fact{Key: "flood", Value: []byte(strconv.Itoa(n)), Until: began.Add(time.Minute)}
		if err := saver.Save(ctx, f); err != nil {
			return 0, err
		}
		select {
		case at := <-seen:
			return at.Sub(began), nil
		case err := <-ended:
			return 0, err
		case <-time.After(time.Second): // it has not subscribed yet
			return 0, nil
		}
	}
	var took []time.Duration
	for n := range 500 {
		d, err := save(n)
		if err != nil {
			return err
		}
		if d > 0 {
			took = append(took, d)
		}
	}
	slices.Sort(took)
	_, err = fmt.Fprintf(out, "\na fact reaches another process in %v, p99 %v\n", took[len(took)/2], took[len(took)*99/100])
	return err
}
