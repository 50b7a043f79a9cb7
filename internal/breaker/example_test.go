package breaker_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/gotd/td/tgerr"

	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/internal/breaker"
)

func Example() {
	b, err := breaker.New(breaker.Options{Limit: 2, Period: time.Hour})
	if err != nil {
		fmt.Println(err)
		return
	}
	requests := 0
	send := func(chat int64) error {
		call := breaker.Call{Method: "messages.sendMessage", Chat: chat}
		if err := b.Check(call); err != nil {
			return err // not sent
		}
		requests++
		err, tripped := b.Refused(call, tgerr.New(400, "PEER_FLOOD"))
		if tripped {
			fmt.Println("tripped by chat", chat)
		}
		return err
	}
	for chat := range int64(4) {
		refused, _ := errors.AsType[*flood.PermanentError](send(chat))
		fmt.Println(chat, refused.Kind, "local:", refused.Local, "PEER_FLOOD:", tgerr.Is(refused, "PEER_FLOOD"))
	}
	fmt.Println(requests, "requests")
	// Output:
	// 0 spam_limited local: false PEER_FLOOD: true
	// tripped by chat 1
	// 1 spam_limited local: false PEER_FLOOD: true
	// 2 spam_limited local: true PEER_FLOOD: true
	// 3 spam_limited local: true PEER_FLOOD: true
	// 2 requests
}
