package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gotd/td/session"
	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/localdc"
)

// soak is one life of a bot.
type soak struct {
	people, groups int
	trouble, calm  time.Duration
	seed           uint64
}

// result is what was seen of it.
type result struct {
	Messages   int            `json:"messages"`   // that people wrote
	Answered   int            `json:"answered"`   // once each
	Twice      int            `json:"twice"`      // answered more than once
	Broadcast  int            `json:"broadcast"`  // messages that are there once
	Trouble    map[string]int `json:"trouble"`    // what happened, and how often
	Requests   int            `json:"requests"`   // that arrived
	Floods     int            `json:"floods"`     // that they were answered with
	Goroutines int            `json:"goroutines"` // more than before
	HeapMB     float64        `json:"heap_mb"`    // more than before
}

// chat is where people write to the bot.
type chat struct {
	*localdc.Chat
	write func(text string) error
	group bool
}

func (s soak) run(ctx context.Context, say func(string, ...any)) (r result, err error) {
	goroutines, heap := runtime.NumGoroutine(), heapMB()
	r, err = s.live(ctx, say)
	for range 100 { // the runtime's own end a moment later
		if r.Goroutines = runtime.NumGoroutine() - goroutines; r.Goroutines <= 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if r.Goroutines > 0 {
		buf := make([]byte, 1<<20)
		say("%s", buf[:runtime.Stack(buf, true)])
	}
	r.HeapMB = heapMB() - heap
	return r, errors.Join(err, r.judge(s.people*perPerson))
}

// live is the life of a bot, with its data centre and its line.
func (s soak) live(ctx context.Context, say func(string, ...any)) (r result, err error) {
	link, err := localdc.NewLink(localdc.LinkOptions{
		Latency: 10 * time.Millisecond, Jitter: 30 * time.Millisecond, Seed: s.seed,
	})
	if err != nil {
		return r, err
	}
	defer link.Close()
	cloud, err := localdc.New(localdc.Options{Limits: localdc.Published(), Link: link})
	if err != nil {
		return r, err
	}
	defer cloud.Close()
	chats, audience := s.populate(cloud)
	b, err := newBot(cloud.ClientOptions(), &session.StorageMemory{}, audience)
	if err != nil {
		return r, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- b.run(ctx) }()
	select {
	case <-b.started:
	case err := <-ended:
		return r, fmt.Errorf("start the bot: %w", err)
	}

	if err := greet(ctx, chats); err != nil {
		return r, err
	}
	busy, quiet := context.WithTimeout(ctx, s.trouble)
	defer quiet()
	var wrote atomic.Int64
	var work sync.WaitGroup
	for i, c := range chats {
		work.Go(func() { s.write(busy, c, i, &wrote) })
	}
	w := trouble{cloud: cloud, link: link, bot: b, say: say, rand: rand.New(rand.NewPCG(s.seed, 0)), seen: map[string]int{}}
	work.Go(func() { w.make(busy) })
	work.Wait()
	link.Restore()
	r.Trouble, r.Messages = w.seen, int(wrote.Load())+s.groups

	deadline := time.Now().Add(s.calm)
	for {
		r.Answered, r.Twice = answers(chats)
		r.Broadcast = delivered(chats[:s.people])
		if r.Answered == r.Messages && r.Broadcast == len(audience)*perPerson {
			break
		}
		select {
		case err := <-ended:
			return r, fmt.Errorf("the bot ended: %w", err)
		case <-time.After(100 * time.Millisecond):
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			break
		}
	}
	stop()
	err = <-ended
	record := cloud.Record()
	r.Requests, r.Floods = len(record.Calls), len(record.Floods())
	return r, err
}

// judge says what should not have been.
func (r result) judge(broadcast int) error {
	var errs []error
	if r.Answered != r.Messages || r.Twice > 0 {
		errs = append(errs, fmt.Errorf("of %d messages %d were answered once, and %d more often", r.Messages, r.Answered, r.Twice))
	}
	if r.Broadcast != broadcast {
		errs = append(errs, fmt.Errorf("of the %d messages of the broadcast %d are there once", broadcast, r.Broadcast))
	}
	if r.Goroutines > 0 {
		errs = append(errs, fmt.Errorf("%d goroutines are left over", r.Goroutines))
	}
	return errors.Join(errs...)
}

func heapMB() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

func (s soak) populate(cloud *localdc.Cloud) (chats []chat, audience []tg.InputPeerClass) {
	var people []*localdc.User
	for i := range s.people {
		u := cloud.AddUser(fmt.Sprintf("person%d", i))
		people = append(people, u)
		chats = append(chats, chat{Chat: u.Chat, write: func(text string) error { u.Send(text); return nil }})
		audience = append(audience, u.InputPeer())
	}
	for i := range s.groups {
		g := cloud.AddGroup(fmt.Sprintf("group%d", i))
		chats = append(chats, chat{Chat: g, group: true, write: func(text string) error {
			_, err := people[i].SendTo(g, text)
			return err
		}})
	}
	return chats, audience
}

// greet writes once in each group and waits for the answer. gotd's updates.Manager starts to
// count where it first meets a channel: of a burst that comes out of order it would lose what
// is before that.
func greet(ctx context.Context, chats []chat) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, c := range chats {
		if !c.group {
			continue
		}
		if err := c.write("say hello"); err != nil {
			return err
		}
		if _, err := c.Await(ctx, func(m tg.Message) bool { return m.Message == answerPrefix+"say hello" }); err != nil {
			return fmt.Errorf("group %d got no first answer: %w", c.MarkedID(), err)
		}
	}
	return nil
}

// write is what is written in one chat: by a person now and then, by a group in bursts.
func (s soak) write(ctx context.Context, c chat, id int, wrote *atomic.Int64) {
	r := rand.New(rand.NewPCG(s.seed, uint64(id+1)))
	for n := 0; ; {
		pause, burst := 3+7*r.Float64(), 1
		if c.group {
			pause, burst = 60+60*r.Float64(), 22
		}
		for range burst {
			if c.write(fmt.Sprintf("say %d", n)) == nil {
				wrote.Add(1)
			}
			n++
		}
		select {
		case <-time.After(time.Duration(pause * float64(time.Second))):
		case <-ctx.Done():
			return
		}
	}
}

// answers counts what people wrote that has one answer, and that has more.
func answers(chats []chat) (once, more int) {
	for _, c := range chats {
		count := map[string]int{}
		for _, m := range c.Messages() {
			if text, ok := cutAnswer(m.Message); ok {
				count[text]++
			}
		}
		for _, n := range count {
			if n == 1 {
				once++
			} else {
				more++
			}
		}
	}
	return once, more
}
