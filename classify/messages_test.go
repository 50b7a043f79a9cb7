package classify_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/classify"
)

func TestMessagesAreCountedAsAChatCountsThem(t *testing.T) {
	for _, tt := range []struct {
		request bin.Encoder
		n       int
		paid    bool
	}{
		{&tg.MessagesSendMessageRequest{}, 1, false},
		{&tg.MessagesSendMessageRequest{AllowPaidFloodskip: true}, 1, true},
		{&tg.MessagesSendMediaRequest{AllowPaidFloodskip: true}, 1, true},
		{&tg.MessagesSendMultiMediaRequest{MultiMedia: make([]tg.InputSingleMedia, 4)}, 4, false},
		{&tg.MessagesForwardMessagesRequest{ID: make([]int, 7), AllowPaidFloodskip: true}, 7, true},
		{&tg.MessagesForwardMessagesRequest{}, 1, false},
		{&tg.MessagesEditMessageRequest{}, 1, false},
		{&tg.MessagesSendInlineBotResultRequest{}, 1, false},
		{&tg.MessagesDeleteMessagesRequest{ID: make([]int, 7)}, 0, false},
		{&tg.MessagesSetTypingRequest{}, 0, false},
		{&tg.MessagesSendReactionRequest{}, 0, false},
		{&tg.MessagesGetHistoryRequest{}, 0, false},
		{(*tg.MessagesSendMessageRequest)(nil), 1, false},
		{nil, 0, false},
		{&tg.InvokeWithLayerRequest{Query: &tg.MessagesForwardMessagesRequest{ID: make([]int, 3)}}, 3, false},
	} {
		t.Run(fmt.Sprintf("%T", tt.request), func(t *testing.T) {
			n, paid := classify.Messages(tt.request)
			require.Equal(t, tt.n, n)
			require.Equal(t, tt.paid, paid)
		})
	}
}
