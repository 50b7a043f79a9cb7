package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/config"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/localdc"
	"github.com/weirtg/weir/ratelimit"
)

// demo is the bot on a data centre of its own, with people who talk to it.
type demo struct {
	settings
	cfg    config.Config
	dc     localdc.Options
	first  int           // the data centre to call at; that of the account is 2
	chats  int           // that get the broadcast
	each   int           // messages to each of them
	pause  time.Duration // of a person between two messages
	people []person      // the first goes on during the broadcast
}

// newDemo returns the demonstration as users see it. A person pauses for a little over a
// second, since Telegram lets a bot answer about once a second in a chat.
func newDemo(s settings, cfg config.Config) demo {
	cfg.AppID, cfg.AppHash = 1, config.NewSecret("demo")
	cfg.StoreFile = "" // it leaves no trace, and finds none of an account
	return demo{
		settings: s,
		cfg:      cfg,
		dc:       localdc.Options{Limits: localdc.Published()},
		first:    4, // the login shows how a client is sent on to its own data centre
		chats:    100,
		each:     3,
		pause:    1100 * time.Millisecond,
		people:   people(),
	}
}

// run returns a report and errInterrupted if ctx was done before the end, and a report
// and errReported if something was lost or flooded.
func (d demo) run(ctx context.Context) (_ report, err error) {
	cloud, err := localdc.New(d.dc)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cloud.Close()) }()
	t := cloud.ClientOptions()
	t.DC = d.first
	b, stop, err := d.start(ctx, d.cfg, t)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := d.checkOpen(b); err != nil {
		return nil, err
	}
	d.introduce(b)

	p := &play{demo: d, cloud: cloud, bot: b, talk: conversation{patience: d.patience()}}
	err = b.run(ctx, localdc.DemoBotToken, p.run)
	r := p.finish()
	if r.Interrupted = ctx.Err() != nil; r.Interrupted {
		return r, errInterrupted
	}
	r.Lost = r.Messages - r.Sent
	r.OK = err == nil && r.Lost == 0 && r.Duplicates == 0 && r.Answered == r.Asked && r.Floods == 0
	if err == nil && !r.OK {
		err = errReported
	}
	return r, err
}

// checkOpen refuses limits under which a demonstration would never end.
func (d demo) checkOpen(b *bot) error {
	limits := map[string]ratelimit.Limit{"chats.private": d.chatLimit()}
	for category, stats := range b.client.Limiter().Stats() {
		limits["rate_limits."+category.String()] = stats.Limit
	}
	for key, limit := range limits {
		if limit != (ratelimit.Limit{}) && limit.Paused() {
			return usageError{fmt.Errorf("%s is %v, which lets nothing through: the demonstration would never end", key, limit)}
		}
	}
	return nil
}

// chatLimit is the client's limit in each chat of the demonstration, zero for none: all
// of them are with users, and the account is a bot.
func (d demo) chatLimit() ratelimit.Limit {
	private, _ := invoke.DefaultChatLimits()
	rule, err := d.limits.Chats.Private.Apply(private)
	if err != nil || d.limits.Chats.Mode == invoke.ChatsNever { // the settings have been checked
		return ratelimit.Limit{}
	}
	return rule.(ratelimit.Limit)
}

// patience is how long a person waits for an answer before it counts as lost. The turn
// of the answer in its own chat comes on top.
func (d demo) patience() time.Duration {
	if rate := d.chatLimit().Rate; rate > 0 {
		return answerTimeout + time.Duration(float64(time.Second)/rate)
	}
	return answerTimeout
}

func (d demo) introduce(b *bot) {
	l, stats, chat := d.dc.Limits, b.client.Limiter().Stats(), "no limit"
	if limit := d.chatLimit(); limit != (ratelimit.Limit{}) {
		chat = limit.String()
	}
	fmt.Fprintln(d.out, "A Telegram data centre on loopback. No account, no network.")
	fmt.Fprintf(d.out, "  its limits:      messages %g/s burst %d, in a chat %g/s burst %d; what is beyond is answered with FLOOD_WAIT\n",
		l.Account.PerSecond, l.Account.Burst, l.Chat.PerSecond, l.Chat.Burst)
	fmt.Fprintf(d.out, "  the client's:    messages %v, in a chat %s, all calls %v\n", stats[classify.Message].Limit, chat, stats[classify.Global].Limit)
}

// play is a demonstration under way.
type play struct {
	demo
	cloud *localdc.Cloud
	bot   *bot

	chats     []*localdc.Chat
	broadcast *broadcast
	talk      conversation
	report    demoReport
}

func (p *play) run(ctx context.Context, self *tg.User) error {
	fmt.Fprintf(p.out, "@%s logged in over MTProto: it called at DC %d and is at home in DC %d (on purpose, to show the move).\n",
		self.Username, p.first, p.bot.client.Config().ThisDC)
	var people errgroup.Group
	users := make([]*localdc.User, len(p.people))
	for i, person := range p.people {
		users[i] = p.cloud.AddUser(person.name)
		people.Go(func() error { return p.talk.greet(ctx, users[i], person.says) })
	}
	if err := people.Wait(); err != nil {
		return err
	}
	p.talk.print(p.out)
	fmt.Fprintln(p.out, "  (All of them share the tokens that /limits shows, and typing notices take some too.)")
	fmt.Fprintf(p.out, "Broadcast of %d messages to %d chats, while %s goes on talking:\n", p.demo.chats*p.each, p.demo.chats, p.people[0].name)

	peers := make([]tg.InputPeerClass, p.demo.chats)
	for i := range peers {
		chat := p.cloud.AddUser(fmt.Sprintf("reader %d", i+1)).Chat
		p.chats = append(p.chats, chat)
		peers[i] = chat.InputPeer()
	}
	p.broadcast = &broadcast{bot: p.bot, chats: peers, each: p.each, step: newProgress(p.out, len(peers)*p.each)}
	over := make(chan struct{})
	var person errgroup.Group
	person.Go(func() error { return p.talk.goOn(ctx, users[0], p.pause, over) })
	err := p.measure(ctx)
	close(over)
	return errors.Join(err, person.Wait())
}

// measure runs the broadcast and compares its time with the least possible.
func (p *play) measure(ctx context.Context) error {
	r := &p.report
	tokens, messages := p.bot.client.Limiter().Stats(), p.cloud.Record().Total.Messages
	start := time.Now()
	err := p.broadcast.run(ctx)
	took := time.Since(start)
	r.Meanwhile = p.cloud.Record().Total.Messages - messages
	r.Seconds, r.BackedOffSeconds = seconds(took), seconds(p.broadcast.backedOff)
	r.Congestion = p.broadcast.congestion()
	if err != nil {
		return err // half a broadcast compares with nothing
	}
	least, limit := leastTime(tokens, p.chatLimit(), p.dc.Limits, r.Meanwhile, p.each)
	r.LeastSeconds, r.Limit = seconds(least), limit
	if least > 0 {
		r.Ratio = rounded(took.Seconds() / least.Seconds())
	}
	return nil
}

// finish counts what the data centre has, which is the one that knows.
func (p *play) finish() demoReport {
	r := p.report
	r.Chats, r.Messages = p.demo.chats, p.demo.chats*p.each
	for _, chat := range p.chats {
		found := make(map[string]int)
		for _, m := range chat.Messages() {
			found[m.Message]++
		}
		for i := range p.each {
			n := found[p.broadcast.text(i)]
			r.Sent += min(n, 1)
			r.Duplicates += max(n-1, 0)
		}
	}
	r.Asked, r.Answered = p.talk.asked, p.talk.answered
	r.LongestAnswerSeconds = seconds(p.talk.longest)
	r.Floods = len(p.cloud.Record().Floods())
	r.traffic = p.bot.traffic(p.tally)
	return r
}

// leastTime is the shortest time in which so many messages could have gone out, and the
// limit that decides: each bucket has to refill what it did not hold at the start. The
// data centre does not tell what its buckets held; they count as full, which can only
// make the time shorter. chat is the client's limit in a chat, zero for none; a chat of
// the broadcast got each messages, and none before.
func leastTime(before map[classify.Category]ratelimit.GateStats, chat ratelimit.Limit, dc localdc.Limits, messages, each int) (_ time.Duration, limit string) {
	var least float64
	limit = "none"
	consider := func(name string, n int, tokens, rate float64) {
		if time := (float64(n) - tokens) / rate; rate > 0 && time > least { // a rate of 0 is no limit
			least, limit = time, name
		}
	}
	for _, category := range []classify.Category{classify.Message, classify.Global} {
		stats := before[category]
		consider("client "+stats.Name+" "+stats.Limit.String(), messages, stats.Tokens, stats.Limit.Rate)
	}
	consider("client chat "+chat.String(), each, float64(chat.Burst), chat.Rate)
	consider("data centre account", messages, float64(dc.Account.Burst), dc.Account.PerSecond)
	consider("data centre chat", each, float64(dc.Chat.Burst), dc.Chat.PerSecond)
	return time.Duration(least * float64(time.Second)), limit
}
