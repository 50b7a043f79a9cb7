package learn_test

import (
	"fmt"
	"time"

	"github.com/weirtg/weir/internal/learn"
)

// A bot is configured for 30 calls a second. After a second the server floods it, once.
func Example() {
	rate, err := learn.New(30, learn.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	send := func(seconds float64) (last learn.Call) {
		for end := now.Add(time.Duration(seconds * float64(time.Second))); now.Before(end); {
			now = now.Add(time.Duration(float64(time.Second) / rate.PerSecond()))
			last = rate.Sent(now, 1)
		}
		return last
	}

	last := send(1)
	fmt.Printf("at the ceiling: %.1f/s\n", rate.PerSecond())
	rate.Flooded(last)
	fmt.Printf("after a flood:  %.1f/s, and a burst of 40 is %.0f\n", rate.PerSecond(), rate.Burst(40))
	send(4)
	fmt.Printf("4 s of use:     %.1f/s\n", rate.PerSecond())
	now = now.Add(time.Hour)
	fmt.Printf("an idle hour:   %.1f/s\n", rate.PerSecond())
	send(50)
	fmt.Printf("50 s of use:    %.1f/s\n", rate.PerSecond())
	// Output:
	// at the ceiling: 30.0/s
	// after a flood:  14.3/s, and a burst of 40 is 1
	// 4 s of use:     20.4/s
	// an idle hour:   20.4/s
	// 50 s of use:    30.0/s
}
