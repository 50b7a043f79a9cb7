package classify

import (
	"github.com/gotd/td/bin"
	"github.com/gotd/td/tg"
)

// Messages returns how many messages the request, taken out of its wrappers, puts
// into its chat or changes there, and whether it offers to pay for passing the limit
// of a broadcast (allow_paid_floodskip). Telegram's limits for a chat count what is
// sent, forwarded and edited, an album or a forward by the message; deletes, pins,
// reactions and typing are not counted. It is 0 for everything else.
func Messages(req bin.Encoder) (n int, paid bool) {
	// The fields are read by themselves: gotd sets the flags that its getters look at
	// when a request is encoded.
	switch r := Unwrap(req).(type) {
	case *tg.MessagesSendMessageRequest:
		return 1, deref(r).AllowPaidFloodskip
	case *tg.MessagesSendMediaRequest:
		return 1, deref(r).AllowPaidFloodskip
	case *tg.MessagesSendMultiMediaRequest:
		return max(1, len(deref(r).MultiMedia)), deref(r).AllowPaidFloodskip
	case *tg.MessagesForwardMessagesRequest:
		return max(1, len(deref(r).ID)), deref(r).AllowPaidFloodskip
	case *tg.MessagesSendQuickReplyMessagesRequest:
		return max(1, len(deref(r).ID)), false
	case *tg.MessagesSendScheduledMessagesRequest:
		return max(1, len(deref(r).ID)), false
	case *tg.MessagesEditMessageRequest, *tg.MessagesSendInlineBotResultRequest:
		return 1, false
	}
	return 0, false
}
