package invoke_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"

	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/invoke"
)

// A program that uses gotd already adds one line to its options.
func Example() {
	options := telegram.Options{
		Middlewares: []telegram.Middleware{invoke.Must(invoke.Options{})},
	}
	client := telegram.NewClient(1, "hash", options)
	_ = client.API() // every call of it passes the choke point now
	// Output:
}

// A flood that is longer than the threshold is an error that tells what it is about.
func ExampleWithThreshold() {
	telegramSays := telegram.InvokeFunc(func(context.Context, bin.Encoder, bin.Decoder) error {
		return tgerr.New(420, "FLOOD_WAIT_120")
	})
	api := tg.NewClient(invoke.Must(invoke.Options{}).Handle(telegramSays))

	ctx := invoke.WithThreshold(context.Background(), flood.UpTo(30*time.Second))
	_, err := api.MessagesSendMessage(ctx, &tg.MessagesSendMessageRequest{
		Peer: &tg.InputPeerUser{UserID: 42}, Message: "hello",
	})

	if wait, ok := errors.AsType[*flood.WaitError](err); ok {
		fmt.Println(wait.Method, wait.Chat, wait.Wait.Round(time.Second), wait.Scope, wait.Reason)
	}
	// Output: messages.sendMessage 42 2m0s chat longer than the threshold
}
