package localdc_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"

	"github.com/gotd/td/telegram"
	"github.com/gotd/td/telegram/downloader"
	"github.com/gotd/td/telegram/message"
	"github.com/gotd/td/telegram/message/html"
	"github.com/gotd/td/telegram/message/styling"
	"github.com/gotd/td/telegram/uploader"
	"github.com/gotd/td/tg"
	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/localdc"
)

func randomBytes(n int) []byte {
	out := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(out)
	return out
}

func document(t *testing.T, m tg.Message) *tg.Document {
	t.Helper()
	media, ok := m.Media.(*tg.MessageMediaDocument)
	require.True(t, ok, "%T", m.Media)
	return media.Document.(*tg.Document)
}

func TestFilesComeBackWholeFromBothDataCentres(t *testing.T) {
	t.Parallel()
	cloud := newCloud(t, localdc.Options{})
	alice := cloud.AddUser("alice")
	login(t, cloud, func(ctx context.Context, client *telegram.Client) {
		api := client.API()
		sender := message.NewSender(api)
		download := func(d *tg.Document) []byte {
			var out bytes.Buffer
			_, err := downloader.NewDownloader().WithAllowCDN(false).Download(api, d.AsInputDocumentFileLocation("")).WithVerify(true).Stream(ctx, &out)
			require.NoError(t, err)
			return out.Bytes()
		}
		there, err := client.DC(ctx, 4, 2)
		require.NoError(t, err)
		defer func() { require.NoError(t, there.Close()) }()
		pool, err := client.Pool(2)
		require.NoError(t, err)
		defer func() { require.NoError(t, pool.Close()) }()

		small, big := randomBytes(300_001), randomBytes(11<<20+5)
		for _, up := range []struct {
			dc     int
			data   []byte
			client uploader.Client
		}{
			{2, small, api}, {2, big, tg.NewClient(pool)}, {4, small, tg.NewClient(there)},
		} {
			f, err := uploader.NewUploader(up.client).FromBytes(ctx, "data.bin", up.data)
			require.NoError(t, err)
			_, err = sender.To(alice.InputPeer()).Media(ctx, message.UploadedDocument(f, styling.Plain("here")))
			require.NoError(t, err)
			m, err := alice.Await(ctx, nil)
			require.NoError(t, err)
			require.Equal(t, "here", m.Message)
			d := document(t, m)
			require.Equal(t, up.dc, d.DCID)
			require.True(t, bytes.Equal(up.data, download(d)), "the bytes are the same")

			// What is known already is sent without its bytes.
			_, err = sender.To(alice.InputPeer()).Document(ctx, d.AsInput())
			require.NoError(t, err)
			again, err := alice.Await(ctx, nil)
			require.NoError(t, err)
			require.Equal(t, d.ID, document(t, again).ID)
		}
		migrated := 0
		for _, c := range cloud.Record().Calls {
			if c.Error == "FILE_MIGRATE_4" {
				migrated++
			}
		}
		require.NotZero(t, migrated)

		_, err = alice.SendFile("from alice", small, 4)
		require.NoError(t, err)
		messages := alice.Messages()
		require.True(t, bytes.Equal(small, download(document(t, messages[len(messages)-1]))))
		_, err = alice.SendFile("nowhere", small, 3)
		require.ErrorContains(t, err, "DC is 3: want one of [2 4]")

		t.Run("photos and albums", func(t *testing.T) {
			var album []message.MultiMediaOption
			for range 3 {
				f, err := uploader.NewUploader(api).FromBytes(ctx, "p.jpg", small[:2000])
				require.NoError(t, err)
				album = append(album, message.UploadedPhoto(f, html.String(nil, "<b>look</b>")))
			}
			_, err := sender.To(alice.InputPeer()).Album(ctx, album[0], album[1:]...)
			require.NoError(t, err)
			first, err := alice.Await(ctx, nil)
			require.NoError(t, err)
			second, err := alice.Await(ctx, nil)
			require.NoError(t, err)
			require.Equal(t, "look", first.Message)
			require.NotZero(t, first.GroupedID)
			require.Equal(t, first.GroupedID, second.GroupedID)
			photo := first.Media.(*tg.MessageMediaPhoto).Photo.(*tg.Photo)
			_, err = api.UploadGetFile(ctx, &tg.UploadGetFileRequest{
				Location: &tg.InputPhotoFileLocation{ID: photo.ID, AccessHash: photo.AccessHash, FileReference: photo.FileReference, ThumbSize: "x"},
				Limit:    1 << 20,
			})
			require.NoError(t, err)
			total := cloud.Record().Methods["messages.sendMultiMedia"]
			require.Equal(t, 1, total.Calls)
			require.Equal(t, 3, total.Messages)
		})

		t.Run("bad requests", func(t *testing.T) {
			part := func(id int64, n int, data []byte) error {
				_, err := api.UploadSaveFilePart(ctx, &tg.UploadSaveFilePartRequest{FileID: id, FilePart: n, Bytes: data})
				return err
			}
			sendFile := func(f tg.InputFileClass) error {
				_, err := api.MessagesSendMedia(ctx, &tg.MessagesSendMediaRequest{
					Peer: alice.InputPeer(), RandomID: 99, Media: &tg.InputMediaUploadedDocument{File: f, MimeType: "x/y"},
				})
				return err
			}
			requireRPC(t, part(1, -1, []byte("x")), 400, "FILE_PART_INVALID")
			requireRPC(t, part(1, 0, nil), 400, "FILE_PART_EMPTY")
			requireRPC(t, part(1, 0, make([]byte, 512<<10+1)), 400, "FILE_PART_TOO_BIG")
			require.NoError(t, part(1, 0, make([]byte, 1024)))
			requireRPC(t, sendFile(&tg.InputFile{ID: 1, Parts: 2}), 400, "FILE_PART_1_MISSING")
			require.NoError(t, part(1, 1, make([]byte, 1025)))
			requireRPC(t, sendFile(&tg.InputFile{ID: 1, Parts: 2}), 400, "FILE_PART_SIZE_INVALID")
			require.NoError(t, part(1, 1, make([]byte, 1)))
			requireRPC(t, sendFile(&tg.InputFile{ID: 1, Parts: 2, MD5Checksum: "00"}), 400, "MD5_CHECKSUM_INVALID")
			require.NoError(t, sendFile(&tg.InputFile{ID: 1, Parts: 2}))
			requireRPC(t, sendFile(&tg.InputFile{ID: 77, Parts: 1}), 400, "FILE_PARTS_INVALID")
			_, err := api.UploadSaveBigFilePart(ctx, &tg.UploadSaveBigFilePartRequest{FileID: 2, FileTotalParts: 4001, Bytes: []byte("x")})
			requireRPC(t, err, 400, "FILE_PARTS_INVALID")
			for _, media := range []tg.InputMediaClass{
				&tg.InputMediaEmpty{}, &tg.InputMediaDocument{ID: &tg.InputDocument{ID: 5}}, &tg.InputMediaPhoto{ID: &tg.InputPhoto{ID: 5}},
			} {
				_, err := api.MessagesUploadMedia(ctx, &tg.MessagesUploadMediaRequest{Peer: alice.InputPeer(), Media: media})
				requireRPC(t, err, 400, "MEDIA_INVALID")
			}
			_, err = api.MessagesSendMultiMedia(ctx, &tg.MessagesSendMultiMediaRequest{Peer: alice.InputPeer()})
			requireRPC(t, err, 400, "MULTI_MEDIA_TOO_LONG")

			d := document(t, messages[0])
			get := func(change func(*tg.InputDocumentFileLocation), offset int64, limit int) error {
				l := &tg.InputDocumentFileLocation{ID: d.ID, AccessHash: d.AccessHash, FileReference: d.FileReference}
				change(l)
				_, err := api.UploadGetFile(ctx, &tg.UploadGetFileRequest{Location: l, Offset: offset, Limit: limit})
				return err
			}
			same := func(*tg.InputDocumentFileLocation) {}
			require.NoError(t, get(same, 0, 1024))
			requireRPC(t, get(same, 1, 1024), 400, "OFFSET_INVALID")
			requireRPC(t, get(same, 0, 2<<20), 400, "LIMIT_INVALID")
			requireRPC(t, get(func(l *tg.InputDocumentFileLocation) { l.ID++ }, 0, 1024), 400, "LOCATION_INVALID")
			requireRPC(t, get(func(l *tg.InputDocumentFileLocation) { l.AccessHash++ }, 0, 1024), 400, "LOCATION_INVALID")
			requireRPC(t, get(func(l *tg.InputDocumentFileLocation) { l.FileReference = nil }, 0, 1024), 400, "FILE_REFERENCE_INVALID")

			_, err = api.AuthExportAuthorization(ctx, 2)
			requireRPC(t, err, 400, "DC_ID_INVALID")
			_, err = tg.NewClient(there).AuthImportAuthorization(ctx, &tg.AuthImportAuthorizationRequest{ID: 1000, Bytes: []byte("x")})
			requireRPC(t, err, 400, "AUTH_BYTES_INVALID")
		})
	})
}
