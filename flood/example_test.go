package flood_test

import (
	"fmt"
	"time"

	"github.com/gotd/td/tgerr"

	"github.com/weirtg/weir/flood"
)

func ExampleFromError() {
	err := fmt.Errorf("search posts: %w", tgerr.New(420, "FLOOD_WAIT_3600_OR_STARS_10"))
	if n, ok := flood.FromError(err); ok {
		fmt.Println(n.Kind, n.Wait, n.Stars, n.Waitable())
	}
	// Output: wait_or_stars 1h0m0s 10 false
}

func ExampleThreshold() {
	var perCall flood.Threshold // not set
	whole := flood.UpTo(30 * time.Second)
	fmt.Println(perCall, perCall.Or(whole), flood.Never.Or(whole))
	fmt.Println(perCall.UnmarshalText([]byte("0s")))
	// Output:
	// default 30s never
	// threshold "0s": a duration has to be above zero; to sit out no wait, say "never"
}
