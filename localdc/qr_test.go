package localdc_test

import (
	"context"
	"testing"
	"time"

	"github.com/gotd/neo"
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/telegram/auth/qrlogin"
	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/localdc"
)

func TestLoginTokenIsGoodForHalfAMinuteAndOnce(t *testing.T) {
	t.Parallel()
	now := neo.NewTime(time.Unix(1_700_000_000, 0))
	cloud := newCloud(t, localdc.Options{Clock: now})
	connect(t, cloud, nil, func(ctx context.Context, client *telegram.Client) {
		require.ErrorContains(t, cloud.AcceptLogin("no base64!"), "login token is not base64")
		require.ErrorContains(t, cloud.AcceptLogin(qrlogin.NewToken([]byte("other"), 0).String()), "not known or has expired")

		late, err := client.QR().Export(ctx)
		require.NoError(t, err)
		now.Travel(30 * time.Second)
		require.ErrorContains(t, cloud.AcceptLogin(late.String()), "not known or has expired")

		token, err := client.QR().Export(ctx)
		require.NoError(t, err)
		_, err = client.Self(ctx)
		requireRPC(t, err, 401, "AUTH_KEY_UNREGISTERED")
		require.NoError(t, cloud.AcceptLogin(token.String()))
		_, err = client.QR().Import(ctx)
		require.NoError(t, err)
		_, err = client.Self(ctx)
		require.NoError(t, err)
		require.Error(t, cloud.AcceptLogin(token.String()), "it was used")
	})
}
