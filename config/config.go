package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"time"
)

// DefaultSessionFile is where the session is kept if nothing else is said, in
// the working directory: a restart need not log in again, which Telegram limits.
const DefaultSessionFile = "examplebot.session.json"

// DefaultStoreFile is where floods, learned rates and the counts of users are kept if
// nothing else is said, in the working directory.
const DefaultStoreFile = "examplebot.db"

// maxFile bounds the file, in bytes. A full configuration takes under 4 KiB; what
// is larger than 1 MiB is some other file.
const maxFile = 1 << 20

// Config holds the values. What [Load] returned has been checked, and can be
// used as it is. It shows no secret when it is printed or encoded.
type Config struct {
	// AppID is the program's number at Telegram, at least 1, or 0 if not given.
	// Key app_id, variable APP_ID.
	AppID int
	// AppHash goes with AppID: 32 hexadecimal digits. Key app_hash, variable
	// APP_HASH.
	AppHash Secret
	// BotToken is what @BotFather gave: digits, a colon and the rest. Key
	// bot_token, variable BOT_TOKEN.
	BotToken Secret
	// SessionFile is the path that the session is kept under, relative to the
	// working directory. Key session_file, variable SESSION_FILE; DefaultSessionFile
	// unless given.
	SessionFile string
	// StoreFile is the path of the file that floods, learned rates and the counts of
	// users outlive the process in; DefaultStoreFile unless given. It is empty if they are
	// kept on Redis, or in memory. Key store, variable STORE.
	StoreFile string
	// RedisURL names a Redis server to keep them on instead, which all processes of the
	// account share: redis://, rediss:// or unix://. It may hold a password. The same key.
	RedisURL Secret
	// Account is the name under which processes that share the account on Redis find
	// each other, 1 to 64 letters, digits, - and _; "" unless given. Key account.
	Account string
	// OnStoreFailure is "closed", "open" or "local": what becomes of a call while the
	// store does not answer; "" unless given. Key on_store_failure.
	OnStoreFailure string
	// Learning is false if rates are not to be learned from floods; nil unless given. Key
	// learning.
	Learning *bool
	// DC is the data centre to connect to first, 1 to 5, or on the test servers 1
	// to 3; 0 leaves the choice to gotd. Key dc.
	DC int
	// TestDC selects Telegram's test servers. Key test_dc.
	TestDC bool
	// SleepThreshold is the longest wait that is sat out. Key sleep_threshold.
	SleepThreshold Threshold
	// RateLimits holds the limits that the file names, by "message", "media",
	// "query", "admin", "bulk", "account" and "global"; nil if there are none. Key
	// rate_limits.
	RateLimits map[string]RateLimit
	// Chats holds what the file says of the limits of each chat. Key chats.
	Chats Chats
	// MaxWaiters is how many calls may wait in one queue, 0 for no bound. Key
	// max_waiters.
	MaxWaiters int
	// HTTP is the address, host:port, to serve metrics on; empty for none. Port 0
	// takes any that is free. Key http.
	HTTP string
	// LogLevel is "debug", "info", "warn" or "error"; "" unless given. Key
	// log_level.
	LogLevel string
	// Warnings holds what is not wrong but unwise, one sentence each: a file with
	// secrets that others on the machine may read. It is empty on Windows, where the
	// mode of a file does not tell.
	Warnings []string
}

// RateLimit overrides one limit. A nil field was not named and keeps the
// limiter's default.
type RateLimit struct {
	// Rate is in calls a second, 0 to 1,000,000; 0 pauses.
	Rate *float64
	// Burst is the number of calls that may go at once after a rest, 0 to 1,000,000.
	Burst *int
}

// Chats overrides the limits of each chat.
type Chats struct {
	// Mode is "bots", "always" or "never": whose chats have limits. It is empty if it
	// was not named, and keeps the limiter's default.
	Mode string
	// Private is the limit of a chat with one user, in messages.
	Private RateLimit
	// Group is the limit of a group or channel.
	Group Window
}

// Window overrides one limit of so many in a period. A nil field was not named and
// keeps the limiter's default.
type Window struct {
	// Limit is the most messages in a period, 0 to 1,000,000; 0 pauses.
	Limit *int
	// Period is above zero.
	Period *time.Duration
}

// HasAccount reports whether there is a bot to log in as: AppID, AppHash and
// BotToken are all given. Load gives all three or none.
func (c Config) HasAccount() bool {
	return c.AppID != 0 && c.AppHash.Reveal() != "" && c.BotToken.Reveal() != ""
}

// Load reads the file at path, then the environment through getenv, which is
// [os.LookupEnv] or stands in for it. An empty path is no file, a nil getenv no
// environment. A relative path starts at the working directory. Load blocks
// while the file is read.
//
// The error is an [*Error] with all faults, of the file and of the environment;
// the Config is then zero. A file that does not exist or cannot be read is such
// a fault, and errors.Is finds its cause. So is an account given in part: of
// app_id, app_hash and bot_token there must be all or none.
func Load(path string, getenv func(string) (string, bool)) (Config, error) {
	p := newParser()
	complete := true // whether all that the file holds is known
	if path != "" {
		data, mode, err := readFile(path)
		if err != nil {
			p.faults = append(p.faults, fileFault(err))
			complete = false
		} else {
			complete = p.file(data)
			p.warn(path, mode)
		}
	}
	if getenv != nil {
		p.environment(getenv)
	}
	if complete {
		p.account()
	}
	return p.result(path)
}

// Parse reads data as the file's content, without an environment. The error is
// as Load's, but that an account given in part is no fault: the environment may
// have the rest.
func Parse(data []byte) (Config, error) {
	p := newParser()
	p.file(data)
	return p.result("")
}

// readFile returns what the file holds, up to one byte more than is allowed.
func readFile(path string) ([]byte, fs.FileMode, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = f.Close() }() // opened for reading: nothing is lost
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	return data, info.Mode(), err
}

// fileFault is the fault of a file that cannot be read. The line starts with the
// path already, so that a path error's own is left out.
func fileFault(err error) Fault {
	f := Fault{Err: err, Problem: "cannot be read: " + err.Error()}
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		f.Problem = "cannot be read: " + pathErr.Err.Error()
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.Remedy = "create it, or name no file"
	case errors.Is(err, fs.ErrPermission):
		f.Remedy = "make it readable for the user that runs this program"
	}
	return f
}

// warn notes a file with secrets that others may open. It is called before the
// environment is read: a secret from there says nothing about the file.
func (p *parser) warn(path string, mode fs.FileMode) {
	if mode.Perm()&0o077 == 0 || runtime.GOOS == "windows" {
		return
	}
	var held []string
	for _, key := range []string{"app_hash", "bot_token"} {
		if p.named[key] {
			held = append(held, key)
		}
	}
	if p.cfg.RedisURL.Reveal() != "" {
		held = append(held, "store")
	}
	if held != nil {
		p.cfg.Warnings = append(p.cfg.Warnings, fmt.Sprintf(
			"%s holds %s and others may open it (mode %04o): run chmod 600 on it",
			path, strings.Join(held, " and "), mode.Perm()))
	}
}

// account faults an account that is given in part.
func (p *parser) account() {
	var given []string
	var missing []variable
	for _, v := range variables() {
		switch {
		case v.key == "session_file", v.key == "store":
		case p.named[v.key]:
			given = append(given, v.key)
		default:
			missing = append(missing, v)
		}
	}
	if given == nil {
		return
	}
	for _, v := range missing {
		p.faults = append(p.faults, Fault{
			Field:   v.key,
			Problem: "is missing, and so is " + v.name + " in the environment, with " + strings.Join(given, " and ") + " given",
			Remedy:  "give all three of app_id, app_hash and bot_token, or none",
		})
	}
}

func (p *parser) result(path string) (Config, error) {
	if len(p.faults) == 0 {
		return p.cfg, nil
	}
	return Config{}, &Error{Path: path, Faults: p.faults}
}
