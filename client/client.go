package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/gotd/log"
	"github.com/gotd/log/logzap"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/telegram/auth"
	"github.com/gotd/td/telegram/auth/qrlogin"
	"github.com/gotd/td/telegram/dcs"
	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/dispatch"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/ratelimit"
)

// Client is a Telegram client with a limiter. Make one with [New]. It is safe for
// concurrent use.
type Client struct {
	telegram   *telegram.Client
	choke      *invoke.Middleware
	updates    *dispatch.Dispatcher // nil without a handler
	endUpdates func()               // nil without one of the client's own
	conn       *connection
	self       *self
	allowCDN   bool
	ran        atomic.Bool
}

// New returns a client that is not connected yet; see [Client.Run]. The error names
// everything that is wrong with the arguments, and never repeats appHash.
func New(appID int, appHash string, opts Options) (*Client, error) {
	choke, err := invoke.New(opts.Options)
	if err := errors.Join(checkApp(appID, appHash), checkUpdates(opts.Updates), err); err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	t := opts.Telegram
	c := &Client{
		choke: choke, conn: newConnection(t.Clock, opts.Logger, choke.SetOnline), self: newSelf(choke.Limiter()), allowCDN: t.AllowCDN,
	}
	c.conn.watch(&t)
	t.Middlewares = slices.Clone(t.Middlewares)
	if t.UpdateHandler != nil {
		c.dispatchUpdates(&t, opts)
	}
	// The choke point is inside of the program's middlewares, so that it sees what they send again.
	t.Middlewares = slices.Concat(
		[]telegram.Middleware{telegram.MiddlewareFunc(answerProbes)},
		t.Middlewares,
		[]telegram.Middleware{
			telegram.MiddlewareFunc(c.learningDC), telegram.MiddlewareFunc(c.self.learning), telegram.MiddlewareFunc(noteExports),
			choke, telegram.MiddlewareFunc(c.noteLost),
		},
	)
	if t.Resolver == nil {
		t.Resolver = dcs.DefaultResolver()
	}
	dial := &dialer{to: t.Resolver, choke: choke, conn: c.conn, clock: c.conn.clock}
	t.Resolver = dial
	logger := &tap{Logger: t.Logger, dial: dial}
	if t.Logger == nil {
		logger.Logger, logger.muted = log.Nop, true
		if opts.Logger != nil {
			// Below warnings, gotd logs parts of the session.
			quiet := max(zap.WarnLevel, opts.Logger.Level()) // zap complains of a level that is not an increase
			logger.Logger = logzap.New(opts.Logger.WithOptions(zap.IncreaseLevel(quiet)))
		}
	}
	t.Logger = logger
	t.OnTransfer = c.chokeTransfer(t.OnTransfer)
	c.telegram = telegram.NewClient(appID, appHash, t)
	return c, nil
}

// learnDC tells the limiter which data centre the account lives in. It looks at each
// call, for gotd says that a connection is ready before it has stored what it learned,
// the number of the data centre included.
func (c *Client) learnDC() {
	if dc := c.telegram.Config().ThisDC; dc != 0 {
		c.choke.Limiter().SetDC(dc)
	}
}

// learningDC is a middleware that does so.
func (c *Client) learningDC(next tg.Invoker) telegram.InvokeFunc {
	return func(ctx context.Context, input bin.Encoder, output bin.Decoder) error {
		c.learnDC()
		return next.Invoke(ctx, input, output)
	}
}

// Run connects and calls f, and returns when f has returned, ctx is done or the
// connection has failed for good. It returns f's error, wrapped. A client runs once; a
// second Run is an error.
//
// gotd tries to connect again without end. The Logger gets the cause, one line for each in
// a while, and a line when there is a connection again. A ctx that is cancelled after f was
// called is no error. One that is done before, because there never was a connection, is
// one: it matches [ErrNeverConnected], ctx.Err() and the cause of the last failure. A program
// that takes context.Canceled for a normal end asks for ErrNeverConnected first.
//
// The first request of each connection (help.getConfig) can be flooded too. A flood within
// the threshold is sat out, and nothing is sent into it. One above the threshold ends Run
// with a [*flood.WaitError] if it is the main connection's; a pool waits.
//
// Run ends the contexts of the update handlers and returns when they have returned.
// Updates that still wait for a handler are dropped. It does not wait for the handlers of a
// Dispatcher that the program made, whose Close does.
//
// As soon as ctx is done, every call that waits in the choke point ends with
// [invoke.ErrClosed], whatever context it has, and so does every call after Run. A
// limiter that is shared goes on for the others.
func (c *Client) Run(ctx context.Context, f func(ctx context.Context) error) error {
	if c.ran.Swap(true) {
		return errors.New("client: a client runs once: make another with New")
	}
	if c.endUpdates != nil {
		defer c.endUpdates()
	}
	defer c.choke.Close() // first, since handlers may wait for calls
	running, end := context.WithCancelCause(ctx)
	defer end(nil)
	c.conn.end = end
	err := c.telegram.Run(running, func(ctx context.Context) error {
		c.conn.established()
		// f may be waiting for calls that do not have its context.
		stop := context.AfterFunc(ctx, c.choke.Close)
		defer stop()
		return f(ctx)
	})
	if wait, ok := errors.AsType[*flood.WaitError](context.Cause(running)); ok && ctx.Err() == nil {
		return fmt.Errorf("client: connect: %w", wait)
	}
	if ctx.Err() != nil && (err == nil || errors.Is(err, ctx.Err())) {
		if never := c.conn.never(ctx); never != nil {
			return never
		}
	}
	return err
}

// API returns the raw API. Its calls pass the choke point: they block until they
// are admitted, end when their context does, and fail as package invoke says.
func (c *Client) API() *tg.Client { return c.telegram.API() }

// Invoke makes one raw call, like those of [Client.API].
func (c *Client) Invoke(ctx context.Context, input bin.Encoder, output bin.Decoder) error {
	return c.telegram.Invoke(ctx, input, output)
}

// Auth returns the client for logging in, whose calls pass the choke point.
func (c *Client) Auth() *auth.Client { return c.telegram.Auth() }

// QR returns the helper for logging in with a QR code.
func (c *Client) QR() qrlogin.QR { return c.telegram.QR() }

// Self returns the user or bot that is logged in.
func (c *Client) Self(ctx context.Context) (*tg.User, error) { return c.telegram.Self(ctx) }

// Config returns the server's configuration as it was last received.
func (c *Client) Config() tg.Config { return c.telegram.Config() }

// MigrateTo moves the client to another data centre and waits until it is there.
// gotd does so by itself when the server says so.
func (c *Client) MigrateTo(ctx context.Context, dc int) error { return c.telegram.MigrateTo(ctx, dc) }

// Ping sends an MTProto ping and waits for the pong. It is charged to classify.Bulk.
func (c *Client) Ping(ctx context.Context) error {
	settle, err := c.choke.Acquire(ctx, classify.Bulk)
	if err != nil {
		return err
	}
	defer settle()
	return c.telegram.Ping(ctx)
}

// RandInt64 returns a random number, for the random_id of a message.
func (c *Client) RandInt64() (int64, error) { return c.telegram.RandInt64() }

// Limiter returns the client's limiter, to share it or to give it to metrics.
func (c *Client) Limiter() *invoke.Limiter { return c.choke.Limiter() }

// Congestion is that of the busiest category, from 0 (all idle) to 1 (a call waits at
// one); see [invoke.Limiter.Congestion]. A long job polls it to back off. It neither
// blocks nor allocates.
func (c *Client) Congestion() float64 { return c.Limiter().Congestion() }

// Available returns the tokens of each category and the global ones, whole ones and a
// part. It does not block.
func (c *Client) Available() map[classify.Category]float64 { return c.Limiter().Available() }

// TryAcquire takes the tokens for one call of the category, if they are there and
// nobody waits for them: for work that is better skipped than queued. Put the permit
// on the call's context with invoke.WithPermit, or give it back with its Return,
// which does nothing after the call and so can be deferred. See
// [invoke.Limiter.TryAcquire] for the errors.
func (c *Client) TryAcquire(category classify.Category) (*ratelimit.Permit, error) {
	return c.Limiter().TryAcquire(category)
}

// UpdateLimits changes limits while the client runs: waiting calls follow them at
// once. What is not named stays, tokens included. It is all or nothing; the error
// names what is bad.
func (c *Client) UpdateLimits(changes map[classify.Category]ratelimit.Change) error {
	return c.Limiter().UpdateLimits(changes)
}

// UpdateGates changes the limits of chats and of the program's own gates by name; see
// [invoke.Limiter.UpdateGates].
func (c *Client) UpdateGates(changes map[string]ratelimit.Change) error {
	return c.Limiter().UpdateGates(changes)
}

// Floods returns the floods that stand, as far as the client knows.
func (c *Client) Floods() []flood.Record { return c.Limiter().Floods() }

// Learned returns the limits that floods have lowered, see [invoke.Limiter.Learned].
func (c *Client) Learned() []invoke.LearnedRate { return c.Limiter().Learned() }
