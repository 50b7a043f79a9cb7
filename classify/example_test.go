package classify_test

import (
	"fmt"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/classify"
)

func Example() {
	c, err := classify.New(classify.Options{})
	if err != nil {
		panic(err)
	}
	call := c.Call(&tg.InvokeWithoutUpdatesRequest{
		Query: &tg.MessagesUpdatePinnedMessageRequest{
			Peer: &tg.InputPeerChannel{ChannelID: 1234567890},
			ID:   7,
		},
	})
	fmt.Println(call.Method, call.Category, call.Peer)
	// Output: messages.updatePinnedMessage admin -1001234567890
}

// A program that reads histories in bulk and replaces photos by editing knows
// more of its calls than their names tell.
func ExampleOptions() {
	c, err := classify.New(classify.Options{
		Methods: map[string]classify.Category{
			"messages.getHistory": classify.Bulk,
		},
		Func: func(req bin.Encoder) (classify.Category, bool) {
			edit, ok := req.(*tg.MessagesEditMessageRequest)
			return classify.Media, ok && edit.Media != nil
		},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(c.Call(&tg.MessagesGetHistoryRequest{}).Category)
	fmt.Println(c.Call(&tg.MessagesEditMessageRequest{Media: &tg.InputMediaUploadedPhoto{}}).Category)
	fmt.Println(c.Call(&tg.MessagesEditMessageRequest{Message: "text"}).Category)
	// Output:
	// bulk
	// media
	// message
}

func ExampleClassifier_Name() {
	c, err := classify.New(classify.Options{})
	if err != nil {
		panic(err)
	}
	for _, method := range []string{
		"messages.getStickerSet",
		"messages.sendMultiMedia",
		"channels.editBanned",
		"messages.sendHologramVideo", // no such function, yet
	} {
		fmt.Println(method, c.Name(method), classify.Known(method))
	}
	// Output:
	// messages.getStickerSet query true
	// messages.sendMultiMedia media true
	// channels.editBanned admin true
	// messages.sendHologramVideo media false
}

func ExampleParseCategory() {
	_, err := classify.ParseCategory("messages")
	fmt.Println(err)
	// Output: unknown category "messages": want one of message, media, query, admin, bulk, account, global
}
