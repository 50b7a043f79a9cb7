package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gotd/neo"

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

	err = limiter.Update(map[ratelimit.Gate]ratelimit.Change{media: ratelimit.Rate(2)})
	fmt.Println(media.Stats().Limit, err)

	err = limiter.Update(map[ratelimit.Gate]ratelimit.Change{media: ratelimit.Rate(-1)})
	fmt.Println(err)
	// Output:
	// 2/s burst 10 <nil>
	// media.rate is -1: want a number from 0 (paused) to 1000000000, in tokens a second
}

// Every chat has a gate of its own, and all chats share another.
func ExampleLimiter_NewGates() {
	limiter := ratelimit.New(ratelimit.Options{})
	chats, err := limiter.NewGates("chat", ratelimit.Window{Limit: 2, Period: time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	global, err := limiter.NewGate("global", ratelimit.Limit{Rate: 30, Burst: 30})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, chat := range []uint64{1, 1, 2, 1} {
		fmt.Println(chat, limiter.Try(1, chats.Key(chat), global) == nil)
	}
	// Output:
	// 1 true
	// 1 true
	// 2 true
	// 1 false
}

// A day passes in no time on a clock that is moved by hand.
func ExampleOptions() {
	clock := neo.NewTime(time.Date(2026, time.March, 1, 9, 0, 0, 0, time.UTC))
	limiter := ratelimit.New(ratelimit.Options{Clock: clock})
	award, err := limiter.NewGate("award", ratelimit.Window{Limit: 3, Period: 24 * time.Hour})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 4 {
		fmt.Println(clock.Now().Format("Mon 15:04"), limiter.Try(1, award) == nil)
		clock.Travel(8*time.Hour - time.Minute)
	}
	fmt.Println(clock.Now().Format("Mon 15:04"), limiter.Try(1, award) == nil)
	// Output:
	// Sun 09:00 true
	// Sun 16:59 true
	// Mon 00:58 true
	// Mon 08:57 false
	// Mon 16:56 true
}
