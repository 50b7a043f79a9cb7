package client

import (
	"errors"
	"fmt"

	"github.com/gotd/td/telegram"

	"github.com/weirtg/weir/dispatch"
	"github.com/weirtg/weir/invoke"
)

// Options of a [Client]. The zero value is ready for use.
type Options struct {
	// Options are the limits of the account, what is kept of it, and how its calls wait.
	invoke.Options

	// Telegram is everything that gotd's client takes: session storage, update
	// handler, data centres, resolver, device and so on. Its Middlewares stay
	// outside of the choke point, so what they send again is limited again. Where
	// its Logger is nil, gotd's warnings and errors go to Logger above. Its Resolver is
	// called only when no flood or -429 forbids a new connection.
	Telegram telegram.Options

	// Updates bound the update handlers that run and wait. They are called on goroutines
	// of their own, in order inside a chat and chats side by side; see package dispatch.
	// Where its Logger is nil, Logger above is used. Its Block must be false, because a
	// handler would hold up the connection. An UpdateHandler that is a *dispatch.Dispatcher
	// already is used as it is, and the program closes it: another client may use it too.
	Updates dispatch.Options
}

// checkUpdates refuses bounds with which handlers would hold up the connection.
func checkUpdates(opts dispatch.Options) error {
	if opts.Block {
		return errors.New("Updates.Block is true: want false, since a handler must not hold up the connection")
	}
	return nil
}

// checkApp refuses credentials that Telegram would, without repeating the hash.
func checkApp(appID int, appHash string) error {
	var errs []error
	if appID <= 0 {
		errs = append(errs, fmt.Errorf("app id is %d: want the number that my.telegram.org/apps gives", appID))
	}
	if appHash == "" {
		errs = append(errs, errors.New("app hash is empty: want the text that my.telegram.org/apps gives"))
	}
	return errors.Join(errs...)
}
