package client_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gotd/neo"
	"github.com/gotd/td/telegram/uploader"
	"github.com/gotd/td/tg"
	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/client"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/localdc"
	"github.com/weirtg/weir/ratelimit"
)

// A private chat has a burst of 3, and an album has ten messages. Albums in a row, each sent
// as soon as the limiter admits it, keep to what the data centre allows.
func TestAlbumsInARowAreNotFlooded(t *testing.T) {
	for name, last := range map[string]time.Duration{
		"person": 90 * time.Second, // 1 a second: ten for each album
		"group":  4 * time.Minute,  // 20 a minute: two albums
	} {
		t.Run(name, func(t *testing.T) {
			now := neo.NewTime(time.Now())
			cloud := newCloud(t, localdc.Options{Limits: localdc.Published(), Clock: now})
			peers := map[string]tg.InputPeerClass{
				"person": cloud.AddUser("alice").InputPeer(), "group": cloud.AddGroup("friends").InputPeer(),
			}
			limiter, err := invoke.NewLimiter(invoke.Options{Clock: now})
			require.NoError(t, err)
			c := newClient(t, cloud, client.Options{Options: invoke.Options{Limiter: limiter}})
			asBot(t, c, func(ctx context.Context) error {
				album, err := newAlbum(ctx, c, peers[name])
				if err != nil {
					return err
				}
				ctx, start := invoke.WithNoWait(ctx), now.Now()
				for range 10 {
					for i := range album.MultiMedia {
						if album.MultiMedia[i].RandomID, err = c.RandInt64(); err != nil {
							return err
						}
					}
					_, err := c.API().MessagesSendMultiMedia(ctx, album)
					var refused *ratelimit.RefusedError
					if errors.As(err, &refused) {
						now.Travel(refused.Wait)
						_, err = c.API().MessagesSendMultiMedia(ctx, album)
					}
					if err != nil {
						return err
					}
				}
				require.Equal(t, last, now.Now().Sub(start), "from the first to the last")
				return nil
			})
			require.Empty(t, cloud.Record().Floods())
			require.Equal(t, 100, cloud.Record().Methods["messages.sendMultiMedia"].Messages)
		})
	}
}

// newAlbum uploads a photo and returns an album that has it ten times.
func newAlbum(ctx context.Context, c *client.Client, to tg.InputPeerClass) (*tg.MessagesSendMultiMediaRequest, error) {
	file, err := uploader.NewUploader(c.API()).FromBytes(ctx, "p.jpg", []byte("a photo"))
	if err != nil {
		return nil, err
	}
	media, err := c.API().MessagesUploadMedia(ctx, &tg.MessagesUploadMediaRequest{
		Peer: to, Media: &tg.InputMediaUploadedPhoto{File: file},
	})
	if err != nil {
		return nil, err
	}
	photo := media.(*tg.MessageMediaPhoto).Photo.(*tg.Photo).AsInput()
	album := &tg.MessagesSendMultiMediaRequest{Peer: to}
	for range 10 {
		album.MultiMedia = append(album.MultiMedia, tg.InputSingleMedia{Media: &tg.InputMediaPhoto{ID: photo}})
	}
	return album, nil
}
