package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/quota"
)

// A member may give one award a minute and get three a day, whoever gives them.
var (
	awardsAMinute = quota.Window{Limit: 1, Period: time.Minute}
	awardsADay    = quota.Window{Limit: 3, Period: 24 * time.Hour}
)

// errEnough is why somebody gets no further award.
var errEnough = errors.New("enough awards")

// awards counts the awards that members of a chat give each other.
type awards struct{ limits *quota.Limiter }

// give answers /award NAME. An award that NAME may not get costs the giver nothing.
func (a awards) give(ctx context.Context, m *tg.Message) string {
	name := member(m.Message)
	if name == "" {
		return "Whom? Write /award and a name."
	}
	var got quota.Result
	turn, err := a.limits.Do(ctx, quota.Key("award", "from", chatOf(m), giver(m)), awardsAMinute, func(ctx context.Context) (err error) {
		got, err = a.limits.Charge(ctx, quota.Key("award", "to", chatOf(m), name), awardsADay)
		if err == nil && got.Limited {
			err = errEnough
		}
		return err
	})
	switch {
	case err == errEnough:
		return fmt.Sprintf("%s has had three awards today. The next can be given in %s.", name, wait(got.RetryAfter))
	case err != nil:
		return "Awards cannot be counted right now. Try again later."
	case turn.Limited:
		return fmt.Sprintf("You gave one just now. The next in %s.", wait(turn.RetryAfter))
	}
	return fmt.Sprintf("%s gets an award. %d more today.", name, got.Remaining)
}

// left answers /awards NAME.
func (a awards) left(ctx context.Context, m *tg.Message) string {
	name := member(m.Message)
	if name == "" {
		return "Whose? Write /awards and a name."
	}
	got, err := a.limits.Peek(ctx, quota.Key("award", "to", chatOf(m), name), awardsADay)
	if err != nil {
		return "Awards cannot be counted right now. Try again later."
	}
	return fmt.Sprintf("%s can get %d more awards today.", name, got.Remaining)
}

// member is the name behind a command, without @ and in lower case, as Telegram takes
// names, and "" for what is none.
func member(text string) string {
	words := strings.Fields(text)
	if len(words) < 2 || len(words[1]) > longestName {
		return ""
	}
	return strings.ToLower(strings.TrimPrefix(words[1], "@"))
}

// longestName is twice what Telegram allows, in bytes.
const longestName = 64

// chatOf is the chat of a message, as a part of a key.
func chatOf(m *tg.Message) string { return fmt.Sprint(m.PeerID) }

// giver is who wrote a message: in private, the chat itself.
func giver(m *tg.Message) string {
	if m.FromID != nil {
		return fmt.Sprint(m.FromID)
	}
	return chatOf(m)
}

// wait is a time as people read it.
func wait(d time.Duration) string { return d.Round(time.Second).String() }
