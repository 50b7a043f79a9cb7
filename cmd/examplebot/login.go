package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"

	"github.com/weirtg/weir/flood"
)

// login logs in, unless the session is: a login at each start is itself limited.
func (b *bot) login(ctx context.Context, token string) (*tg.User, error) {
	status, err := b.client.Auth().Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("log in: %w", err)
	}
	if status.Authorized {
		return status.User, nil
	}
	if _, err = b.client.Auth().Bot(ctx, token); err != nil {
		return nil, loginError(err)
	}
	self, err := b.client.Self(ctx)
	if err != nil {
		return nil, fmt.Errorf("log in: %w", err)
	}
	return self, nil
}

// loginError says what to do about a login that was refused.
func loginError(err error) error {
	if wait, ok := errors.AsType[*flood.WaitError](err); ok {
		return fmt.Errorf("log in: Telegram wants %v to pass before this bot logs in again, until %s. Do not start it before that, and keep its session file: with it, no login is needed: %w",
			wait.Wait.Round(time.Second), wait.Until.Format(time.DateTime), err)
	}
	switch {
	case tgerr.Is(err, "ACCESS_TOKEN_INVALID", "ACCESS_TOKEN_EXPIRED"):
		return fmt.Errorf("log in: Telegram refuses the bot token: ask @BotFather for the one in force: %w", err)
	case tgerr.Is(err, "API_ID_INVALID"):
		return fmt.Errorf("log in: the app id and the app hash do not belong together: see my.telegram.org/apps: %w", err)
	}
	return fmt.Errorf("log in: %w", err)
}
