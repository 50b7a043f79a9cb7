package invoke_test

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/pool"
	"github.com/gotd/td/rpc"
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/telegram/downloader"
	"github.com/gotd/td/telegram/uploader"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/ratelimit"
	"github.com/weirtg/weir/store"
)

// refusal is a way for the choke point not to send a call.
type refusal struct {
	name   string
	opts   invoke.Options
	answer string // of the server, to every call; "" for success
	// prepare is called before the transfer, which gets the context that it returns.
	prepare func(ctx context.Context, t *testing.T, m *invoke.Middleware, call func(context.Context) error) context.Context
	is      error
}

// oneCall is a limit for a single call in a quarter of an hour.
func oneCall() map[classify.Category]ratelimit.Change {
	return map[classify.Category]ratelimit.Change{classify.Global: ratelimit.Rate(0.001).Burst(1)}
}

func spent(ctx context.Context, t *testing.T, _ *invoke.Middleware, call func(context.Context) error) context.Context {
	require.NoError(t, call(ctx))
	return ctx
}

func refusals() []refusal {
	away := &faulty{}
	away.fail(true)
	return []refusal{
		{name: "tokens after the deadline", opts: invoke.Options{RateLimits: oneCall()}, prepare: spent, is: ratelimit.ErrDeferred},
		{name: "no tokens and no wait", opts: invoke.Options{RateLimits: oneCall()}, is: ratelimit.ErrRejected,
			prepare: func(ctx context.Context, t *testing.T, m *invoke.Middleware, call func(context.Context) error) context.Context {
				return invoke.WithNoWait(spent(ctx, t, m, call))
			}},
		{name: "a cost above the burst", opts: invoke.Options{RateLimits: oneCall()}, is: ratelimit.ErrImpossible,
			prepare: func(ctx context.Context, _ *testing.T, _ *invoke.Middleware, _ func(context.Context) error) context.Context {
				return invoke.WithCost(ctx, 2)
			}},
		{name: "a flood above the threshold", answer: "FLOOD_WAIT_30", is: flood.ErrGivenUp},
		{name: "a premium wait above the threshold", answer: "FLOOD_PREMIUM_WAIT_30", is: flood.ErrGivenUp},
		{name: "a flood that outlasts the deadline", opts: invoke.Options{SleepThreshold: flood.Always},
			answer: "FLOOD_WAIT_3600", is: flood.ErrGivenUp},
		{name: "floods without end", answer: "FLOOD_WAIT_1", is: flood.ErrGivenUp},
		{name: "refused for good", answer: "FROZEN_METHOD_INVALID", is: flood.ErrPermanent},
		{name: "closed", is: invoke.ErrClosed,
			prepare: func(ctx context.Context, _ *testing.T, m *invoke.Middleware, _ func(context.Context) error) context.Context {
				m.Close()
				return ctx
			}},
		{name: "a store that is away", opts: invoke.Options{Store: both{&stuck{disk: newDisk()}, away}}, is: store.ErrUnavailable},
	}
}

// transfers are ways of gotd's downloader and uploader, one request at a time.
func transfers() map[string]func(ctx context.Context, api *tg.Client) error {
	location := &tg.InputDocumentFileLocation{ID: 1}
	return map[string]func(ctx context.Context, api *tg.Client) error{
		"download": func(ctx context.Context, api *tg.Client) error {
			_, err := downloader.NewDownloader().Download(api, location).Stream(ctx, io.Discard)
			return err
		},
		"download, verified": func(ctx context.Context, api *tg.Client) error {
			_, err := downloader.NewDownloader().Download(api, location).WithVerify(true).Stream(ctx, io.Discard)
			return err
		},
		"upload": func(ctx context.Context, api *tg.Client) error {
			_, err := uploader.NewUploader(api).FromBytes(ctx, "small", make([]byte, 10))
			return err
		},
		"upload of unknown size": func(ctx context.Context, api *tg.Client) error {
			_, err := uploader.NewUploader(api).FromReader(ctx, "big", io.LimitReader(nothing{}, 10))
			return err
		},
	}
}

// nothing reads as zero bytes without end.
type nothing struct{}

func (nothing) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// A program that gives gotd's downloader or uploader an API with the middleware alone gets what
// these do with a refusal. They repeat at once, and without bound, what looks like a timeout of
// the network, and sleep once more what looks like a flood.
func TestRefusalEndsATransferOfGotdAtTheFirstTry(t *testing.T) {
	for _, r := range refusals() {
		for name, transfer := range transfers() {
			t.Run(r.name+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { endsAtTheFirstTry(t, r, transfer) })
			})
		}
	}
}

func endsAtTheFirstTry(t *testing.T, r refusal, transfer func(context.Context, *tg.Client) error) {
	s := &server{}
	if r.answer != "" {
		s = floods(1000, r.answer)
	}
	m, call := choke(t, r.opts, s)
	defer m.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if r.prepare != nil {
		ctx = r.prepare(ctx, t, m, func(ctx context.Context) error { return call(ctx, to(1), nil) })
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	tries := 0
	var refused error
	err := transfer(ctx, tg.NewClient(telegram.InvokeFunc(func(ctx context.Context, input bin.Encoder, output bin.Decoder) error {
		if tries++; tries == 100 {
			stop(io.ErrNoProgress) // it would go on until the deadline
		}
		refused = call(ctx, input, output)
		return refused
	})))
	require.Equal(t, 1, tries)
	require.NoError(t, ctx.Err())
	require.ErrorIs(t, err, r.is)
	looksLikeNothingThatGotdRepeats(t, refused)
}

// looksLikeNothingThatGotdRepeats checks all that gotd looks for in an error, in its transfers
// and in its connections.
func looksLikeNothingThatGotdRepeats(t *testing.T, err error) {
	t.Helper()
	_, isFlood := tgerr.AsFloodWait(err)
	require.False(t, isFlood)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, pool.ErrConnDead)
	require.NotErrorIs(t, err, rpc.ErrEngineClosed)
	require.False(t, tgerr.Is(err, tg.ErrTimeout))
	var network net.Error
	require.NotErrorAs(t, err, &network)
}
