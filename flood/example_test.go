package flood_test

import (
	"context"
	"encoding/json"
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

// What one process met, the next one knows. A map stands for the store.
func ExampleBook_Restore() {
	store := map[string][]byte{}
	book := flood.NewBook(flood.Options{Journal: true})
	call := flood.Call{Method: "contacts.resolveUsername", Reads: true}
	pass, _ := book.Enter(context.Background(), call, 0)
	n, _ := flood.Parse(420, "FLOOD_WAIT_86400")
	book.Flooded(pass, n)
	for _, record := range book.Changes() {
		if record.Until.IsZero() {
			delete(store, record.Key())
			continue
		}
		store[record.Key()], _ = json.Marshal(record)
	}

	// After the restart, before the first call:
	book = flood.NewBook(flood.Options{Journal: true})
	for _, text := range store {
		var record flood.Record
		if err := json.Unmarshal(text, &record); err == nil {
			book.Restore(record)
		}
	}
	_, err := book.Enter(context.Background(), call, flood.Default.Limit())
	if wait, ok := errors.AsType[*flood.WaitError](err); ok {
		fmt.Println(wait.Method, "may go in", wait.Wait.Round(time.Hour))
	}
	// Output: contacts.resolveUsername may go in 24h0m0s
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
