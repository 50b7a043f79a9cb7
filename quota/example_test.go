package quota_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirtg/weir/quota"
)

func ExampleLimiter_Charge() {
	limits, err := quota.New(quota.Options{})
	if err != nil {
		panic(err)
	}
	defer limits.Close()

	// A member can get three awards a day, however many people hand them out.
	perDay := quota.Window{Limit: 3, Period: 24 * time.Hour}
	for range 4 {
		got, err := limits.Charge(context.Background(), quota.Key("award", -1001, "ann"), perDay)
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
	limits, err := quota.New(quota.Options{})
	if err != nil {
		panic(err)
	}
	defer limits.Close()

	award := func(to string) {
		perMinute := quota.Window{Period: time.Minute}
		got, err := limits.Do(context.Background(), quota.Key("award", "bob"), perMinute, func(context.Context) error {
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
	fmt.Println(quota.Key("award", int64(-1001), 42))
	fmt.Println(quota.Key("award", int64(-1001), nil))
	fmt.Println(quota.Key("award", "a:b"), quota.Key("award", "a", "b"))
	// Output:
	// award:-1001:42
	// award:-1001:global
	// award:a\:b award:a:b
}
