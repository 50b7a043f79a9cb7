package store_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/gotd/neo"

	"github.com/weirtg/weir/store"
)

// A store that does not answer is tried again after 100 ms, then after pauses that double. In
// between nobody waits for it.
func ExampleHealth() {
	clock := neo.NewTime(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	health := store.NewHealth(store.HealthOptions{Clock: clock})
	answer := errors.New("connection refused")
	ask := func() {
		attempt, lost := health.Begin()
		if lost != nil {
			fmt.Println("not asked:", lost)
			return
		}
		attempt.End(answer)
		fmt.Println("asked:", answer)
	}
	ask()
	ask()
	clock.Travel(100 * time.Millisecond)
	answer = nil
	ask()
	// Output:
	// asked: connection refused
	// not asked: connection refused
	// asked: <nil>
}
