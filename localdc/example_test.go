package localdc_test

import (
	"context"
	"fmt"
	"time"

	"github.com/gotd/td/telegram"
	"github.com/gotd/td/telegram/message"
	"github.com/gotd/td/tgerr"

	"github.com/weirtg/weir/localdc"
)

// A client that ignores limits is told so.
func Example() {
	cloud, err := localdc.New(localdc.Options{
		Limits: localdc.Limits{Chat: localdc.Rate{PerSecond: 0.01, Burst: 2}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = cloud.Close() }()
	alice := cloud.AddUser("alice")

	client := telegram.NewClient(1, "hash", cloud.ClientOptions())
	err = client.Run(context.Background(), func(ctx context.Context) error {
		if _, err := client.Auth().Bot(ctx, localdc.DemoBotToken); err != nil {
			return err
		}
		chat := message.NewSender(client.API()).To(alice.InputPeer())
		for _, text := range []string{"one", "two", "three"} {
			if _, err := chat.Text(ctx, text); tgerr.Is(err, tgerr.ErrFloodWait) {
				fmt.Println(text, "was flooded")
			} else if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	for _, m := range alice.Messages() {
		fmt.Println("alice has", m.Message)
	}
	total := cloud.Record().Chats[alice.MarkedID()]
	fmt.Println(total.Messages, "sent,", total.Floods, "flooded")
	// Output:
	// three was flooded
	// alice has one
	// alice has two
	// 2 sent, 1 flooded
}

// A flood of one method in one chat, and what ran into it.
func ExampleCloud_Flood() {
	cloud, err := localdc.New(localdc.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = cloud.Close() }()
	alice, bob := cloud.AddUser("alice"), cloud.AddUser("bob")

	scope := localdc.Scope{Method: "messages.sendMessage", Chat: alice.MarkedID()}
	if err := cloud.Flood(scope, time.Hour); err != nil {
		fmt.Println(err)
		return
	}
	client := telegram.NewClient(1, "hash", cloud.ClientOptions())
	err = client.Run(context.Background(), func(ctx context.Context) error {
		if _, err := client.Auth().Bot(ctx, localdc.DemoBotToken); err != nil {
			return err
		}
		sender := message.NewSender(client.API())
		for _, user := range []*localdc.User{alice, alice, bob} {
			if _, err := sender.To(user.InputPeer()).Text(ctx, "hello"); err != nil && !tgerr.Is(err, tgerr.ErrFloodWait) {
				return err
			}
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	record := cloud.Record()
	for _, c := range record.Floods() {
		fmt.Println("flooded in the chat with", c.Chat, "and inside a known flood:", c.Inside)
	}
	fmt.Println(len(record.Inside(0)), "call should not have been sent")
	// Output:
	// flooded in the chat with 1000001 and inside a known flood: false
	// flooded in the chat with 1000001 and inside a known flood: true
	// 1 call should not have been sent
}
