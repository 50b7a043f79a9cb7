package keyed_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirtg/weir/keyed"
)

func ExampleLimiter_Charge() {
	limits, err := keyed.New(keyed.Options{})
	if err != nil {
		panic(err)
	}
	defer limits.Close()

	// A member can get three awards a day, however many people hand them out.
	perDay := keyed.Window{Limit: 3, Period: 24 * time.Hour}
	for range 4 {
		got, err := limits.Charge(context.Background(), keyed.Key("award", -1001, "ann"), perDay)
		switch {
		case err != nil:
			fmt.Println("try again later:", err)
		case got.Limited:
			fmt.Println("no more awards, again in", got.RetryAfter.Round(time.Hour))
		default:
			fmt.Println("awarded,", got.Remaining, "left")
		}
	}
	// Output:
	// awarded, 2 left
	// awarded, 1 left
	// awarded, 0 left
	// no more awards, again in 24h0m0s
}

// A gate in front of a handler: an /award a minute for each member. One that fails
// does not count.
func ExampleLimiter_Do() {
	limits, err := keyed.New(keyed.Options{})
	if err != nil {
		panic(err)
	}
	defer limits.Close()

	award := func(to string) {
		perMinute := keyed.Window{Period: time.Minute}
		got, err := limits.Do(context.Background(), keyed.Key("award", "bob"), perMinute, func(context.Context) error {
			if to == "" {
				return errors.New("award whom?")
			}
			fmt.Println(to, "has an award")
			return nil
		})
		switch {
		case err != nil:
			fmt.Println(err)
		case got.Limited:
			fmt.Println("not so fast")
		}
	}
	award("")
	award("ann")
	award("cid")
	// Output:
	// award whom?
	// ann has an award
	// not so fast
}

func ExampleKey() {
	fmt.Println(keyed.Key("award", int64(-1001), 42))
	fmt.Println(keyed.Key("award", int64(-1001), nil))
	fmt.Println(keyed.Key("award", "a:b"), keyed.Key("award", "a", "b"))
	// Output:
	// award:-1001:42
	// award:-1001:global
	// award:a\:b award:a:b
}
