package localdc_test

import (
	"context"
	"testing"

	"github.com/gotd/td/telegram"
	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/localdc"
)

// BenchmarkSend is a whole sendMessage over loopback, one at a time, with
// limits in force that it does not reach.
func BenchmarkSend(b *testing.B) {
	cloud, err := localdc.New(localdc.Options{
		Limits: localdc.Limits{Account: localdc.Rate{PerSecond: 1e6, Burst: 1e6}, Chat: localdc.Rate{PerSecond: 1e6, Burst: 1e6}},
	})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = cloud.Close() }()
	alice := cloud.AddUser("alice")
	client := telegram.NewClient(1, "hash", cloud.ClientOptions())
	if err := client.Run(context.Background(), func(ctx context.Context) error {
		if _, err := client.Auth().Bot(ctx, localdc.DemoBotToken); err != nil {
			return err
		}
		random := int64(0)
		for b.Loop() {
			random++
			if _, err := client.API().MessagesSendMessage(ctx, &tg.MessagesSendMessageRequest{
				Peer: alice.InputPeer(), Message: "hello", RandomID: random,
			}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		b.Fatal(err)
	}
}
