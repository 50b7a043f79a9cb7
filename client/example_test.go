package client_test

import (
	"context"
	"fmt"

	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/client"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/localdc"
	"github.com/weirtg/weir/ratelimit"
)

// A bot logs in to a data centre on loopback and sends a message. Without the
// Telegram field of the options it would do so on Telegram itself.
func Example() {
	cloud, err := localdc.New(localdc.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cloud.Close()
	alice := cloud.AddUser("alice")

	c, err := client.New(1, "hash", client.Options{
		Telegram: cloud.ClientOptions(),
		Options: invoke.Options{
			RateLimits: map[classify.Category]ratelimit.Change{
				classify.Message: ratelimit.Rate(10), // the burst stays at 30
			},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = c.Run(context.Background(), func(ctx context.Context) error {
		if _, err := c.Auth().Bot(ctx, localdc.DemoBotToken); err != nil {
			return err
		}
		_, err := c.API().MessagesSendMessage(ctx, &tg.MessagesSendMessageRequest{
			Peer: alice.InputPeer(), Message: "hello", RandomID: 1,
		})
		return err
	})
	fmt.Println(err)
	for _, message := range alice.Messages() {
		fmt.Println(message.Message)
	}
	// Output:
	// <nil>
	// hello
}

// Optional work takes a permit, or is skipped. The call that the permit is put on is
// paid for.
func ExampleClient_TryAcquire() {
	c, err := client.New(1, "hash", client.Options{
		Options: invoke.Options{
			RateLimits: map[classify.Category]ratelimit.Change{
				classify.Message: ratelimit.Rate(0.5).Burst(1),
			},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	typing := func(ctx context.Context) {
		permit, err := c.TryAcquire(classify.Message)
		if err != nil {
			fmt.Println("skipped:", err)
			return
		}
		defer permit.Return() // for the case that the call below is not made
		ctx = invoke.WithPermit(ctx, permit)
		_ = ctx // c.API().MessagesSetTyping(ctx, …)
		fmt.Println("typing")
	}
	typing(context.Background())
	if err := c.UpdateLimits(map[classify.Category]ratelimit.Change{classify.Message: ratelimit.Rate(0)}); err != nil {
		fmt.Println(err)
	}
	typing(context.Background())
	// Output:
	// typing
	// skipped: gate message (0/s burst 1): rejected: paused
}
