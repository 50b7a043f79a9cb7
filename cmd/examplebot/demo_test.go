package main

import (
	"cmp"
	"context"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/config"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/localdc"
	"github.com/weirtg/weir/ratelimit"
)

// smallDemo is a demonstration of a second or two. Its data centre lets people talk
// faster than Telegram does.
func smallDemo(t *testing.T, p *program, flags runCommand) demo {
	t.Helper()
	s, err := flags.settings(config.Config{LogLevel: "info", HTTP: string(flags.HTTP)}, p.process())
	require.NoError(t, err)
	s.limits.RateLimits = map[classify.Category]ratelimit.Change{
		classify.Message: ratelimit.Rate(50).Burst(20),
		classify.Global:  ratelimit.Rate(100).Burst(100),
	}
	s.limits.Chats.Private = ratelimit.Rate(20).Burst(5) // as below
	d := newDemo(s, config.Config{})
	d.dc.Limits.Account = localdc.Rate{PerSecond: 60, Burst: 25}
	d.dc.Limits.Chat = localdc.Rate{PerSecond: 20, Burst: 5}
	d.chats, d.pause = 20, 100*time.Millisecond
	d.first = 2 // a key exchange less
	return d
}

func TestDemonstrationLosesNothingAndIsNotFlooded(t *testing.T) {
	var p program
	d := smallDemo(t, &p, runCommand{})
	d.first = 4
	result, err := d.run(t.Context())
	require.NoError(t, err)
	r := result.(demoReport)
	require.True(t, r.OK)
	require.False(t, r.Interrupted)
	require.Equal(t, 60, r.Messages)
	require.Equal(t, 60, r.Sent)
	require.Zero(t, r.Lost+r.Duplicates+r.Floods+r.ClientFloods)
	require.Greater(t, r.Asked, 9, "somebody talked during the broadcast")
	require.Equal(t, r.Asked, r.Answered)
	// The last question may have been open still when the broadcast ended.
	require.InDelta(t, 60+r.Asked-9, r.Meanwhile, 1)
	require.LessOrEqual(t, r.Meanwhile, 60+r.Asked-9)
	require.Equal(t, "client message 50/s burst 20", r.Limit)
	require.GreaterOrEqual(t, r.Ratio, 1.0)
	require.Less(t, r.Ratio, 2.0, "the machine may be busy")
	require.Positive(t, r.TypingSent)
	require.Positive(t, r.TypingSkipped, "there were none during the broadcast")
	require.Greater(t, r.Congestion.Mean, 0.5)
	require.Contains(t, p.stdout.String(), "called at DC 4 and is at home in DC 2")
	require.Contains(t, p.stdout.String(), "alice: /ping → pong")
	require.Contains(t, p.stdout.String(), "60 of 60 sent")

	var text output
	r.text(&text)
	require.Contains(t, text.String(), "sent         60 of 60 messages to 20 chats, 0 lost, 0 twice\n")
	require.NotContains(t, text.String(), "FAILED")
}

// Who reads the output has to be able to add its figures up, and sees answers whole.
func TestOutputIsWholeAndAddsUp(t *testing.T) {
	var p program
	result, err := smallDemo(t, &p, runCommand{}).run(t.Context())
	require.NoError(t, err)
	var text output
	result.text(&text)
	figures := func(pattern string) []float64 {
		t.Helper()
		found := regexp.MustCompile(strings.ReplaceAll(pattern, "#", `([\d.]+)`)).FindStringSubmatch(text.String())
		require.NotNil(t, found, "%s\n%s", pattern, &text)
		var all []float64
		for _, f := range found[1:] {
			v, err := strconv.ParseFloat(f, 64)
			require.NoError(t, err)
			all = append(all, v)
		}
		return all
	}
	sent := figures(`sent +# of`)[0]
	answered := figures(`answered +# of`)[0]
	time := figures(`# s for the broadcast and the # answers meanwhile; the limits allow no less than # s: it took # times`)
	require.Less(t, time[1], answered)
	require.InDelta(t, time[0], time[2]*time[3], 0.01)
	calls := figures(`calls +#: # messages, # typing notices, # others`)
	require.Equal(t, calls[0], calls[1]+calls[2]+calls[3])
	require.Equal(t, sent+answered, calls[1])
	require.Greater(t, calls[3], 0.0)
	typing := figures(`typing +# notices sent, # left out`)
	require.Equal(t, calls[2], typing[0])
	require.Equal(t, answered, typing[0]+typing[1], "each answer is announced or not")
	for _, category := range classify.Categories() { // answers are shown whole
		require.Contains(t, p.stdout.String(), "\n      "+category.String()+": ")
	}
}

// A chat of a person's may be slower than the broadcast: that is told, and no loss.
func TestDemonstrationWithSlowChats(t *testing.T) {
	var p program
	d := smallDemo(t, &p, runCommand{})
	d.limits.Chats.Private = ratelimit.Rate(2).Burst(1)
	d.people = d.people[:1]
	result, err := d.run(t.Context())
	require.NoError(t, err)
	r := result.(demoReport)
	require.Equal(t, "client chat 2/s burst 1", r.Limit)
	require.InDelta(t, 1, r.LeastSeconds, 0.001, "two messages of three have to wait")
	require.GreaterOrEqual(t, r.Ratio, 1.0)
	require.Greater(t, r.LongestAnswerSeconds, 0.4)
	require.Contains(t, p.stdout.String(), "in a chat 2/s burst 1")

	require.Equal(t, 10*time.Second+500*time.Millisecond, d.patience())
	d.limits.Chats.Mode = invoke.ChatsNever
	require.Equal(t, 10*time.Second, d.patience())
	require.Zero(t, d.chatLimit())
}

// The fields are what programs rely on.
func TestReportAsJSON(t *testing.T) {
	var p program
	flags := runCommand{JSON: true}
	result, err := smallDemo(t, &p, flags).run(t.Context())
	require.NoError(t, err)
	require.Empty(t, p.stdout.String(), "all else goes to standard error")
	require.Contains(t, p.stderr.String(), "60 of 60 sent")
	require.NoError(t, flags.print(p.process(), result))

	fields := decode(t, p.stdout.String())
	for _, name := range []string{
		"ok", "interrupted", "chats", "messages", "sent", "lost", "duplicates", "asked", "answered", "longest_answer_seconds",
		"floods", "seconds", "least_seconds", "ratio", "limit", "meanwhile", "backed_off_seconds", "congestion",
		"calls", "client_floods", "waits", "waited_seconds", "longest_wait_seconds",
		"typing_sent", "typing_skipped",
	} {
		require.Contains(t, fields, name)
		delete(fields, name)
	}
	require.Empty(t, fields)
}

func TestFloodIsReportedAndFails(t *testing.T) {
	var p program
	d := smallDemo(t, &p, runCommand{})
	d.dc.Limits.Account = localdc.Rate{PerSecond: 20, Burst: 10} // less than the client keeps to
	d.dc.Limits.Lengthen = -1                                    // the test is short
	d.people, d.each = d.people[:1], 1
	result, err := d.run(t.Context())
	require.ErrorIs(t, err, errReported)
	r := result.(demoReport)
	require.False(t, r.OK)
	require.Positive(t, r.Floods)
	require.Zero(t, r.Lost+r.Duplicates, "floods were sat out")
	require.Equal(t, exitFailed, p.process().fail(err))
	require.NotContains(t, p.stderr.String(), "see the report")

	var text output
	r.text(&text)
	require.Contains(t, text.String(), "FAILED")
}

func TestLossIsReportedAndFails(t *testing.T) {
	var p program
	d := smallDemo(t, &p, runCommand{})
	d.dc.Limits.Account = localdc.Rate{PerSecond: 1, Burst: 10}
	d.client.SleepThreshold = flood.Never // a flood is the end of a message
	d.people, d.each, d.pause = d.people[:1], 1, time.Hour
	result, err := d.run(t.Context())
	require.ErrorIs(t, err, errReported)
	r := result.(demoReport)
	require.Positive(t, r.Lost)
	require.Equal(t, 20, r.Sent+r.Lost)
	require.Contains(t, p.stderr.String(), "A message of the broadcast was not sent")
}

func TestDemonstrationIsCutShortAnywhere(t *testing.T) {
	for _, at := range []string{"A Telegram data centre", "logged in", "Broadcast of", "10 of 60", "60 of 60"} {
		ctx, cancel := context.WithCancel(t.Context())
		var p program
		d := smallDemo(t, &p, runCommand{HTTP: "127.0.0.1:0"})
		p.stdout.on(at, cancel)
		result, err := d.run(ctx)
		cancel()
		require.ErrorIs(t, err, errInterrupted, at)
		require.Equal(t, exitInterrupted, p.process().fail(err))
		r := result.(demoReport)
		require.True(t, r.Interrupted, at)
		require.False(t, r.OK)
		require.Zero(t, r.Lost+r.Duplicates)
		if at == "10 of 60" {
			require.GreaterOrEqual(t, r.Sent, 10)
			require.Less(t, r.Sent, 60)
		}
		var text output
		r.text(&text)
		require.Contains(t, text.String(), "Interrupted")
	}
}

// The whole program, from the command line, cut short in its broadcast.
func TestCtrlC(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var p program
	p.stderr.on("50 of 300", cancel)
	require.Equal(t, exitInterrupted, p.process("-json").run(ctx))
	fields := decode(t, p.stdout.String())
	require.Equal(t, true, fields["interrupted"])
	require.GreaterOrEqual(t, fields["sent"], 50.0)
}

func TestPortInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	var p program
	require.Equal(t, exitFailed, p.run(t, "--http", taken.Addr().String()))
	require.Contains(t, p.stderr.String(), taken.Addr().String())
	require.Contains(t, p.stderr.String(), "address already in use")
	require.NotContains(t, p.stdout.String(), "logged in", "nothing was sent")
}

func TestLeastTime(t *testing.T) {
	for _, test := range []struct {
		name          string
		client        ratelimit.Limit
		used          float64 // of the client's tokens, before
		global        float64 // the rate of all calls, if not 30
		sends         int
		account, chat localdc.Rate
		each          int
		least         time.Duration
		limit         string
	}{
		{name: "the client's category", sends: 300, each: 3, account: localdc.Rate{PerSecond: 30, Burst: 30}, least: 13500 * time.Millisecond, limit: "client message 20/s burst 30"},
		{name: "tokens at the start", used: 29.5, sends: 31, each: 1, least: 1525 * time.Millisecond, limit: "client message 20/s burst 30"},
		{name: "all calls", global: 10, sends: 100, each: 1, least: 6 * time.Second, limit: "client global 10/s burst 40"},
		{name: "the data centre", sends: 300, each: 3, account: localdc.Rate{PerSecond: 10, Burst: 30}, least: 27 * time.Second, limit: "data centre account"},
		{name: "a chat", sends: 300, each: 23, chat: localdc.Rate{PerSecond: 1, Burst: 3}, least: 20 * time.Second, limit: "data centre chat"},
		{name: "a chat of the client's", sends: 300, each: 23, client: ratelimit.Limit{Rate: 0.5, Burst: 3}, chat: localdc.Rate{PerSecond: 1, Burst: 3}, least: 40 * time.Second, limit: "client chat 0.5/s burst 3"},
		{name: "chats that are faster", sends: 300, each: 3, client: ratelimit.Limit{Rate: 1, Burst: 3}, least: 13500 * time.Millisecond, limit: "client message 20/s burst 30"},
		{name: "nothing", sends: 30, each: 1, limit: "none"},
	} {
		before := map[classify.Category]ratelimit.GateStats{
			classify.Message: {Name: "message", Limit: ratelimit.Limit{Rate: 20, Burst: 30}, Tokens: 30 - test.used},
			classify.Global:  {Name: "global", Limit: ratelimit.Limit{Rate: cmp.Or(test.global, 30), Burst: 40}, Tokens: 40 - test.used},
		}
		least, limit := leastTime(before, test.client, localdc.Limits{Account: test.account, Chat: test.chat}, test.sends, test.each)
		require.Equal(t, test.least, least, test.name)
		require.Equal(t, test.limit, limit, test.name)
	}
}
