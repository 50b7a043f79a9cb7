package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gotd/td/session"
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/telegram/uploader"
	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/localdc"
)

// result is what one contender made of one workload. Times are in seconds.
type result struct {
	Workload  string `json:"workload"`
	Contender string `json:"contender"`
	Messages  int    `json:"messages"`
	Sent      int    `json:"sent"`
	Failed    int    `json:"failed"` // handed back as an error, or not done when time was up
	Floods    int    `json:"floods"`
	Done      bool   `json:"done"` // before the timeout, whether or not all was sent

	Seconds float64 `json:"seconds"`
	Least   float64 `json:"least"`

	Interactive *interactive `json:"interactive,omitempty"`
}

// interactive is what the user in the middle saw, in milliseconds.
type interactive struct {
	Calls    int     `json:"calls"`
	Answered int     `json:"answered"`
	P50      float64 `json:"p50_ms"`
	P99      float64 `json:"p99_ms"`
}

// settle is how long a bot rests after its login, so that all buckets are full again.
const settle = 1500 * time.Millisecond

// run lets one contender do one workload, for at most timeout.
func run(ctx context.Context, w workload, c contender, workers int, timeout time.Duration) (result, error) {
	cloud, err := localdc.New(localdc.Options{Limits: w.limits})
	if err != nil {
		return result{}, fmt.Errorf("start data centre: %w", err)
	}
	defer func() { _ = cloud.Close() }()
	chats := make([]tg.InputPeerClass, w.chats)
	for i := range chats {
		if name := fmt.Sprintf("chat%d", i); w.groups {
			chats[i] = cloud.AddGroup(name).InputPeer()
		} else {
			chats[i] = cloud.AddUser(name).InputPeer()
		}
	}
	users := make([]tg.InputPeerClass, w.interactive)
	for i := range users {
		users[i] = cloud.AddUser(fmt.Sprintf("user%d", i)).InputPeer()
	}

	s, err := c.start(w)
	if err != nil {
		return result{}, fmt.Errorf("start %s: %w", c.name, err)
	}
	opts := cloud.ClientOptions()
	opts.SessionStorage, opts.Middlewares, opts.NoUpdates = &session.StorageMemory{}, s.middlewares, true
	client := telegram.NewClient(1, "hash", opts)

	r := result{Workload: w.name, Contender: c.name, Messages: len(w.messages), Least: w.least().Seconds()}
	work := func(ctx context.Context) error {
		return client.Run(ctx, func(ctx context.Context) error {
			if _, err := client.Auth().Bot(ctx, localdc.DemoBotToken); err != nil {
				return fmt.Errorf("log in: %w", err)
			}
			b := &broadcast{client: client, chats: chats, users: users, workload: w, background: s.background}
			if err := b.prepare(ctx); err != nil {
				return err
			}
			time.Sleep(settle)
			cloud.ResetRecord()
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			start := time.Now()
			b.send(ctx, workers)
			r.Seconds = time.Since(start).Seconds()
			r.Done = ctx.Err() == nil
			r.Sent = int(b.sent.Load())
			r.Failed = r.Messages - r.Sent
			r.Floods = len(cloud.Record().Floods())
			r.Interactive = b.seen()
			return nil
		})
	}
	if s.within != nil {
		err = s.within(ctx, work)
	} else {
		err = work(ctx)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return result{}, fmt.Errorf("%s with %s: %w", w.name, c.name, err)
	}
	return r, nil
}

// broadcast is one in progress.
type broadcast struct {
	workload
	client     *telegram.Client
	chats      []tg.InputPeerClass
	users      []tg.InputPeerClass
	photo      tg.InputMediaClass
	background func(context.Context) context.Context

	sent      atomic.Int64
	mu        sync.Mutex
	latencies []time.Duration
}

// prepare uploads the photo that is sent.
func (b *broadcast) prepare(ctx context.Context) error {
	if b.limits.Methods == nil {
		return nil
	}
	file, err := uploader.NewUploader(b.client.API()).FromBytes(ctx, "photo.jpg", []byte("as good as a photo"))
	if err != nil {
		return fmt.Errorf("upload photo: %w", err)
	}
	uploaded, err := b.client.API().MessagesUploadMedia(ctx, &tg.MessagesUploadMediaRequest{
		Peer: b.chats[0], Media: &tg.InputMediaUploadedPhoto{File: file},
	})
	if err != nil {
		return fmt.Errorf("upload photo: %w", err)
	}
	media, ok := uploaded.(*tg.MessageMediaPhoto)
	if !ok {
		return fmt.Errorf("upload photo: the answer is a %T", uploaded)
	}
	photo, ok := media.Photo.(*tg.Photo)
	if !ok {
		return fmt.Errorf("upload photo: the answer has a %T", media.Photo)
	}
	b.photo = &tg.InputMediaPhoto{ID: photo.AsInput()}
	return nil
}

// send sends everything and returns when each message was sent or has failed.
func (b *broadcast) send(ctx context.Context, workers int) {
	queue := make(chan message, len(b.messages))
	for _, m := range b.messages {
		queue <- m
	}
	close(queue)
	var wg sync.WaitGroup
	defer wg.Wait()
	bulk := ctx
	if b.background != nil && b.interactive > 0 {
		bulk = b.background(ctx)
	}
	for range workers {
		wg.Go(func() {
			for m := range queue {
				if b.one(bulk, b.chats[m.chat], m.media) == nil {
					b.sent.Add(1)
				}
			}
		})
	}
	for _, user := range b.users {
		select {
		case <-ctx.Done():
			return
		case <-time.After(b.every):
		}
		wg.Go(func() {
			start := time.Now()
			if b.one(ctx, user, false) == nil {
				b.mu.Lock()
				defer b.mu.Unlock()
				b.latencies = append(b.latencies, time.Since(start))
			}
		})
	}
}

// one sends one message.
func (b *broadcast) one(ctx context.Context, to tg.InputPeerClass, media bool) error {
	id, err := b.client.RandInt64()
	if err != nil {
		return err
	}
	if media {
		_, err = b.client.API().MessagesSendMedia(ctx, &tg.MessagesSendMediaRequest{Peer: to, Media: b.photo, RandomID: id})
	} else {
		_, err = b.client.API().MessagesSendMessage(ctx, &tg.MessagesSendMessageRequest{Peer: to, Message: "hello", RandomID: id})
	}
	return err
}

// seen sums up the latencies of the user in the middle; nil if there was none.
func (b *broadcast) seen() *interactive {
	if b.interactive == 0 {
		return nil
	}
	i := &interactive{Calls: b.interactive, Answered: len(b.latencies)}
	slices.Sort(b.latencies)
	i.P50, i.P99 = quantile(b.latencies, 50), quantile(b.latencies, 99)
	return i
}

// quantile is the smallest value that percent of the sorted ones do not exceed, in
// milliseconds; 0 if there are none.
func quantile(sorted []time.Duration, percent int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	i := (len(sorted)*percent + 99) / 100
	return float64(sorted[max(0, i-1)]) / float64(time.Millisecond)
}
