package client

import (
	"context"
	"errors"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/invoke"
)

// chokeTransfer puts the import of an authorization to another data centre through the
// choke point, as a call of auth.importAuthorization there. gotd sends it below its
// middlewares, and returns its error as if the call that needed the other data centre had
// failed with it: a flood of the import would be taken for one of that call.
//
// One transfer is an export, which passes the middlewares, and the import. An import that is
// sent again after a flood needs a new export: the bytes of an export are good once.
func (c *Client) chokeTransfer(next telegram.AuthTransferHandler) telegram.AuthTransferHandler {
	if next == nil {
		next = func(ctx context.Context, _ *telegram.Client, transfer func(context.Context) error) error {
			return transfer(ctx)
		}
	}
	return func(ctx context.Context, client *telegram.Client, transfer func(context.Context) error) error {
		dc := targetOf(ctx, transfer)
		transferAndImport := telegram.InvokeFunc(func(ctx context.Context, _ bin.Encoder, _ bin.Decoder) error {
			t := &authTransfer{}
			err := next(context.WithValue(ctx, authTransferKey{}, t), client, transfer)
			if err != nil && !t.exported {
				return &notImported{err}
			}
			return err
		})
		// What the call that needs the data centre costs is not what the import costs.
		ctx = invoke.WithCost(invoke.WithCategory(ctx, classify.Account), 1)
		err := c.choke.HandleDC(dc, transferAndImport)(ctx, &tg.AuthImportAuthorizationRequest{}, nil)
		if unsent, ok := errors.AsType[*notImported](err); ok {
			return unsent.err
		}
		return err
	}
}

// notImported hides the error of an export, or of the program's own handler, from the choke
// point: it is no answer to the import, which was not sent.
type notImported struct{ err error }

func (e *notImported) Error() string { return e.err.Error() }

// authTransfer is a transfer under way, on the context that its export is made with.
type authTransfer struct {
	dc       int  // where the authorization is to go
	probe    bool // only dc is wanted
	exported bool // the export came through, so that the import is what follows
}

type authTransferKey struct{}

func transferOf(ctx context.Context) *authTransfer {
	t, _ := ctx.Value(authTransferKey{}).(*authTransfer)
	return t
}

var errProbed = errors.New("client: asked only where the authorization is to go")

// targetOf returns the data centre that a transfer is about. gotd names it nowhere but in the
// export, so the transfer is begun, and stopped before the export gets to a middleware.
func targetOf(ctx context.Context, transfer func(context.Context) error) int {
	t := &authTransfer{probe: true}
	_ = transfer(context.WithValue(ctx, authTransferKey{}, t)) // errProbed
	return t.dc
}

// answerProbes is the outermost middleware. It answers the export of a transfer that is a
// probe.
func answerProbes(next tg.Invoker) telegram.InvokeFunc {
	return func(ctx context.Context, input bin.Encoder, output bin.Decoder) error {
		if export, ok := input.(*tg.AuthExportAuthorizationRequest); ok {
			if t := transferOf(ctx); t != nil && t.probe {
				t.dc = export.DCID
				return errProbed
			}
		}
		return next.Invoke(ctx, input, output)
	}
}

// noteExports is a middleware that notes when the export of a transfer came through.
func noteExports(next tg.Invoker) telegram.InvokeFunc {
	return func(ctx context.Context, input bin.Encoder, output bin.Decoder) error {
		err := next.Invoke(ctx, input, output)
		if _, ok := input.(*tg.AuthExportAuthorizationRequest); ok && err == nil {
			if t := transferOf(ctx); t != nil {
				t.exported = true
			}
		}
		return err
	}
}
