package redisstore_test

import (
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/weirtg/weir/ratelimit"
	"github.com/weirtg/weir/redisstore"
)

// Two processes of one account share a limit of two calls.
func Example() {
	server, err := miniredis.Run() // a Redis server for tests
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()

	for process := range 2 {
		s, err := redisstore.Open("redis://"+server.Addr(), "my bot")
		if err != nil {
			fmt.Println(err)
			return
		}
		defer s.Close()

		limiter := ratelimit.New(ratelimit.Options{Shared: s})
		gate, err := limiter.NewGate("global", ratelimit.Window{Limit: 2, Period: time.Hour})
		if err != nil {
			fmt.Println(err)
			return
		}
		for limiter.Try(1, gate) == nil {
			fmt.Println("process", process, "calls")
			if process == 0 {
				break
			}
		}
	}
	// Output:
	// process 0 calls
	// process 1 calls
}
