package localdc_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/gotd/td/telegram"
	"github.com/gotd/td/tg"
	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/localdc"
)

func TestFilesComeThroughTheCDN(t *testing.T) {
	t.Parallel()
	cloud := newCloud(t, localdc.Options{CDN: 203})
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
}
