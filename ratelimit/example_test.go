package ratelimit_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirtg/weir/ratelimit"
)

func Example() {
	limiter := ratelimit.New(ratelimit.Options{})
	message, err := limiter.NewGate("message", ratelimit.Limit{Rate: 20, Burst: 30})
	if err != nil {
		fmt.Println(err)
		return
	}
	global, err := limiter.NewGate("global", ratelimit.Limit{Rate: 30, Burst: 40})
	if err != nil {
		fmt.Println(err)
		return
	}

	for range 3 {
		if err := limiter.Acquire(context.Background(), 1, message, global); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println("sent 3")

	err = limiter.Acquire(context.Background(), 31, message, global)
	fmt.Println(errors.Is(err, ratelimit.ErrImpossible))
	// Output:
	// sent 3
	// true
}

func ExampleLimiter_TryAcquire() {
	limiter := ratelimit.New(ratelimit.Options{})
	typing, err := limiter.NewGate("typing", ratelimit.Limit{Rate: 1, Burst: 1})
	if err != nil {
		fmt.Println(err)
		return
	}

	for range 2 {
		permit, err := limiter.TryAcquire(1, typing)
		if err != nil {
			fmt.Println("skipped")
			continue
		}
		defer permit.Return() // does nothing once the permit is used
		fmt.Println("typing", permit.Use())
	}
	// Output:
	// typing true
	// skipped
}

func ExampleLimiter_Update() {
	limiter := ratelimit.New(ratelimit.Options{})
	media, err := limiter.NewGate("media", ratelimit.Limit{Rate: 5, Burst: 10})
	if err != nil {
		fmt.Println(err)
		return
	}

	err = limiter.Update(map[*ratelimit.Gate]ratelimit.Change{media: ratelimit.Rate(2)})
	fmt.Println(media.Stats().Limit, err)

	err = limiter.Update(map[*ratelimit.Gate]ratelimit.Change{media: ratelimit.Rate(-1)})
	fmt.Println(err)
	// Output:
	// 2/s burst 10 <nil>
	// media.rate is -1: want a number from 0 (paused) to 1e+09, in tokens a second
}
