package flood_test

import (
	"context"
	"errors"
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

// One call the whole way: enter, send, say what came of it.
func ExampleBook() {
	ctx := context.Background()
	book := flood.NewBook(flood.Options{})
	send := func(chat int64, request func() error) error {
		call := flood.Call{Method: "messages.sendMessage", Chat: chat}
		pass, err := book.Enter(ctx, call, flood.UpTo(5*time.Second).Limit())
		if err != nil {
			return err
		}
		book.Sent(&pass)
		err = request()
		if n, ok := flood.FromError(err); ok {
			record := book.Flooded(pass, n)
			fmt.Println("flooded:", record.Kind, "of the", record.Scope)
			return err
		}
		book.Passed(pass)
		return err
	}

	_ = send(7, func() error { return tgerr.New(420, "FLOOD_WAIT_300") })

	err := send(7, func() error { panic("not reached: the flood is known") })
	var wait *flood.WaitError
	if errors.As(err, &wait) {
		fmt.Println("not sent:", wait.Method, wait.Chat, wait.Wait.Round(time.Minute))
	}
	fmt.Println("another chat:", send(8, func() error { return nil }))

	// Output:
	// flooded: flood_wait of the chat
	// not sent: messages.sendMessage 7 5m0s
	// another chat: <nil>
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
