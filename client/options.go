package client

import (
	"errors"
	"fmt"

	"github.com/gotd/td/telegram"

	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/keyed"
)

// Options of a [Client]. The zero value is ready for use.
type Options struct {
	// Options are the limits of the account, what is kept of it, and how its calls wait.
	invoke.Options

	// Telegram is everything that gotd's client takes: session storage, update
	// handler, data centres, resolver, device and so on. Its Middlewares stay
	// outside of the choke point, so what they send again is limited again. Where
	// its Logger is nil, gotd's warnings and errors go to Logger above. Its Resolver is called only when
	// no flood or -429 forbids a new connection.
	Telegram telegram.Options

	// Keyed counts what the program allows its users, see [Client.Keyed]. nil counts in
	// memory. The client does not close it.
	Keyed *keyed.Limiter
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
