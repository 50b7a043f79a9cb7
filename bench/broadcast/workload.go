package main

import (
	"time"

	"github.com/weirtg/weir/localdc"
)

// message is one of a broadcast.
type message struct {
	chat  int // index among the workload's chats
	media bool
}

// workload is what is to be sent, and what the data centre allows.
type workload struct {
	name     string
	about    string
	limits   localdc.Limits
	chats    int
	groups   bool // the chats are groups, not users
	messages []message
	// interactive is how many messages a user in the middle asks for, each to a chat of
	// its own, every so often and while the broadcast runs.
	interactive int
	every       time.Duration
}

// sendMedia is the method whose limit the media workload has.
const sendMedia = "messages.sendMedia"

// workloads returns all of them. With a scale of n, broadcasts are n times shorter than
// in full, by fewer messages or a shorter minute.
func workloads(scale int) []workload {
	// What Telegram publishes for bots.
	published := func() localdc.Limits {
		l := localdc.Published()
		l.Group = localdc.Window{}
		return l
	}
	media := published()
	media.Methods = map[string]localdc.Rate{sendMedia: {PerSecond: 5, Burst: 10}}
	minute := 3 * time.Second / time.Duration(scale)
	groups := localdc.Limits{Group: localdc.Window{Limit: 20, Period: minute}}
	return []workload{
		{
			name: "even", about: "300 messages to 100 chats; 30/s burst 30, in a chat 1/s burst 3",
			limits: published(), chats: 100, messages: round(300/scale, 100, 0),
		},
		{
			name: "few", about: "60 messages to 4 chats; the same limits",
			limits: published(), chats: 4, messages: round(60/scale, 4, 0),
		},
		{
			name: "groups", about: "240 messages to 4 groups; 20 in a sliding " + minute.String() + " in each",
			limits: groups, chats: 4, groups: true, messages: round(240, 4, 0),
		},
		{
			name: "media", about: "300 messages to 100 chats, every fifth a photo; the limits of even, and photos 5/s burst 10",
			limits: media, chats: 100, messages: round(300/scale, 100, 5),
		},
		{
			name: "interactive", about: "even, and a user in the middle who wants a message every 200 ms",
			limits: published(), chats: 100, messages: round(300/scale, 100, 0),
			interactive: 40 / scale, every: 200 * time.Millisecond,
		},
	}
}

// round returns n messages to chats in turn, every photo-th of them a photo, none if 0.
func round(n, chats, photo int) []message {
	all := make([]message, n)
	for i := range all {
		all[i] = message{chat: i % chats, media: photo > 0 && i%photo == photo-1}
	}
	return all
}

// least is the time below which no client can have sent everything without a flood: the
// longest that one limit takes for all that falls under it.
func (w workload) least() time.Duration {
	chats := make([]int, w.chats)
	photos := 0
	for _, m := range w.messages {
		chats[m.chat]++
		if m.media {
			photos++
		}
	}
	least := max(bucket(w.limits.Account, len(w.messages)+w.interactive), bucket(w.limits.Methods[sendMedia], photos))
	for _, n := range chats {
		if w.groups {
			least = max(least, window(w.limits.Group, n))
		} else {
			least = max(least, bucket(w.limits.Chat, n))
		}
	}
	return least
}

func bucket(r localdc.Rate, n int) time.Duration {
	if n <= r.Burst || r.PerSecond == 0 {
		return 0
	}
	return time.Duration(float64(n-r.Burst) / r.PerSecond * float64(time.Second))
}

func window(w localdc.Window, n int) time.Duration {
	if w.Limit == 0 || n == 0 {
		return 0
	}
	return time.Duration((n-1)/w.Limit) * w.Period
}
