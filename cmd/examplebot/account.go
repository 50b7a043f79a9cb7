package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gotd/td/session"
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/telegram/dcs"
	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/client"
	"github.com/weirtg/weir/config"
)

// account is the bot on Telegram, until ctx is done.
type account struct {
	settings
	cfg config.Config
	// base is where Telegram is: the zero value is Telegram's own.
	base telegram.Options
}

// accountReport is what the bot did.
type accountReport struct {
	Seconds    float64 `json:"seconds"`    // how long it ran
	Answered   int64   `json:"answered"`   // messages
	Unanswered int64   `json:"unanswered"` // messages whose answer failed, or was cut off at the end
	traffic
}

func (a account) run(ctx context.Context) (report, error) {
	storage := &client.SessionFile{Path: a.cfg.SessionFile}
	if err := checkSession(ctx, storage); err != nil {
		return nil, err
	}
	t := a.base
	t.SessionStorage = storage
	if a.cfg.DC != 0 {
		t.DC = a.cfg.DC
	}
	if a.cfg.TestDC {
		t.DCList = dcs.Test()
	}
	b, stop, err := a.start(ctx, a.cfg, t)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	err = b.run(ctx, a.cfg.BotToken.Reveal(), func(ctx context.Context, self *tg.User) error {
		fmt.Fprintf(a.out, "@%s is online. Ctrl-C ends it.\n", self.Username)
		<-ctx.Done()
		return nil
	})
	err = errors.Join(err, stop())
	if err != nil && !b.loggedIn.Load() {
		return nil, err // there is nothing to report
	}
	return accountReport{
		Seconds:    seconds(time.Since(start)),
		Answered:   b.count.answered.Load(),
		Unanswered: b.count.unanswered.Load(),
		traffic:    b.traffic(a.tally),
	}, err
}

// checkSession refuses a session that cannot be read or kept, before a login is spent
// on it.
func checkSession(ctx context.Context, f *client.SessionFile) error {
	_, err := f.LoadSession(ctx)
	if errors.Is(err, session.ErrNotFound) {
		return nil
	}
	return err
}

func (r accountReport) text(w io.Writer) {
	fmt.Fprintf(w, "Answered %d messages in %.0f s, %d not.\n", r.Answered, r.Seconds, r.Unanswered)
	r.traffic.text(w, int(r.Answered))
}
