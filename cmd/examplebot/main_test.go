package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-faster/errors"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/config"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/ratelimit"
)

// asProgram is set for a copy of the test binary that is to be the program itself.
const asProgram = "WEIR_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if _, ok := os.LookupEnv(asProgram); ok {
		main() // exits
	}
	goleak.VerifyTestMain(m)
}

// output is what a program writes, to be read while it does.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
	seen map[string]func() // called once, when the text comes by
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(p)
	for text, f := range o.seen {
		if strings.Contains(o.text.String(), text) {
			delete(o.seen, text)
			f()
		}
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// on calls f once the text was written.
func (o *output) on(text string, f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen == nil {
		o.seen = make(map[string]func())
	}
	o.seen[text] = f
}

// program is a process of a test's.
type program struct {
	stdout, stderr output
	env            map[string]string
}

func (p *program) process(args ...string) process {
	return process{args, func(name string) (string, bool) { v, ok := p.env[name]; return v, ok }, &p.stdout, &p.stderr}
}

func (p *program) run(t *testing.T, args ...string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return p.process(args...).run(ctx)
}

func TestClassifyPrintsALineForEachName(t *testing.T) {
	var p program
	p.env = map[string]string{"APP_ID": "wrong"} // no configuration is read
	require.Equal(t, exitOK, p.run(t, "classify", "messages.sendMessage", "upload.getFile", "help.getConfig"))
	require.Equal(t, "messages.sendMessage\tmessage\nupload.getFile\tmedia\nhelp.getConfig\tquery\n", p.stdout.String())
	require.Empty(t, p.stderr.String())
}

func TestClassifyNamesAllThatAreNoFunctions(t *testing.T) {
	var p program
	require.Equal(t, exitUsage, p.run(t, "classify", "messages.sendMesage", "help.getConfig", "SendMessage"))
	require.Equal(t, "help.getConfig\tquery\n", p.stdout.String())
	require.Contains(t, p.stderr.String(), `"messages.sendMesage" is not the name of a function; did you mean messages.sendMessage?`)
	require.Contains(t, p.stderr.String(), `"SendMessage" is not the name of a function; did you mean messages.sendMessage?`)
}

func TestMistakesOnTheCommandLine(t *testing.T) {
	for want, args := range map[string][]string{
		"unknown flag --bogus":                                                          {"--bogus"},
		"unknown flag --jsn":                                                            {"-jsn"},
		"unexpected argument bogus; see examplebot --help":                              {"bogus"},
		`expected "<name> ..."`:                                                         {"classify"},
		"unknown flag --json; see examplebot classify --help":                           {"classify", "--json", "help.getConfig"},
		`flag --json applies to the default command "run"`:                              {"--json", "classify", "help.getConfig"},
		"--http: no value: want HOST:PORT":                                              {"--http"},
		"--http: no value: want HOST:PORT; see examplebot --help":                       {"run", "--http", "--json"},
		"--config: no value: want FILE":                                                 {"--config="},
		"--log-level: no value: want LEVEL":                                             {"--log-level", ""},
		`but got "maybe"`:                                                               {"--json=maybe"},
		`":9090" names no host and would listen on every network; write 127.0.0.1:9090`: {"--http", ":9090"},
		`--http: "9090" names no host`:                                                  {"-http", "9090"},
		`"127.0.0.1" is not host:port`:                                                  {"--http=127.0.0.1"},
		`"127.0.0.1:65536" does not end in a port from 0 to 65535`:                      {"--http=127.0.0.1:65536"},
		`--log-level: "loud" is not a level; write debug, info`:                         {"--log-level", "loud"},
		`--log-level: "fatal" is not a level; write debug, info`:                        {"--log-level", "fatal"},
		"no-such-file.yaml":                                                             {"--config", "no-such-file.yaml"},
		"rate_limits.media is 0/s burst 10, which lets nothing through":                 {"--config", "testdata/paused.yaml"},
		"chats.private is 0/s burst 3, which lets nothing through":                      {"--config", "testdata/paused-chats.yaml"},
		"rate_limits.massage is not a known key;":                                       {"--config", "testdata/wrong.yaml"},
	} {
		var p program
		require.Equal(t, exitUsage, p.run(t, args...), "%v: %s", args, &p.stderr)
		require.Contains(t, p.stderr.String(), want)
		require.NotContains(t, p.stdout.String(), "logged in", "nothing was sent")
	}
}

func TestMistakesAreToldTogether(t *testing.T) {
	var p program
	p.env = map[string]string{"APP_ID": "12345", "BOT_TOKEN": "12345:secret-of-the-bot"}
	require.Equal(t, exitUsage, p.run(t, "--config", "testdata/wrong.yaml"))
	for _, want := range []string{"massage", "dc: 7", "app_hash is missing"} {
		require.Contains(t, p.stderr.String(), want)
	}
	require.NotContains(t, p.stderr.String(), "secret-of-the-bot")

	p = program{}
	require.Equal(t, exitUsage, p.run(t, "--http", ":1", "--log-level", "loud"))
	require.Contains(t, p.stderr.String(), "--http")
	require.Contains(t, p.stderr.String(), "--log-level")
}

func TestHelpListsJustWhatACommandTakes(t *testing.T) {
	always := []string{"help", "version"}
	all := []string{"help", "version", "config", "http", "json", "log-level"}
	for command, flags := range map[string][]string{"": all, "run": all, "classify": always} {
		var p program
		args := strings.Fields(command)
		require.Equal(t, exitOK, p.run(t, append(args, "--help")...))
		_, text, _ := strings.Cut(p.stdout.String(), "\nFlags:\n")
		var listed []string
		for _, found := range regexp.MustCompile(`(?m)^  .{4}--([a-z-]+)`).FindAllStringSubmatch(text, -1) {
			listed = append(listed, found[1])
		}
		require.ElementsMatch(t, flags, listed, command)
		for _, flag := range all {
			if !slices.Contains(flags, flag) {
				p = program{}
				require.Equal(t, exitUsage, p.run(t, append(args, "--"+flag, "help.getConfig")...))
				require.Contains(t, p.stderr.String(), "unknown flag --"+flag)
			}
		}
	}
}

func TestHelpAndVersion(t *testing.T) {
	var p program
	require.Equal(t, exitOK, p.run(t, "--help"))
	for _, want := range []string{"APP_ID", "BOT_TOKEN", "SESSION_FILE", "--config", "--http", "--json", "Examples:", "classify"} {
		require.Contains(t, p.stdout.String(), want)
	}
	p = program{}
	require.Equal(t, exitOK, p.run(t, "-version"))
	require.Contains(t, p.stdout.String(), "examplebot ")
}

func TestDashes(t *testing.T) {
	require.Equal(t,
		[]string{"--json", "--http=a:1", "-h", "--x", "a-b", "-", "--", "-json"},
		doubleDashes([]string{"-json", "-http=a:1", "-h", "--x", "a-b", "-", "--", "-json"}))
}

// The example says that its limits are the defaults.
func TestExampleConfigurationHasTheDefaultLimits(t *testing.T) {
	cfg, err := config.Load("../../config/example.yaml", nil, config.Flags{})
	require.NoError(t, err)
	changes, err := rateLimits(cfg.RateLimits)
	require.NoError(t, err)
	limits := make(map[classify.Category]ratelimit.Limit)
	for category, change := range changes {
		rule, err := change.Apply(ratelimit.Limit{Rate: 77, Burst: 77})
		require.NoError(t, err)
		limits[category] = rule.(ratelimit.Limit)
	}
	require.Equal(t, invoke.DefaultLimits(), limits)

	chats, err := chatLimits(cfg.Chats)
	require.NoError(t, err)
	private, group := invoke.DefaultChatLimits()
	require.Equal(t, wantChats{Private: private, Group: group}, effective(t, chats))
	require.Zero(t, cfg.MaxWaiters)
}

// wantChats is what a chat is limited to in the end.
type wantChats struct {
	Mode    invoke.ChatMode
	Private ratelimit.Limit
	Group   ratelimit.Window
}

func effective(t *testing.T, chats invoke.ChatLimits) wantChats {
	t.Helper()
	private, group := invoke.DefaultChatLimits()
	privateRule, err := chats.Private.Apply(private)
	require.NoError(t, err)
	groupRule, err := chats.Group.Apply(group)
	require.NoError(t, err)
	return wantChats{chats.Mode, privateRule.(ratelimit.Limit), groupRule.(ratelimit.Window)}
}

func TestSettingsAreTranslated(t *testing.T) {
	rate := 3.0
	changes, err := rateLimits(map[string]config.RateLimit{"media": {Rate: &rate}})
	require.NoError(t, err)
	rule, err := changes[classify.Media].Apply(ratelimit.Limit{Rate: 5, Burst: 10})
	require.NoError(t, err)
	require.Equal(t, ratelimit.Limit{Rate: 3, Burst: 10}, rule)

	_, err = rateLimits(map[string]config.RateLimit{"massage": {}, "medium": {}})
	require.ErrorContains(t, err, "massage")
	require.ErrorContains(t, err, "medium")

	for text, want := range map[string]wantChats{
		"{}":                     {Private: perChat(1, 3), Group: perMinute(20)},
		"{mode: bots}":           {Private: perChat(1, 3), Group: perMinute(20)},
		"{mode: never}":          {Mode: invoke.ChatsNever, Private: perChat(1, 3), Group: perMinute(20)},
		"{mode: always}":         {Mode: invoke.ChatsAlways, Private: perChat(1, 3), Group: perMinute(20)},
		"{private: {rate: 0.5}}": {Private: perChat(0.5, 3), Group: perMinute(20)},
		"{private: {burst: 5}}":  {Private: perChat(1, 5), Group: perMinute(20)},
		"{private: {rate: 0, burst: 0}, group: {limit: 0}}": {Private: perChat(0, 0), Group: perMinute(0)},
		"{group: {limit: 5}}":                               {Private: perChat(1, 3), Group: perMinute(5)},
		"{group: {period: 1h}}":                             {Private: perChat(1, 3), Group: ratelimit.Window{Limit: 20, Period: time.Hour}},
	} {
		cfg, err := config.Parse([]byte("chats: " + text + "\nmax_waiters: 7"))
		require.NoError(t, err, text)
		s, err := runCommand{}.settings(cfg, (&program{}).process())
		require.NoError(t, err, text)
		require.Equal(t, want, effective(t, s.limits.Chats), text)
		require.Equal(t, 7, s.limits.MaxWaiters)
		limiter, err := invoke.NewLimiter(invoke.Options{Chats: s.limits.Chats})
		require.NoError(t, err, text)
		limiter.Close()
	}

	for want, text := range map[flood.Threshold]string{
		flood.Default: "default", flood.Never: "never", flood.Always: "always", flood.UpTo(90 * time.Second): "1m30s",
	} {
		cfg, err := config.Parse([]byte("sleep_threshold: " + text))
		require.NoError(t, err)
		require.Equal(t, want, sleepThreshold(cfg.SleepThreshold))
	}
}

func perChat(rate float64, burst int) ratelimit.Limit {
	return ratelimit.Limit{Rate: rate, Burst: burst}
}

func perMinute(n int) ratelimit.Window { return ratelimit.Window{Limit: n, Period: time.Minute} }

// What no gate takes is an error that names the keys of the file, all of them at once.
func TestLimitsThatNoGateTakes(t *testing.T) {
	cfg, err := config.Parse([]byte(`
rate_limits: {message: {rate: 1e-9}}
chats: {private: {rate: 1e-10}, group: {period: 1000000h}}
`))
	require.NoError(t, err)
	_, err = runCommand{}.settings(cfg, (&program{}).process())
	require.EqualError(t, err, `rate_limits.message.rate is 1e-09: want one that fills a burst of 30 within 100 years
chats.private.rate is 1e-10: want one that fills a burst of 3 within 100 years
chats.group.period is 3.6e+09: want seconds from 0.001 to 100 years (in Go, time.Second and its like)`)
}

func TestErrorsAreLoggedInOneLine(t *testing.T) {
	var out output
	logger, err := newLogger(&out, "info")
	require.NoError(t, err)
	logger.Debug("not this")
	logger.With(zap.Error(errors.New("broken"))).Info("Restarting", zap.NamedError("cause", errors.Wrap(errors.New("pipe"), "write")))
	require.Equal(t, 1, strings.Count(out.String(), "\n"))
	require.Contains(t, out.String(), `INFO	Restarting	{"error": "broken", "cause": "write: pipe"}`)
}

// decode reads what --json printed.
func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var fields map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &fields), text)
	return fields
}
