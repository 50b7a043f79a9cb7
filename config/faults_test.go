package config_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/config"
)

func TestEveryFaultAtOnceInOrder(t *testing.T) {
	path := write(t, `app_id: -1
app_hash: xyz
bot_token: not a token
session_file: 12
dc: 9
test_dc: "yes"
sleep_threshold: 0
rate_limits:
  message: {rate: -1, burst: 1.5}
  media: {rate: .nan, burst: -3}
  query: {rate: .inf, burst: 1000001}
  admin: {rate: 1e7, burst: many, bursts: 4}
  bulk: [3, 5]
  account: {rate: "10", burst: "15"}
  globl: {rate: 1}
  message: {rate: 20}
http: ":9090"
log_level: WARN
app-id: 5
dc: 2
telephone: 1
<<: {dc: 1}
[a, b]: 1
chats:
  mode: Bots
  private: {rate: -1, burst: 2000000, limit: 3}
  group: {limit: 1.5, period: 60, kind: sliding}
  channel: {limit: 1}
max_waiters: -1
`)
	_, err := config.Load(path, env(map[string]string{
		"APP_ID": "12x", "APP_HASH": "abc", "BOT_TOKEN": ":", "SESSION_FILE": "a\x00b",
	}), config.Flags{})
	keys := "the keys are app_id, app_hash, bot_token, session_file, store, account, on_store_failure, dc, test_dc, sleep_threshold, rate_limits, chats, learning, max_waiters, http, log_level"
	above := "Telegram publishes no limit above 1000 a second: this is probably a slip"
	want := []string{
		`1:9: app_id: -1 is not a whole number from 1 to 2147483647; take it from my.telegram.org`,
		`2:11: app_hash is not 32 hexadecimal digits (it has 3 characters); copy it from my.telegram.org, without spaces`,
		`3:12: bot_token is not digits, a colon and then letters, digits, - or _ (it has 11 characters); copy it from @BotFather, without spaces`,
		`4:15: session_file: 12 is not text; put the file's name in quotes`,
		`5:5: dc: 9 is not a whole number from 0 to 5; 0 leaves the choice to the client`,
		`6:10: test_dc: "yes" is neither true nor false; write true or false, without quotes`,
		`7:18: sleep_threshold: 0 does not say what is meant; write never to sit out no wait, or default`,
		`9:19: rate_limits.message.rate: -1 is not a number from 0 to 1000000; write calls a second, 0 to pause`,
		`9:30: rate_limits.message.burst: 1.5 is not a whole number from 0 to 1000000; write how many calls may go at once`,
		`10:17: rate_limits.media.rate: .nan is not a number from 0 to 1000000; write calls a second, 0 to pause`,
		`10:30: rate_limits.media.burst: -3 is not a whole number from 0 to 1000000; write how many calls may go at once`,
		`11:17: rate_limits.query.rate: .inf is not a number from 0 to 1000000; write calls a second, 0 to pause`,
		`11:30: rate_limits.query.burst: 1000001 is not a whole number from 0 to 1000000; ` + above,
		`12:17: rate_limits.admin.rate: 1e7 is not a number from 0 to 1000000; ` + above,
		`12:29: rate_limits.admin.burst: "many" is not a whole number from 0 to 1000000; write how many calls may go at once`,
		`12:35: rate_limits.admin.bursts is not a known key; did you mean burst?`,
		`13:9: rate_limits.bulk is not a mapping; write for example {rate: 20, burst: 30}`,
		`14:19: rate_limits.account.rate: "10" is text, not a number; write it without quotes`,
		`14:32: rate_limits.account.burst: "15" is text, not a number; write it without quotes`,
		`15:3: rate_limits.globl is not a known key; did you mean global?`,
		`16:3: rate_limits.message is given twice, first on line 9; remove one of the two`,
		`17:7: http: ":9090" names no host and would listen on every network; write 127.0.0.1:9090 for this machine alone`,
		`18:12: log_level: "WARN" is not a level; did you mean warn?`,
		`19:1: app-id is not a known key; did you mean app_id?`,
		`20:1: dc is given twice, first on line 5; remove one of the two`,
		`21:1: telephone is not a known key; ` + keys,
		`22:1: "<<" is a merge, which is not supported; write the keys out, or use an alias for a whole value`,
		`23:1: the file has a key that is not a name; ` + keys,
		`25:9: chats.mode: "Bots" is not a mode; did you mean bots?`,
		`26:19: chats.private.rate: -1 is not a number from 0 to 1000000; write calls a second, 0 to pause`,
		`26:30: chats.private.burst: 2000000 is not a whole number from 0 to 1000000; ` + above,
		`26:39: chats.private.limit is not a known key; the keys are rate, burst`,
		`27:18: chats.group.limit: 1.5 is not a whole number from 0 to 1000000; write how many messages may go in a period, 0 to pause`,
		`27:31: chats.group.period: 60 has no unit; write a duration such as 30s or 1m`,
		`27:35: chats.group.kind is not a known key; the keys are limit, period`,
		`28:3: chats.channel is not a known key; the keys are mode, private, group`,
		`29:14: max_waiters: -1 is not a whole number from 0 to 2147483647; 0 sets no bound`,
	}
	for i := range want {
		want[i] = path + ":" + want[i]
	}
	want = append(want,
		`environment: APP_ID: "12x" is not a whole number from 1 to 2147483647; take it from my.telegram.org`,
		`environment: APP_HASH is not 32 hexadecimal digits (it has 3 characters); copy it from my.telegram.org, without spaces`,
		`environment: BOT_TOKEN is not digits, a colon and then letters, digits, - or _ (it has 1 characters); copy it from @BotFather, without spaces`,
		`environment: SESSION_FILE: "a\x00b" has a zero byte, which no file's name has; remove it`,
	)
	require.Equal(t, want, strings.Split(err.Error(), "\n"))
	var e *config.Error
	require.True(t, errors.As(err, &e))
	require.Len(t, e.Faults, len(want))
	require.Equal(t, path, e.Path)
}

func TestFaultOfOneValue(t *testing.T) {
	for text, want := range map[string]string{
		"app_id: 0":                     `1:9: app_id: 0 is not a whole number from 1 to 2147483647; take it from my.telegram.org`,
		"app_id: 2147483648":            `1:9: app_id: 2147483648 is not a whole number from 1 to 2147483647; take it from my.telegram.org`,
		"app_id: 99999999999999999999":  `1:9: app_id: 99999999999999999999 is not a whole number from 1 to 2147483647; take it from my.telegram.org`,
		"app_id: 0x10":                  `1:9: app_id: 0x10 is not a whole number from 1 to 2147483647; take it from my.telegram.org`,
		"app_id: \"12\"":                `1:9: app_id: "12" is text, not a number; write it without quotes`,
		"app_id: [1]":                   `1:9: app_id is a list or a mapping; write one value, in quotes if it starts with [ or {`,
		"app_hash: \"\"":                `1:11: app_hash is not 32 hexadecimal digits (it has 0 characters); copy it from my.telegram.org, without spaces`,
		"dc: 4\ntest_dc: true":          `1:5: dc: 4 is no data centre of the test servers; write 1, 2 or 3, or leave out test_dc`,
		"dc: true":                      `1:5: dc: true is not a whole number from 0 to 5; 0 leaves the choice to the client`,
		"session_file: \"\"":            `1:15: session_file is empty; name a file, or remove the line for examplebot.session.json`,
		"store: \"\"":                   `1:8: store is empty; name a file, or memory to keep nothing, or remove the line for examplebot.db`,
		"store: 5":                      `1:8: store is not text; put the file's name in quotes`,
		"store: http://:pw@h":           `1:8: store is no URL of a Redis server; write for example redis://127.0.0.1:6379/0, or the name of a file`,
		"store: redis://":               `1:8: store is no URL of a Redis server; write for example redis://127.0.0.1:6379/0, or the name of a file`,
		"store: redis:pw@h":             `1:8: store is no URL of a Redis server; write for example redis://127.0.0.1:6379/0, or the name of a file`,
		"account: a b":                  `1:10: account: "a b" is not 1 to 64 letters, digits, - and _; write a name that all processes of the account use, such as its username`,
		"on_store_failure: opn":         `1:19: on_store_failure: "opn" is not what to do when the store fails; did you mean open?`,
		"learning: on":                  `1:11: learning: "on" is neither true nor false; write true or false, without quotes`,
		"sleep_threshold: \"0\"":        `1:18: sleep_threshold: "0" does not say what is meant; write never to sit out no wait, or default`,
		"sleep_threshold: 0s":           `1:18: sleep_threshold: "0s" does not say what is meant; write never to sit out no wait, or default`,
		"sleep_threshold: 0.0":          `1:18: sleep_threshold: 0.0 does not say what is meant; write never to sit out no wait, or default`,
		"sleep_threshold: 10":           `1:18: sleep_threshold: 10 has no unit; write a duration such as 10s or 1m30s`,
		"sleep_threshold: -1s":          `1:18: sleep_threshold: "-1s" is negative; write never to sit out no wait`,
		"sleep_threshold: Nevr":         `1:18: sleep_threshold: "Nevr" is not never, always, default or a duration; did you mean never?`,
		"sleep_threshold: 99999999999h": `1:18: sleep_threshold: "99999999999h" is not never, always, default or a duration; write one of these words, or for example 10s`,
		"http: 9090":                    `1:7: http: 9090 names no host and would listen on every network; write 127.0.0.1:9090 for this machine alone`,
		"http: 127.0.0.1":               `1:7: http: "127.0.0.1" is not host:port; write for example 127.0.0.1:9090`,
		"http: http://127.0.0.1:90":     `1:7: http: "http://127.0.0.1:90" is not host:port; write for example 127.0.0.1:9090`,
		"http: localhost:65536":         `1:7: http: "localhost:65536" does not end in a port from 0 to 65535; write for example 127.0.0.1:9090`,
		"http: a b:9":                   `1:7: http: "a b:9" has no host's name or IP address before the port; write for example 127.0.0.1:9`,
		"rate_limits: 5":                `1:14: rate_limits is not a mapping; write lines of the form key: value, with message, media, query, admin, bulk, account, global`,
		"rate_limits: {bulk: {rate: 1e400}}": `1:28: rate_limits.bulk.rate: "1e400" is not a number from 0 to 1000000; ` +
			`Telegram publishes no limit above 1000 a second: this is probably a slip`,
		"rate_limits: {message: 20}":            `1:24: rate_limits.message is not a mapping; write for example {rate: 20, burst: 30}`,
		"rate_limits: {bulk: {rate: 10,5}}":     `1:31: rate_limits.bulk.5 is not a known key; write a decimal point, not a comma`,
		"rate_limits: {bulk: {5: , rate: 1}}":   `1:22: rate_limits.bulk.5 is not a known key; the keys are rate, burst`,
		"rate_limits:\n  bulk:\n    rate: 10,5": `3:11: rate_limits.bulk.rate: "10,5" is not a number from 0 to 1000000; write a decimal point, not a comma`,
		"chats: never":                          `1:8: chats is not a mapping; write lines of the form key: value, with mode, private, group`,
		"chats: {mode: [bots]}":                 `1:15: chats.mode is a list or a mapping; write one value, in quotes if it starts with [ or {`,
		"chats: {mode: true}":                   `1:15: chats.mode: true is not a mode; write bots, always or never`,
		"chats: {mode: \"\"}":                   `1:15: chats.mode is not a mode; write bots, always or never`,
		"chats: {mode: alwys}":                  `1:15: chats.mode: "alwys" is not a mode; did you mean always?`,
		"chats: {private: 1}":                   `1:18: chats.private is not a mapping; write for example {rate: 20, burst: 30}`,
		"chats: {group: 20}":                    `1:16: chats.group is not a mapping; write for example {limit: 20, period: 1m}`,
		"chats: {group: {limit: \"20\"}}":       `1:24: chats.group.limit: "20" is text, not a number; write it without quotes`,
		"chats: {group: {limit: -1}}":           `1:24: chats.group.limit: -1 is not a whole number from 0 to 1000000; write how many messages may go in a period, 0 to pause`,
		"chats: {group: {period: 0}}":           `1:25: chats.group.period: 0 is not above zero; write a duration such as 30s or 1m`,
		"chats: {group: {period: 0s}}":          `1:25: chats.group.period: "0s" is not above zero; write a duration such as 30s or 1m`,
		"chats: {group: {period: -1m}}":         `1:25: chats.group.period: "-1m" is not above zero; write a duration such as 30s or 1m`,
		"chats: {group: {period: minute}}":      `1:25: chats.group.period: "minute" is not a duration; write a duration such as 30s or 1m`,
		"chats: {group: {period: 99999999h}}":   `1:25: chats.group.period: "99999999h" is not a duration; write a duration such as 30s or 1m`,
		"chats: {group: {period: .nan}}":        `1:25: chats.group.period: .nan is not a duration; write a duration such as 30s or 1m`,
		"chats: {group: {period: \"\"}}":        `1:25: chats.group.period is not a duration; write a duration such as 30s or 1m`,
		"max_waiters: \"5\"":                    `1:14: max_waiters: "5" is text, not a number; write it without quotes`,
		"max_waiters: 2147483648":               `1:14: max_waiters: 2147483648 is not a whole number from 0 to 2147483647; 0 sets no bound`,
		"max_waiters: {message: 5}":             `1:14: max_waiters is a list or a mapping; write one value, in quotes if it starts with [ or {`,
		"dc: !!int 1":                           `1:5: dc has a tag (a word that starts with !); remove the tag, or put the value in quotes`,
		"!!str dc: 1":                           `1:1: dc has a tag (a word that starts with !); remove the tag, or put the value in quotes`,
		"\"a\\nb c\": 1":                        `1:1: "a\nb c" is not a known key; the keys are app_id, app_hash, bot_token, session_file, store, account, on_store_failure, dc, test_dc, sleep_threshold, rate_limits, chats, learning, max_waiters, http, log_level`,
	} {
		require.Equal(t, []string{"config:" + want}, faults(t, text), "%q", text)
	}
}

func TestFaultOfTheWholeFile(t *testing.T) {
	for text, want := range map[string]string{
		"- a":                    "config:1:1: the file is not a mapping; write lines of the form key: value, with app_id",
		"abc":                    "config:1:1: the file is not a mapping; ",
		"!!map {dc: 1}":          "config:1:1: the file has a tag",
		"dc: 1\n---\n":           "config:2:1: the file has a second document; remove this --- and what follows",
		"dc: 1\n]":               "config: the file is not YAML: ",
		"dc: 1\n\tdc: 2":         "config: the file is not YAML: line 2: found a tab character that violates indentation; indent with spaces, not tabs",
		"chats:\n \tmode: never": "config: the file is not YAML: line 2: found character that cannot start any token; indent with spaces, not tabs",
		"dc: \xff":               "config: the file is not YAML: ",
		"bot_token: *1234":       "config: the file is not YAML: a value starts with * and is no alias; put the value in quotes",
	} {
		lines := faults(t, text)
		require.True(t, strings.HasPrefix(lines[len(lines)-1], want), "%q gives %q", text, lines)
	}
	require.Len(t, faults(t, "dc: 9\n---\ndc: 8"), 2, "the first document is checked all the same")
}

// What no token starts with need not be a tab.
func TestATabIsBlamedOnlyWhereThereIsOne(t *testing.T) {
	require.Equal(t, []string{"config: the file is not YAML: found character that cannot start any token"}, faults(t, "http: @here"))
}

func TestSomeOtherFile(t *testing.T) {
	lines := faults(t, strings.Repeat("a:\n", 5000))
	require.Len(t, lines, 101)
	require.True(t, strings.HasPrefix(lines[99], "config:100:1: a is not a known key"), lines[99])
	require.Equal(t, "config: the file has 4900 more faults; see whether it is the right file", lines[100])
}

func TestAlias(t *testing.T) {
	c, err := config.Parse([]byte("rate_limits: {message: &m {rate: 1, burst: &b 2}, media: *m, bulk: {burst: *b}}"))
	require.NoError(t, err)
	require.Equal(t, c.RateLimits["message"], c.RateLimits["media"])
	require.Equal(t, 2, *c.RateLimits["bulk"].Burst)

	require.Equal(t, []string{
		"config:1:35: rate_limits.message.rate: -1 is not a number from 0 to 1000000; write calls a second, 0 to pause",
		"config:1:35: rate_limits.media.rate: -1 is not a number from 0 to 1000000; write calls a second, 0 to pause",
	}, faults(t, "rate_limits: {message: &m {rate:  -1}, media: *m}"))
	require.Equal(t, []string{"config:1:18: rate_limits.message.message is not a known key; the keys are rate, burst"},
		faults(t, "rate_limits: &r {message: *r}"), "an alias of what holds it ends")
}

func TestNearestName(t *testing.T) {
	for written, meant := range map[string]string{
		"appid": "app_id", "APP_ID": "app_id", "api_id": "app_id", "AppHash": "app_hash", "api_hash": "app_hash",
		"token": "bot_token", "bot-tokne": "bot_token", "session": "session_file", "dcs": "dc", "testdc": "test_dc",
		"threshold": "sleep_threshold", "ratelimits": "rate_limits", "limits": "rate_limits", "htpp": "http",
		"loglevel": "log_level", "level": "log_level",
		"chat": "chats", "maxwaiters": "max_waiters", "waiters": "max_waiters", "max-waiter": "max_waiters",
		"x": "", "proxy": "", strings.Repeat("app_id", 20): "",
	} {
		line := faults(t, written+": 1")[0]
		if meant == "" {
			require.Contains(t, line, "the keys are", written)
			continue
		}
		require.True(t, strings.HasSuffix(line, "; did you mean "+meant+"?"), "%s gives %s", written, line)
	}
	for written, meant := range map[string]string{"massage": "message", "bluk": "bulk", "Query": "query", "acount": "account"} {
		require.Contains(t, faults(t, "rate_limits: {"+written+": }")[0], "did you mean "+meant+"?")
	}
	for written, meant := range map[string]string{
		"mod: bots": "mode", "groups: {}": "group", "privat: {}": "private",
		"group: {limits: 1}": "limit", "group: {Period: 1m}": "period", "private: {brust: 1}": "burst",
	} {
		require.Contains(t, faults(t, "chats: {"+written+"}")[0], "did you mean "+meant+"?")
	}
}
