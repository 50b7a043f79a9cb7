package localdc_test

import (
	"context"
	"fmt"

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
