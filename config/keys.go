package config

import (
	"math"
	"slices"
	"strings"
)

const (
	// A session that is kept saves a login at each start, and Telegram limits logins.
	defaultSessionFile = "examplebot.session.json"
	defaultStoreFile   = "examplebot.db"
)

// key is one value that a configuration may hold.
type key struct {
	name   string // its path in the file
	env    string // its variable, if it has one
	secret bool   // whether its value stays out of errors
	check  check
}

// check checks a value and keeps it in the Config. The problem is empty if there is none.
type check func(value) (problem, remedy string)

// keys returns all keys, in the order in which messages list them. Their values go to c
// and limits.
func keys(c *Config, limits map[string]*RateLimit) []key {
	all := []key{
		{"app_id", "APP_ID", false, integer(&c.AppID, 1, math.MaxInt32, "take it from my.telegram.org")},
		{"app_hash", "APP_HASH", true, secret(&c.AppHash, `[[:xdigit:]]{32}`, "32 hexadecimal digits", "copy it from my.telegram.org, without spaces")},
		{"bot_token", "BOT_TOKEN", true, secret(&c.BotToken, `\d+:[\w-]+`, "digits, a colon and then letters, digits, - or _", "copy it from @BotFather, without spaces")},
		{"session_file", "SESSION_FILE", false, fileName(&c.SessionFile, "name a file, or remove the line for "+defaultSessionFile)},
		{"store", "STORE", true, storeName(&c.StoreFile, &c.RedisURL)},
		{"account", "", false, accountName(&c.Account)},
		{"on_store_failure", "", false, word(&c.OnStoreFailure, "what to do when the store fails", "closed", "open", "local")},
		{"dc", "", false, integer(&c.DC, 0, 5, "0 leaves the choice to the client")},
		{"test_dc", "", false, boolean(&c.TestDC)},
		{"sleep_threshold", "", false, threshold(&c.SleepThreshold)},
	}
	for _, name := range []string{"message", "media", "query", "admin", "bulk", "account", "global"} {
		limits[name] = &RateLimit{}
		all = append(all, rateLimit("rate_limits."+name, limits[name])...)
	}
	all = append(all, key{"chats.mode", "", false, word(&c.Chats.Mode, "a mode", "bots", "always", "never")})
	all = append(all, rateLimit("chats.private", &c.Chats.Private)...)
	return append(all,
		key{"chats.group.limit", "", false, limit(&c.Chats.Group.Limit, "write how many messages may go in a period, 0 to pause")},
		key{"chats.group.period", "", false, period(&c.Chats.Group.Period)},
		key{"learning", "", false, optional(&c.Learning, boolean)},
		key{"max_waiters", "", false, integer(&c.MaxWaiters, 0, math.MaxInt32, "0 sets no bound")},
		key{"http", "", false, address(&c.HTTP)},
		key{"log_level", "", false, word(&c.LogLevel, "a level", "debug", "info", "warn", "error")},
	)
}

func rateLimit(path string, l *RateLimit) []key {
	return []key{
		{path + ".rate", "", false, rate(&l.Rate)},
		{path + ".burst", "", false, limit(&l.Burst, "write how many calls may go at once")},
	}
}

// key returns the key of that name.
func (l *loader) key(name string) key {
	return l.keys[slices.IndexFunc(l.keys, func(k key) bool { return k.name == name })]
}

// below returns the names that a mapping at path may have, in order; none if there is a
// single value at path. The empty path is the file.
func (l *loader) below(path string) (names []string) {
	for _, k := range l.keys {
		rest, ok := strings.CutPrefix(k.name, join(path, ""))
		name, _, _ := strings.Cut(rest, ".")
		if ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// remedy suggests the known word that was most likely meant, or else says otherwise.
func remedy(word string, known []string, otherwise string) string {
	if near := nearest(word, known); near != "" {
		return "did you mean " + near + "?"
	}
	return otherwise
}

// nearest returns the known word that is one slip away from word, or else one that
// contains word or is contained in it, or "". Case, - and _ do not count.
func nearest(word string, known []string) string {
	fold := strings.NewReplacer("_", "", "-", "", " ", "")
	word = fold.Replace(strings.ToLower(word))
	if len(word) < 2 || len(word) > maxShown {
		return ""
	}
	for _, alike := range []func(string, string) bool{oneSlip, strings.Contains, func(a, b string) bool { return len(a) > 2 && strings.Contains(b, a) }} {
		for _, k := range known {
			if alike(word, fold.Replace(k)) {
				return k
			}
		}
	}
	return ""
}

// oneSlip reports whether a and b are the same but for one byte added, left out or
// exchanged, or two neighbours swapped.
func oneSlip(a, b string) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for a != "" && b != "" && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return len(a) <= 1 && len(b) <= 1 || len(a) == 2 && len(b) == 2 && a[0] == b[1] && a[1] == b[0]
}
