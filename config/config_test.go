package config_test

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/config"
)

//go:embed example.yaml
var sample []byte

const (
	hash  = "deadbeefdeadbeefdeadbeefdeadbeef"
	token = "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw_-"
)

// write puts text in a file of its own and returns its path.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weir.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// env is an environment of these variables.
func env(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		text, ok := vars[name]
		return text, ok
	}
}

// faults returns the lines of the error that Parse gives for text.
func faults(t *testing.T, text string) []string {
	t.Helper()
	c, err := config.Parse([]byte(text))
	require.Error(t, err)
	require.Zero(t, c, "a config with faults must not be usable")
	var e *config.Error
	require.ErrorAs(t, err, &e)
	lines := strings.Split(err.Error(), "\n")
	require.Len(t, lines, len(e.Faults), "a fault is a line")
	return lines
}

func ptr[T any](v T) *T { return &v }

func TestDefaults(t *testing.T) {
	want := config.Config{SessionFile: "examplebot.session.json", StoreFile: "examplebot.db"}
	for _, text := range []string{"", "\n", "# nothing\n", "---\n", "null", "{}", "\ufeff", "app_id:\nrate_limits:\nhttp: \"\"\n", "rate_limits: {message: , media: {}, bulk: {rate: }}",
		"chats:\nmax_waiters:\n", "chats: {mode: , private: {}, group: {limit: , period: }}\nmax_waiters: 0"} {
		c, err := config.Parse([]byte(text))
		require.NoError(t, err, "%q", text)
		require.Equal(t, want, c, "%q", text)
	}
	c, err := config.Load("", nil, config.Flags{})
	require.NoError(t, err)
	require.Equal(t, want, c)
	require.False(t, c.HasAccount())
}

func TestSampleNamesEveryKey(t *testing.T) {
	c, err := config.Parse(sample)
	require.NoError(t, err)
	require.True(t, c.HasAccount())
	limit := func(rate float64, burst int) config.RateLimit { return config.RateLimit{Rate: &rate, Burst: &burst} }
	require.Equal(t, config.Config{
		AppID:       12345,
		AppHash:     config.NewSecret("0123456789abcdef0123456789abcdef"),
		BotToken:    config.NewSecret("123456:not-a-token-of-any-bot"),
		SessionFile: "examplebot.session.json",
		StoreFile:   "examplebot.db", Account: "my_bot", OnStoreFailure: "local",
		Learning: ptr(true),
		RateLimits: map[string]config.RateLimit{
			"message": limit(20, 30), "media": limit(5, 10), "query": limit(30, 50), "admin": limit(15, 20),
			"bulk": limit(3, 5), "account": limit(10, 15), "global": limit(30, 40),
		},
		Chats: config.Chats{
			Mode: "bots", Private: limit(1, 3),
			Group: config.Window{Limit: ptr(20), Period: ptr(time.Minute)},
		},
		HTTP:     "127.0.0.1:9090",
		LogLevel: "info",
	}, c)
	// The message for an unknown key lists the known ones: the sample has them all.
	_, err = config.Parse([]byte("zzzzzzzzzz: 1\nrate_limits: {zzzzzzzzzz: 1}\nchats: {zzzzzzzzzz: 1}"))
	for line := range strings.Lines(err.Error()) {
		_, keys, found := strings.Cut(strings.TrimSpace(line), "the keys are ")
		require.True(t, found, line)
		for key := range strings.SplitSeq(keys, ", ") {
			require.Contains(t, string(sample), "\n"+strings.Repeat("  ", strings.Count(line, "."+"zzz"))+key, "the sample lacks %s", key)
		}
	}
}

func TestEveryValueKept(t *testing.T) {
	c, err := config.Parse([]byte(`
app_id: 2147483647
app_hash: DEADBEEFdeadbeef0123456789abcdef
bot_token: ` + token + `
session_file: /var/lib/weir/a session.json
store: rediss://:secret@redis.example:6379/1
account: Bot-1
on_store_failure: closed
learning: false
dc: 3
test_dc: true
sleep_threshold: 1m30s
rate_limits: {message: {rate: 0.5}, global: {burst: 0}, media: {rate: 1e6, burst: 1000000}, bulk: {rate: 0}}
chats: {mode: always, private: {rate: 0.25}, group: {period: 1m30s}}
max_waiters: 2147483647
http: "[::1]:0"
log_level: debug
`))
	require.NoError(t, err)
	require.Equal(t, config.Config{
		AppID:          2147483647,
		AppHash:        config.NewSecret("DEADBEEFdeadbeef0123456789abcdef"),
		BotToken:       config.NewSecret(token),
		SessionFile:    "/var/lib/weir/a session.json",
		RedisURL:       config.NewSecret("rediss://:secret@redis.example:6379/1"),
		Account:        "Bot-1",
		OnStoreFailure: "closed",
		Learning:       ptr(false),
		DC:             3,
		TestDC:         true,
		SleepThreshold: config.Threshold{UpTo: 90 * time.Second},
		RateLimits: map[string]config.RateLimit{
			"message": {Rate: ptr(0.5)}, "global": {Burst: ptr(0)},
			"media": {Rate: ptr(1e6), Burst: ptr(1000000)}, "bulk": {Rate: ptr(0.0)},
		},
		Chats: config.Chats{
			Mode: "always", Private: config.RateLimit{Rate: ptr(0.25)},
			Group: config.Window{Period: ptr(90 * time.Second)},
		},
		MaxWaiters: 2147483647,
		HTTP:       "[::1]:0",
		LogLevel:   "debug",
	}, c)
}

// A hash that YAML takes for a number is a hash all the same, to the last digit.
func TestHashThatLooksLikeANumber(t *testing.T) {
	for _, h := range []string{"01234567890123456789012345678901", "1234567890123456789012345678901e", "123456789012345678901234567890e5"} {
		c, err := config.Parse([]byte("app_hash: " + h))
		require.NoError(t, err)
		require.Equal(t, h, c.AppHash.Reveal())
	}
}

func TestThresholdKindsStayDistinct(t *testing.T) {
	for text, want := range map[string]config.Threshold{
		"default": {},
		"never":   {Never: true},
		"always":  {Always: true},
		"10s":     {UpTo: 10 * time.Second},
		"1ns":     {UpTo: 1},
	} {
		c, err := config.Parse([]byte("sleep_threshold: " + text))
		require.NoError(t, err, text)
		require.Equal(t, want, c.SleepThreshold)
	}
}

// What the file does not name is left for the limiter to fill in.
func TestChatsInPart(t *testing.T) {
	for text, want := range map[string]config.Chats{
		"{mode: never}":                      {Mode: "never"},
		"{private: {burst: 0}}":              {Private: config.RateLimit{Burst: ptr(0)}},
		"{group: {limit: 0}}":                {Group: config.Window{Limit: ptr(0)}},
		"{group: {limit: 1000000}}":          {Group: config.Window{Limit: ptr(1000000)}},
		"{mode: bots, group: {period: 1ns}}": {Mode: "bots", Group: config.Window{Period: ptr(time.Duration(1))}},
	} {
		c, err := config.Parse([]byte("chats: " + text))
		require.NoError(t, err, text)
		require.Equal(t, want, c.Chats, text)
	}
}

func TestEnvironmentWins(t *testing.T) {
	path := write(t, "app_id: 1\napp_hash: "+hash+"\nbot_token: 1:file\nsession_file: file.json\nlog_level: warn\n")
	c, err := config.Load(path, env(map[string]string{"APP_ID": "2", "BOT_TOKEN": "2:env", "SESSION_FILE": ""}), config.Flags{})
	require.NoError(t, err)
	require.Equal(t, 2, c.AppID)
	require.Equal(t, hash, c.AppHash.Reveal(), "the file stays where the environment is silent")
	require.Equal(t, "2:env", c.BotToken.Reveal())
	require.Equal(t, "file.json", c.SessionFile, "an empty variable is none")
	require.Equal(t, "warn", c.LogLevel)
	require.True(t, c.HasAccount())

	c, err = config.Load("", env(map[string]string{"SESSION_FILE": "env.json"}), config.Flags{})
	require.NoError(t, err)
	require.Equal(t, "env.json", c.SessionFile)
}

// The command line wins over all, and its faults are listed with the others.
func TestFlagsWin(t *testing.T) {
	path := write(t, "http: 127.0.0.1:1\nlog_level: warn\n")
	c, err := config.Load(path, nil, config.Flags{HTTP: "127.0.0.1:2"})
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:2", c.HTTP)
	require.Equal(t, "warn", c.LogLevel)

	path = write(t, "dc: 9\nhttp: nowhere\n")
	_, err = config.Load(path, env(map[string]string{"APP_ID": "x", "APP_HASH": hash, "BOT_TOKEN": token}), config.Flags{HTTP: ":9090", LogLevel: "wran"})
	require.EqualError(t, err, path+`:1:5: dc: 9 is not a whole number from 0 to 5; 0 leaves the choice to the client
`+path+`:2:7: http: "nowhere" is not host:port; write for example 127.0.0.1:9090
environment: APP_ID: "x" is not a whole number from 1 to 2147483647; take it from my.telegram.org
arguments: --http: ":9090" names no host and would listen on every network; write 127.0.0.1:9090 for this machine alone
arguments: --log-level: "wran" is not a level; did you mean warn?`)
}

func TestAccountInPart(t *testing.T) {
	_, err := config.Load("", env(map[string]string{"APP_ID": "1"}), config.Flags{})
	require.EqualError(t, err, `config: app_hash is missing, and so is APP_HASH in the environment, with app_id given; give all three of app_id, app_hash and bot_token, or none
config: bot_token is missing, and so is BOT_TOKEN in the environment, with app_id given; give all three of app_id, app_hash and bot_token, or none`)

	// The environment may have the rest.
	path := write(t, "app_id: 1\napp_hash: "+hash)
	c, err := config.Load(path, env(map[string]string{"BOT_TOKEN": token}), config.Flags{})
	require.NoError(t, err)
	require.True(t, c.HasAccount())
	_, err = config.Load(path, nil, config.Flags{})
	require.EqualError(t, err, path+": bot_token is missing, and so is BOT_TOKEN in the environment, with app_id and app_hash given; give all three of app_id, app_hash and bot_token, or none")
	_, err = config.Parse([]byte("app_id: 1"))
	require.NoError(t, err)

	// What is there and wrong is wrong, not missing.
	_, err = config.Load("", env(map[string]string{"APP_ID": "x", "APP_HASH": hash, "BOT_TOKEN": token}), config.Flags{})
	require.EqualError(t, err, `environment: APP_ID: "x" is not a whole number from 1 to 2147483647; take it from my.telegram.org`)
}

func TestFileThatCannotBeRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.yaml")
	_, err := config.Load(path, env(map[string]string{"APP_ID": "-5"}), config.Flags{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	lines := strings.Split(err.Error(), "\n")
	require.Len(t, lines, 2, "the environment is checked all the same; what the file lacks is not known")
	require.Equal(t, path+": the file cannot be read: no such file or directory; create it, or name no file", lines[0])
	require.Contains(t, lines[1], "APP_ID")

	_, err = config.Load(t.TempDir(), nil, config.Flags{})
	require.ErrorContains(t, err, "cannot be read: is a directory")
}

func TestFileTooLarge(t *testing.T) {
	text := "app_id: 1\n#" + strings.Repeat("x", 1<<20)
	_, err := config.Load(write(t, text), nil, config.Flags{})
	require.ErrorContains(t, err, "the file is larger than 1 MiB")
	_, err = config.Load(write(t, "#"+strings.Repeat("x", 1<<20-1)), nil, config.Flags{})
	require.NoError(t, err, "1 MiB to the byte is allowed")
}

func TestWarningForSecretsThatOthersMayRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // the mode says nothing there
	}
	path := write(t, "bot_token: "+token)
	rest := env(map[string]string{"APP_ID": "1", "APP_HASH": hash})
	c, err := config.Load(path, rest, config.Flags{})
	require.NoError(t, err)
	require.Empty(t, c.Warnings)

	require.NoError(t, os.Chmod(path, 0o640))
	c, err = config.Load(path, rest, config.Flags{})
	require.NoError(t, err)
	require.Equal(t, []string{path + " holds bot_token and others may open it (mode 0640): run chmod 600 on it"}, c.Warnings)

	path = write(t, "log_level: info")
	require.NoError(t, os.Chmod(path, 0o644))
	c, err = config.Load(path, env(map[string]string{"APP_ID": "1", "APP_HASH": hash, "BOT_TOKEN": token}), config.Flags{})
	require.NoError(t, err)
	require.Empty(t, c.Warnings, "a file without secrets may be read")
}

func TestFaultsCanBeListed(t *testing.T) {
	_, err := config.Load(write(t, "dc: 9\n"), env(map[string]string{"APP_ID": "1a"}), config.Flags{})
	var e *config.Error
	require.True(t, errors.As(err, &e))
	require.Equal(t, config.Fault{
		Field: "dc", Line: 1, Column: 5, Value: "9",
		Problem: "is not a whole number from 0 to 5", Remedy: "0 leaves the choice to the client",
	}, e.Faults[0])
	require.Equal(t, "APP_ID", e.Faults[1].Source)
	require.Equal(t, "app_id", e.Faults[1].Field)
	_, err = json.Marshal(e)
	require.NoError(t, err)
}

func TestStoreIsAFileARedisServerOrMemory(t *testing.T) {
	for text, want := range map[string]config.Config{
		"store: a.db":               {StoreFile: "a.db"},
		"store: memory":             {},
		"store: redis://h:1/0":      {RedisURL: config.NewSecret("redis://h:1/0")},
		"store: unix:///run/r.sock": {RedisURL: config.NewSecret("unix:///run/r.sock")},
	} {
		want.SessionFile = "examplebot.session.json"
		c, err := config.Parse([]byte(text))
		require.NoError(t, err, text)
		require.Equal(t, want, c, text)
	}
	c, err := config.Load("", env(map[string]string{"STORE": "redis://:pass@h:1"}), config.Flags{})
	require.NoError(t, err)
	require.Equal(t, "redis://:pass@h:1", c.RedisURL.Reveal())
	require.NotContains(t, fmt.Sprintf("%+v %#v", c, c), "pass")
}
