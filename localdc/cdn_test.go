package localdc_test

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/gotd/neo"
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/tg"
	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/localdc"
)

func TestCDN(t *testing.T) {
	t.Parallel()
	now := neo.NewTime(time.Unix(1_700_000_000, 0))
	cloud := newCloud(t, localdc.Options{CDN: 203, Clock: now})
	alice := cloud.AddUser("alice")
	allow := func(o *telegram.Options) { o.AllowCDN = true }
	connect(t, cloud, allow, func(ctx context.Context, client *telegram.Client) {
		_, err := client.Auth().Bot(ctx, localdc.DemoBotToken)
		require.NoError(t, err)
		download := func(d *tg.Document) []byte {
			var out bytes.Buffer
			_, err := client.Download(d.AsInputDocumentFileLocation("")).Stream(ctx, &out)
			require.NoError(t, err)
			return out.Bytes()
		}
		t.Run("files come through it", func(t *testing.T) {
			for _, size := range []int{1, 300_001, 1 << 20, 3<<20 + 17} {
				data := randomBytes(size)
				for _, dc := range []int{2, 4} {
					cloud.ResetRecord()
					id, err := alice.SendFile("data.bin", data, dc)
					require.NoError(t, err)
					d := document(t, alice.Messages()[id-1])
					for range 2 {
						require.True(t, bytes.Equal(data, download(d)), "%d bytes, DC %d", size, dc)
					}
					record := cloud.Record()
					require.Equal(t, 1, record.Methods["upload.reuploadCdnFile"].Calls)
					for _, c := range record.Calls {
						require.Equal(t, c.Method == "upload.getCdnFile", c.DC == 203, "%+v", c)
					}
				}
			}
		})

		t.Run("without a CDN", func(t *testing.T) {
			cloud.ResetRecord()
			id, err := alice.SendFile("data.bin", []byte("plain"), 2)
			require.NoError(t, err)
			location := document(t, alice.Messages()[id-1]).AsInputDocumentFileLocation("")
			_, err = client.Downloader().WithAllowCDN(false).Download(client.API(), location).Stream(ctx, io.Discard)
			require.NoError(t, err)
			require.Zero(t, cloud.Record().Methods["upload.getCdnFile"].Calls)
		})

		t.Run("a token that is gone", func(t *testing.T) {
			data := randomBytes(2 << 20)
			id, err := alice.SendFile("data.bin", data, 2)
			require.NoError(t, err)
			require.NoError(t, cloud.FailNext("upload.getCdnFile", 400, "FILE_TOKEN_INVALID", 1))
			require.True(t, bytes.Equal(data, download(document(t, alice.Messages()[id-1]))))
		})

		t.Run("its rules and limits", func(t *testing.T) {
			api := client.API()
			pool, err := client.CDN(ctx, 203, 1)
			require.NoError(t, err)
			defer func() { require.NoError(t, pool.Close()) }()
			cdn := tg.NewClient(pool)

			id, err := alice.SendFile("data.bin", randomBytes(1<<20+5), 2)
			require.NoError(t, err)
			answer, err := api.UploadGetFile(ctx, &tg.UploadGetFileRequest{
				CDNSupported: true, Location: document(t, alice.Messages()[id-1]).AsInputDocumentFileLocation(""), Limit: 1 << 20,
			})
			require.NoError(t, err)
			redirect := answer.(*tg.UploadFileCDNRedirect)
			require.Equal(t, 203, redirect.DCID)
			get := func(offset int64, limit int) (tg.UploadCDNFileClass, error) {
				return cdn.UploadGetCDNFile(ctx, &tg.UploadGetCDNFileRequest{FileToken: redirect.FileToken, Offset: offset, Limit: limit})
			}
			reupload := func(request []byte) error {
				_, err := api.UploadReuploadCDNFile(ctx, &tg.UploadReuploadCDNFileRequest{FileToken: redirect.FileToken, RequestToken: request})
				return err
			}
			requireRPC(t, reupload([]byte("x")), 400, "REQUEST_TOKEN_INVALID")
			part, err := get(0, 4096)
			require.NoError(t, err)
			require.NoError(t, reupload(part.(*tg.UploadCDNFileReuploadNeeded).RequestToken))
			part, err = get(1<<20, 4096)
			require.NoError(t, err)
			require.Len(t, part.(*tg.UploadCDNFile).Bytes, 5)

			for _, bad := range []struct {
				offset int64
				limit  int
				want   string
			}{
				{-4096, 4096, "OFFSET_INVALID"},
				{1024, 4096, "OFFSET_INVALID"},
				{0, 0, "LIMIT_INVALID"},
				{0, 1024, "LIMIT_INVALID"},
				{0, 3 * 4096, "LIMIT_INVALID"},
				{0, 2 << 20, "LIMIT_INVALID"},
				{4096, 1 << 20, "LIMIT_INVALID"},
			} {
				_, err := get(bad.offset, bad.limit)
				requireRPC(t, err, 400, bad.want)
			}
			_, err = cdn.UploadGetCDNFile(ctx, &tg.UploadGetCDNFileRequest{FileToken: []byte("x"), Limit: 4096})
			requireRPC(t, err, 400, "FILE_TOKEN_INVALID")
			_, err = api.UploadReuploadCDNFile(ctx, &tg.UploadReuploadCDNFileRequest{FileToken: []byte("x")})
			requireRPC(t, err, 400, "FILE_TOKEN_INVALID")
			_, err = api.UploadGetCDNFileHashes(ctx, &tg.UploadGetCDNFileHashesRequest{FileToken: []byte("x")})
			requireRPC(t, err, 400, "FILE_TOKEN_INVALID")
			_, err = api.UploadGetCDNFileHashes(ctx, &tg.UploadGetCDNFileHashesRequest{FileToken: redirect.FileToken, Offset: -1})
			requireRPC(t, err, 400, "OFFSET_INVALID")
			_, err = api.UploadGetCDNFile(ctx, &tg.UploadGetCDNFileRequest{FileToken: redirect.FileToken, Limit: 4096})
			requireRPC(t, err, 400, "METHOD_INVALID")
			_, err = cdn.HelpGetNearestDC(ctx)
			requireRPC(t, err, 400, "CDN_METHOD_INVALID")
			_, err = api.AuthExportAuthorization(ctx, 203)
			requireRPC(t, err, 400, "DC_ID_INVALID")

			part0 := func() error {
				_, err := get(0, 4096)
				return err
			}
			require.NoError(t, cloud.SetLimits(localdc.Limits{Parts: localdc.Rate{PerSecond: 0.5, Burst: 1}}))
			require.NoError(t, part0())
			requireRPC(t, part0(), 420, "FLOOD_PREMIUM_WAIT_2")
			now.Travel(2 * time.Second)
			require.NoError(t, cloud.SetLimits(localdc.Limits{}))
			require.NoError(t, cloud.Flood(localdc.Scope{Kind: localdc.Parts, DC: 203}, time.Minute))
			requireRPC(t, part0(), 420, "FLOOD_PREMIUM_WAIT_60")
			now.Travel(time.Minute)
			require.NoError(t, cloud.Flood(localdc.Scope{Method: "upload.getCdnFile"}, time.Minute))
			requireRPC(t, part0(), 420, "FLOOD_WAIT_60")
			require.NoError(t, cloud.Flood(localdc.Scope{Method: "upload.getCdnFile"}, 0))
			require.NoError(t, cloud.Flood(localdc.Scope{}, time.Minute))
			require.NoError(t, part0(), "a CDN knows no account")
		})
	})
}
