package client_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gotd/td/session"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"

	"github.com/weirtg/weir/boltstore"
	"github.com/weirtg/weir/client"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/localdc"
)

const (
	getUsers   = "users.getUsers"
	importAuth = "auth.importAuthorization"
)

// scan logs in with a QR code.
func scan(ctx context.Context, cloud *localdc.Cloud, c *client.Client) error {
	token, err := c.QR().Export(ctx)
	if err != nil {
		return err
	}
	if err := cloud.AcceptLogin(token.String()); err != nil {
		return err
	}
	_, err = c.QR().Import(ctx)
	return err
}

func botLogin(ctx context.Context, _ *localdc.Cloud, c *client.Client) error {
	_, err := c.Auth().Bot(ctx, localdc.DemoBotToken)
	return err
}

// refusedLocally checks that a call was stopped without being sent.
func refusedLocally(t *testing.T, err error) {
	t.Helper()
	refused, ok := errors.AsType[*flood.PermanentError](err)
	require.True(t, ok, "%v", err)
	require.True(t, refused.Local, "%v", err)
}

// newcomer runs f with a client that has no session yet and remembers in a file, and then
// checks that nothing is left in that.
func newcomer(t *testing.T, dc int, f func(ctx context.Context, w *world, c *client.Client)) {
	t.Helper()
	w, path := startWorld(t), filepath.Join(t.TempDir(), "bot.db")
	file, err := boltstore.Open(path, boltstore.Options{Clock: w.now})
	require.NoError(t, err)
	defer file.Close()
	limiter, err := invoke.NewLimiter(invoke.Options{Store: file, Clock: w.now})
	require.NoError(t, err)
	defer limiter.Close()
	opts := client.Options{Options: invoke.Options{Limiter: limiter}}
	opts.Telegram.SessionStorage = &session.StorageMemory{}
	opts.Telegram.DC = dc
	c := newClient(t, w.Cloud, opts)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	late := time.AfterFunc(time.Minute, cancel)
	defer late.Stop()
	done := false
	err = c.Run(ctx, func(ctx context.Context) error {
		defer cancel()
		f(ctx, w, c)
		done = true
		return nil
	})
	require.True(t, done, "%v", err)
	require.Empty(t, limiter.Refusals())
	facts, err := file.Load(t.Context())
	require.NoError(t, err)
	for _, fact := range facts {
		require.NotContains(t, fact.Key, "refusal/")
	}
}

func TestAnyLoginForgetsThatTheSessionWasRevoked(t *testing.T) {
	for name, login := range map[string]func(context.Context, *localdc.Cloud, *client.Client) error{
		"bot": botLogin, "qr": scan,
	} {
		t.Run(name, func(t *testing.T) {
			newcomer(t, 2, func(ctx context.Context, w *world, c *client.Client) {
				require.NoError(t, botLogin(ctx, w.Cloud, c))
				alice := w.AddUser("alice")
				_, err := w.Fail(localdc.Scope{Method: sendMessage}, 401, "SESSION_REVOKED", 20)
				require.NoError(t, err)
				for range 20 {
					require.True(t, tgerr.Is(send(c, ctx, alice.InputPeer(), "x"), "SESSION_REVOKED"))
					w.now.Travel(2 * time.Second) // the chat's own limit
				}
				refusedLocally(t, send(c, ctx, alice.InputPeer(), "x"))
				status, err := c.Auth().Status(ctx)
				require.NoError(t, err)
				require.False(t, status.Authorized)

				require.NoError(t, login(ctx, w.Cloud, c))
				require.NoError(t, send(c, ctx, alice.InputPeer(), "x"))
				_, err = c.Self(ctx)
				require.NoError(t, err)
			})
		})
	}
}

func TestAskingWhoIsLoggedInBeforeALoginIsNoRefusal(t *testing.T) {
	for name, dc := range map[string]int{"at home": 2, "after a move": 4} {
		t.Run(name, func(t *testing.T) {
			newcomer(t, dc, func(ctx context.Context, w *world, c *client.Client) {
				for range 50 {
					status, err := c.Auth().Status(ctx)
					require.NoError(t, err)
					require.False(t, status.Authorized)
					w.now.Travel(time.Second)
				}
				require.Equal(t, 50, w.calls(getUsers), "each was sent")
				require.Empty(t, c.Limiter().Refusals())

				require.NoError(t, scan(ctx, w.Cloud, c))
				status, err := c.Auth().Status(ctx)
				require.NoError(t, err)
				require.True(t, status.Authorized)
				require.NoError(t, send(c, ctx, w.AddUser("alice").InputPeer(), "x"))
			})
		})
	}
}

func TestPoolWhoseAuthorizationIsBroughtAnewWorksAgain(t *testing.T) {
	inWorld(t, settings{}, func(ctx context.Context, w *world, c *client.Client) {
		data := content(t, 1<<10)
		far := fileFrom(t, w.AddUser("sender"), data, 4)
		part := &tg.UploadGetFileRequest{Location: far, Limit: 4 << 10}
		pool := opened(t)(c.DC(ctx, 4, 1))
		_, err := w.Fail(localdc.Scope{Method: getFile, DC: 4}, 401, "AUTH_KEY_UNREGISTERED", 20)
		require.NoError(t, err)
		for range 20 {
			_, err := tg.NewClient(pool).UploadGetFile(ctx, part)
			require.True(t, tgerr.Is(err, "AUTH_KEY_UNREGISTERED"))
			w.now.Travel(time.Second)
		}
		_, err = tg.NewClient(pool).UploadGetFile(ctx, part)
		refusedLocally(t, err)

		again := opened(t)(c.DC(ctx, 4, 1))
		_, err = tg.NewClient(again).UploadGetFile(ctx, part)
		require.NoError(t, err)
		require.Empty(t, c.Limiter().Refusals())
	})
}

// ways to another data centre, each of which brings the authorization there.
var waysToAnotherDC = map[string]func(ctx context.Context, c *client.Client, far tg.InputFileLocationClass) error{
	"pool": func(ctx context.Context, c *client.Client, _ tg.InputFileLocationClass) error {
		pool, err := c.DC(ctx, 4, 1)
		if err != nil {
			return err
		}
		return pool.Close()
	},
	"servers for files only": func(ctx context.Context, c *client.Client, _ tg.InputFileLocationClass) error {
		pool, err := c.MediaOnly(ctx, 4, 1)
		if err != nil {
			return err
		}
		return pool.Close()
	},
	"download that gotd moves": func(ctx context.Context, c *client.Client, far tg.InputFileLocationClass) error {
		_, err := c.API().UploadGetFile(ctx, &tg.UploadGetFileRequest{Location: far, Limit: 4 << 10})
		return err
	},
}

func TestFloodOfAnImportOfTheAuthorizationStaysWhereItBelongs(t *testing.T) {
	for name, way := range waysToAnotherDC {
		t.Run(name, func(t *testing.T) {
			inWorld(t, settings{}, func(ctx context.Context, w *world, c *client.Client) {
				data, user := content(t, 1<<10), w.AddUser("sender")
				home, far := fileFrom(t, user, data, 2), fileFrom(t, user, data, 4)
				require.NoError(t, w.Flood(localdc.Scope{Method: importAuth, DC: 4}, time.Hour))
				for attempt := range 3 {
					wait := asWait(t, way(ctx, c, far))
					assert.Equal(t, importAuth, wait.Method)
					assert.Equal(t, 4, wait.DC)
					if attempt > 0 {
						assert.Equal(t, flood.KnownFlood, wait.Reason)
					}
				}
				require.Equal(t, 1, w.calls(importAuth), "the flood is known to the next attempt")
				require.Equal(t, 1, w.calls("auth.exportAuthorization"), "and no export is made that could not be used")
				floods := c.Floods()
				require.Len(t, floods, 1)
				require.Equal(t, importAuth, floods[0].Method)
				require.Equal(t, 4, floods[0].DC)
				_, err := c.API().UploadGetFile(ctx, &tg.UploadGetFileRequest{Location: home, Limit: 4 << 10})
				require.NoError(t, err, "downloads from the home data centre go on")

				w.now.Travel(time.Hour)
				require.NoError(t, way(ctx, c, far))
			})
		})
	}
}

func TestShortFloodOfAnImportOfTheAuthorizationIsSatOut(t *testing.T) {
	for name, way := range waysToAnotherDC {
		t.Run(name, func(t *testing.T) {
			inWorld(t, settings{}, func(ctx context.Context, w *world, c *client.Client) {
				far := fileFrom(t, w.AddUser("sender"), content(t, 1<<10), 4)
				_, err := w.Fail(localdc.Scope{Method: importAuth, DC: 4}, 420, "FLOOD_WAIT_5", 1)
				require.NoError(t, err)
				done := call(func() error { return way(ctx, c, far) })
				require.Equal(t, importAuth, waitsForFlood(t, c, 1).Method)
				w.now.Travel(5 * time.Second)
				require.NoError(t, ended(t, done))
				require.Equal(t, 2, w.calls(importAuth))
			})
		})
	}
}

func TestRefusedExportOfTheAuthorizationIsNoAnswerToItsImport(t *testing.T) {
	inWorld(t, settings{}, func(ctx context.Context, w *world, c *client.Client) {
		require.NoError(t, w.Flood(localdc.Scope{Method: "auth.exportAuthorization"}, time.Hour))
		_, err := c.DC(ctx, 4, 1)
		require.Equal(t, "auth.exportAuthorization", asWait(t, err).Method)
		require.Zero(t, w.calls(importAuth))
		require.NoError(t, w.Flood(localdc.Scope{Method: "auth.exportAuthorization"}, 0))
		w.now.Travel(time.Hour)
		_, err = w.Fail(localdc.Scope{Method: "auth.exportAuthorization"}, 400, "DC_ID_INVALID", 1)
		require.NoError(t, err)
		_, err = c.DC(ctx, 4, 1)
		require.True(t, tgerr.Is(err, "DC_ID_INVALID"), "%v", err)
		opened(t)(c.DC(ctx, 4, 1))
	})
}
