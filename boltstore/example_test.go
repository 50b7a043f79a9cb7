package boltstore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/weirtg/weir/boltstore"
	"github.com/weirtg/weir/quota"
)

// Counts that outlive the process.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "weir")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	for run := range 2 {
		s, err := boltstore.Open(filepath.Join(dir, "bot.db"), boltstore.Options{})
		if err != nil {
			panic(err)
		}
		// A disk that is busy may need a second to keep what it has promised.
		limits, err := quota.New(quota.Options{Store: s, Timeout: 5 * time.Second})
		if err != nil {
			panic(err)
		}
		for range 2 {
			got, err := limits.Charge(context.Background(), quota.Key("award", "ann"), quota.Window{Limit: 3, Period: 24 * time.Hour})
			if err != nil {
				panic(err)
			}
			fmt.Println("run", run, "limited:", got.Limited, "left:", got.Remaining)
		}
		if err := limits.Close(); err != nil {
			panic(err)
		}
		if err := s.Close(); err != nil {
			panic(err)
		}
	}
	// Output:
	// run 0 limited: false left: 2
	// run 0 limited: false left: 1
	// run 1 limited: false left: 0
	// run 1 limited: true left: 0
}
