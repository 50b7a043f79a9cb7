package flood

// Scope says how far a flood reaches. Each is within one data centre.
type Scope uint8

const (
	// Chat is one method in one chat; for slow mode, everything that sends to
	// the chat, see [HeldBySlowMode].
	Chat Scope = iota + 1
	// Method is one method in all chats.
	Method
	// Account is all methods that read, or all that do not.
	Account
)

// String returns "chat", "method" or "account".
func (s Scope) String() string {
	switch s {
	case Chat:
		return "chat"
	case Method:
		return "method"
	case Account:
		return "account"
	default:
		return "unknown"
	}
}

// HeldBySlowMode reports whether slow mode of a chat holds the method: those that send
// messages are held, edits and reads are not.
func HeldBySlowMode(method string) bool {
	switch method {
	case "messages.sendMessage", "messages.sendMedia", "messages.sendMultiMedia",
		"messages.forwardMessages", "messages.sendInlineBotResult":
		return true
	}
	return false
}
