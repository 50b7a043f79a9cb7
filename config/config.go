package config

import "time"

// Config holds the settings. It shows no secret when it is printed or encoded.
type Config struct {
	// AppID is the program's number at Telegram, at least 1, or 0 if not given.
	// Key app_id, variable APP_ID.
	AppID int
	// AppHash goes with AppID: 32 hexadecimal digits. Key app_hash, variable APP_HASH.
	AppHash Secret
	// BotToken comes from @BotFather. Key bot_token, variable BOT_TOKEN.
	BotToken Secret
	// SessionFile is the path of the session, relative to the working directory. Key
	// session_file, variable SESSION_FILE, default examplebot.session.json.
	SessionFile string
	// StoreFile is the path of the file that keeps floods, learned rates and the counts
	// of users. It is empty if they are kept on Redis or in memory. Key store, variable
	// STORE, default examplebot.db.
	StoreFile string
	// RedisURL is the Redis server that keeps them instead, for all processes of the
	// account: redis://, rediss:// or unix://. It may hold a password. The same key.
	RedisURL Secret
	// Account is the name that all processes of an account on Redis share: 1 to 64
	// letters, digits, - and _; "" if not given. Key account.
	Account string
	// OnStoreFailure is "closed", "open" or "local": what happens to a call while the
	// store does not answer; "" if not given. Key on_store_failure.
	OnStoreFailure string
	// Learning is false if floods are not to lower limits; nil if not given. Key learning.
	Learning *bool
	// DC is the data centre to connect to first, 1 to 5, or 1 to 3 on the test servers;
	// 0 leaves the choice to gotd. Key dc.
	DC int
	// TestDC selects Telegram's test servers. Key test_dc.
	TestDC bool
	// SleepThreshold is the longest wait that a call sits out. Key sleep_threshold.
	SleepThreshold Threshold
	// RateLimits holds the limits that the file names, by "message", "media", "query",
	// "admin", "bulk", "account" and "global"; nil if there are none. Key rate_limits.
	RateLimits map[string]RateLimit
	// Chats holds the limits of each chat. Key chats.
	Chats Chats
	// MaxWaiters is how many calls may wait in one queue, 0 for no bound. Key max_waiters.
	MaxWaiters int
	// HTTP is the address, host:port, that serves metrics; empty for none. Port 0 takes
	// any free port. Key http, flag --http.
	HTTP string
	// LogLevel is "debug", "info", "warn" or "error"; "" if not given. Key log_level, flag
	// --log-level.
	LogLevel string
	// Warnings holds what is not wrong but unwise, one sentence each: a file with secrets
	// that other users of the machine may open. It is always empty on Windows, where the
	// mode of a file does not say who may open it.
	Warnings []string
}

// HasAccount reports whether AppID, AppHash and BotToken are given. [Load] returns all
// three or none.
func (c Config) HasAccount() bool {
	return c.AppID != 0 && c.AppHash.Reveal() != "" && c.BotToken.Reveal() != ""
}

// RateLimit overrides one limit. A nil field keeps the limiter's default.
type RateLimit struct {
	Rate  *float64 // calls a second, 0 to 1,000,000; 0 pauses
	Burst *int     // calls that may go at once after a rest, 0 to 1,000,000
}

// Chats overrides the limits of each chat.
type Chats struct {
	// Mode is "bots", "always" or "never": which accounts have limits for each chat. An
	// empty Mode keeps the limiter's default.
	Mode    string
	Private RateLimit // of a chat with one user, in messages
	Group   Window    // of a group or channel, in messages
}

// Window overrides one limit of a number in a period. A nil field keeps the limiter's
// default.
type Window struct {
	Limit  *int           // 0 to 1,000,000; 0 pauses
	Period *time.Duration // above zero
}

// Threshold is the longest wait ordered by Telegram that a call sits out. At most one
// field is set. The zero value keeps the default of the program.
type Threshold struct {
	Never  bool          // no wait, however short
	Always bool          // every wait, however long
	UpTo   time.Duration // waits of at most UpTo, which is above zero
}
