package floods_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/gotd/td/tgerr"

	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/internal/floods"
)

// One call the whole way: wait, send, say what came of it.
func ExampleTracker() {
	ctx := context.Background()
	tracker := floods.New(floods.Options{})
	send := func(chat int64, request func() error) error {
		call := floods.Call{Method: "messages.sendMessage", Chat: chat}
		pass, err := tracker.Wait(ctx, call, flood.UpTo(5*time.Second).Limit())
		if err != nil {
			return err
		}
		tracker.Start(&pass)
		err = request()
		if n, ok := flood.FromError(err); ok {
			record := tracker.Flooded(pass, n)
			fmt.Println("flooded:", record.Kind, "of the", record.Scope)
			return err
		}
		tracker.Passed(pass)
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
func ExampleTracker_Restore() {
	facts := map[string][]byte{}
	tracker := floods.New(floods.Options{Journal: true})
	call := floods.Call{Method: "contacts.resolveUsername", Reads: true}
	pass, _ := tracker.Wait(context.Background(), call, 0)
	n, _ := flood.Parse(420, "FLOOD_WAIT_86400")
	tracker.Flooded(pass, n)
	for _, record := range tracker.Changes() {
		if record.Until.IsZero() {
			delete(facts, record.Key())
			continue
		}
		facts[record.Key()], _ = json.Marshal(record)
	}

	// After the restart, before the first call:
	tracker = floods.New(floods.Options{Journal: true})
	for _, text := range facts {
		var record flood.Record
		if err := json.Unmarshal(text, &record); err == nil {
			tracker.Restore(record)
		}
	}
	_, err := tracker.Wait(context.Background(), call, flood.Default.Limit())
	if wait, ok := errors.AsType[*flood.WaitError](err); ok {
		fmt.Println(wait.Method, "may go in", wait.Wait.Round(time.Hour))
	}
	// Output: contacts.resolveUsername may go in 24h0m0s
}
