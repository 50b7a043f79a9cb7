package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/weirtg/weir/redisstore"
	"github.com/weirtg/weir/store"
)

// news measures how long a fact takes to another process that watches.
func news(ctx context.Context, addr, account string, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	saver, err := redisstore.Open("redis://"+addr, account)
	if err != nil {
		return err
	}
	defer saver.Close()
	watcher, err := redisstore.Open("redis://"+addr, account)
	if err != nil {
		return err
	}
	defer watcher.Close()
	type sight struct {
		value string
		at    time.Time
	}
	seen := make(chan sight, 1000)
	ended := make(chan error, 1)
	go func() {
		ended <- watcher.Watch(ctx, func(f store.Fact) { seen <- sight{string(f.Value), time.Now()} })
	}()

	save := func(n int) (time.Duration, error) {
		began := time.Now()
		value := strconv.Itoa(n)
		f := store.Fact{Key: "flood", Value: []byte(value), Until: began.Add(time.Minute)}
		if err := saver.Save(ctx, f); err != nil {
			return 0, err
		}
		for {
			select {
			case s := <-seen:
				if s.value == value { // and not what was saved before it had subscribed
					return s.at.Sub(began), nil
				}
			case err := <-ended:
				return 0, err
			}
		}
	}
	var took []time.Duration
	for n := range 500 {
		d, err := save(n)
		if err != nil {
			return err
		}
		took = append(took, d)
	}
	slices.Sort(took)
	_, err = fmt.Fprintf(out, "\na fact reaches another process in %v, p99 %v\n", took[len(took)/2], took[len(took)*99/100])
	return err
}
