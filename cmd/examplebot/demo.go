package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/config"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/localdc"
	"github.com/weirtg/weir/ratelimit"
)

// demo is the bot on a data centre of its own, with everything that happens there.
type demo struct {
	settings
	cfg    config.Config
	dc     localdc.Options
	first  int           // the data centre to call at; that of the account is 2
	chats  int           // that get the broadcast
	each   int           // messages to each of them
	pause  time.Duration // of a person between two messages
	people []person      // who talk to the bot; the first goes on during the broadcast
}

// newDemo returns the demonstration as people see it. A person pauses for a little
// over a second, for that is what Telegram lets a bot answer in one chat.
func newDemo(s settings, cfg config.Config) demo {
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

// demoReport is what happened in a demonstration.
type demoReport struct {
	OK          bool `json:"ok"`          // nothing was lost, sent twice or flooded
	Interrupted bool `json:"interrupted"` // the rest is what happened before that

	Chats      int `json:"chats"`
	Messages   int `json:"messages"`   // of the broadcast
	Sent       int `json:"sent"`       // of those, that stand in their chats
	Lost       int `json:"lost"`       // of those, that do not; 0 when interrupted
	Duplicates int `json:"duplicates"` // that stand there once too often
	Asked      int `json:"asked"`      // messages from people
	Answered   int `json:"answered"`   // of those, that were answered
	// AnsweredBefore is how many of them were answered before the broadcast.
	AnsweredBefore int `json:"answered_before"`
	// LongestAnswerSeconds is how long a person waited for an answer at most.
	LongestAnswerSeconds float64 `json:"longest_answer_seconds"`

	Floods int `json:"floods"` // calls that the data centre answered with a wait

	// Seconds is how long the broadcast took, LeastSeconds the least possible
	// under the limits, Ratio the one by the other, Limit the limit that counts.
	// The last three are zero for a broadcast that was cut short.
	Seconds      float64 `json:"seconds"`
	LeastSeconds float64 `json:"least_seconds"`
	Ratio        float64 `json:"ratio"`
	Limit        string  `json:"limit"`
	sum          string  // that gives LeastSeconds
	// Meanwhile is how many messages went out in that time, answers included; the
	// answer to a question that was still open at the end is not.
	Meanwhile int `json:"meanwhile"`
	// BackedOffSeconds is how long the broadcast held back because of congestion.
	BackedOffSeconds float64    `json:"backed_off_seconds"`
	Congestion       congestion `json:"congestion"`
	traffic
}

// congestion is what the client's limiter said of itself: before the broadcast, as
// seen by it, and after.
type congestion struct {
	Before  float64 `json:"before"`
	Mean    float64 `json:"mean"`
	Highest float64 `json:"highest"`
	After   float64 `json:"after"`
}

// run returns a report and errInterrupted if ctx was done before the end, and a report
// and errReported if it tells of a loss or a flood.
func (d demo) run(ctx context.Context) (_ report, err error) {
	cloud, err := localdc.New(d.dc)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cloud.Close()) }()

	t := cloud.ClientOptions()
	t.DC = d.first
	cfg, remove, err := temporary(d.cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	k, err := d.open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	b, stop, err := d.start(1, "demo", t, k)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := d.checkOpen(b); err != nil {
		return nil, err
	}
	d.introduce(b)

	play := &play{demo: d, cloud: cloud, bot: b, talk: conversation{patience: d.patience()}}
	err = b.run(ctx, localdc.DemoBotToken, play.run)
	r := play.finish()
	if r.Interrupted = ctx.Err() != nil; !r.Interrupted {
		r.Lost = r.Messages - r.Sent
	}
	r.OK = err == nil && !r.Interrupted && r.Lost == 0 && r.Duplicates == 0 && r.Answered == r.Asked && r.Floods == 0
	switch {
	case r.Interrupted:
		return r, errInterrupted
	case err == nil && !r.OK:
		return r, errReported
	}
	return r, err
}

// checkOpen refuses limits under which a demonstration would never end.
func (d demo) checkOpen(b *bot) error {
	if chat := d.chatLimit(); chat != (ratelimit.Limit{}) && chat.Paused() {
		return usageError{fmt.Errorf("chats.private is %v, which lets nothing through: the demonstration would never end", chat)}
	}
	for category, stats := range b.client.Limiter().Stats() {
		if stats.Limit.Paused() {
			return usageError{fmt.Errorf("rate_limits.%v is %v, which lets nothing through: the demonstration would never end", category, stats.Limit)}
		}
	}
	return nil
}

// chatLimit is what the client keeps to in each chat of the demonstration, zero if it
// keeps to nothing: all of them are with users, and the account is a bot.
func (d demo) chatLimit() ratelimit.Limit {
	if d.limits.Chats.Mode == invoke.ChatsNever {
		return ratelimit.Limit{}
	}
	private, _ := invoke.DefaultChatLimits()
	rule, err := d.limits.Chats.Private.Apply(private)
	limit, ok := rule.(ratelimit.Limit)
	if err != nil || !ok {
		return ratelimit.Limit{} // the settings have been checked
	}
	return limit
}

// patience is how long a person waits for an answer before it counts as lost. That it
// has to wait its turn in its own chat is no loss.
func (d demo) patience() time.Duration {
	patience := answerTimeout
	if rate := d.chatLimit().Rate; rate > 0 {
		patience += time.Duration(float64(time.Second) / rate)
	}
	return patience
}

func (d demo) introduce(b *bot) {
	l := d.dc.Limits
	fmt.Fprintln(d.out, "A Telegram data centre on loopback. No account, no network.")
	fmt.Fprintf(d.out, "  its limits:      messages %g/s burst %d, in a chat %g/s burst %d; what is beyond is answered with FLOOD_WAIT\n",
		l.Account.PerSecond, l.Account.Burst, l.Chat.PerSecond, l.Chat.Burst)
	stats := b.client.Limiter().Stats()
	chat := "no limit"
	if limit := d.chatLimit(); limit != (ratelimit.Limit{}) {
		chat = limit.String()
	}
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
	p.report.AnsweredBefore = p.talk.answered
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
	r.Congestion.Before = rounded(p.bot.client.Congestion())
	tokens, calls := p.bot.client.Limiter().Stats(), p.tally.now().calls
	messages := p.cloud.Record().Total.Messages

	start := time.Now()
	err := p.broadcast.run(ctx)
	took := time.Since(start)

	made := p.tally.now().calls
	for category, n := range calls {
		made[category] -= n
	}
	r.Meanwhile = p.cloud.Record().Total.Messages - messages
	r.Seconds, r.BackedOffSeconds = seconds(took), seconds(p.broadcast.backedOff)
	r.Congestion.Mean, r.Congestion.Highest = rounded(p.broadcast.congestion.mean()), rounded(p.broadcast.congestion.highest)
	if err != nil {
		return err // half a broadcast compares with nothing
	}
	least, limit, sum := leastTime(tokens, made, p.chatLimit(), p.dc.Limits, r.Meanwhile, p.each)
	r.LeastSeconds, r.Limit, r.sum = seconds(least), limit, sum
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
		stands := make(map[string]int)
		for _, m := range chat.Messages() {
			stands[m.Message]++
		}
		for i := range p.each {
			n := stands[p.broadcast.text(i)]
			r.Sent += min(n, 1)
			r.Duplicates += max(n-1, 0)
		}
	}
	r.Asked, r.Answered = p.talk.asked, p.talk.answered
	r.LongestAnswerSeconds = seconds(p.talk.longest)
	r.Floods = len(p.cloud.Record().Floods())
	r.Congestion.After = rounded(p.bot.client.Congestion())
	r.traffic = p.bot.traffic(p.tally.now())
	return r
}

func (r demoReport) text(w io.Writer) {
	if r.Interrupted {
		fmt.Fprintln(w, "\nInterrupted. Until then:")
	}
	fmt.Fprintf(w, "\nsent         %d of %d messages to %d chats, %d lost, %d twice\n", r.Sent, r.Messages, r.Chats, r.Lost, r.Duplicates)
	fmt.Fprintf(w, "answered     %d of %d messages from people, the slowest in %.3f s\n", r.Answered, r.Asked, r.LongestAnswerSeconds)
	if !r.Interrupted {
		during := r.Meanwhile - r.Sent - r.Duplicates
		fmt.Fprintf(w, "             %d before the broadcast, %d during it, %d when it was over\n", r.AnsweredBefore, during, r.Answered-r.AnsweredBefore-during)
		fmt.Fprintf(w, "time         %.3f s for the broadcast, in which %d messages went out: its own %d and %d answers\n", r.Seconds, r.Meanwhile, r.Meanwhile-during, during)
	}
	if r.LeastSeconds > 0 {
		fmt.Fprintf(w, "             the limits allow no less than %.3f s: it took %.4f times that\n", r.LeastSeconds, r.Ratio)
		fmt.Fprintf(w, "             (the limit that decides is %s: %s)\n", r.Limit, r.sum)
	}
	fmt.Fprintf(w, "floods       %d calls were answered with a wait, as the data centre recorded; %d as the client saw\n", r.Floods, r.ClientFloods)
	fmt.Fprintf(w, "congestion   %.2f before the broadcast; during it %.2f on average and %.2f at most; %.2f at the end (0 is idle, 1 is a call that waits)\n",
		r.Congestion.Before, r.Congestion.Mean, r.Congestion.Highest, r.Congestion.After)
	r.traffic.text(w, r.Sent+r.Duplicates+r.Answered)
	fmt.Fprintf(w, "             Before each call, the broadcast looks for room with Congestion() and TryAcquire(), outside of the queues, so\n")
	fmt.Fprintf(w, "             that answers go first. That took %.3f s in all, time that does not count as waits.\n", r.BackedOffSeconds)
	if !r.OK && !r.Interrupted {
		fmt.Fprintln(w, "FAILED: something was lost, sent twice or flooded.")
	}
}
