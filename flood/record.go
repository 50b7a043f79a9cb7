package flood

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"
)

// Record is a flood as it stands. It is plain data; as JSON it outlives the process.
type Record struct {
	DC     int       `json:"dc,omitempty"`
	Method string    `json:"method,omitempty"` // empty when Scope is Account
	Chat   int64     `json:"chat,omitempty"`   // 0 unless Scope is Chat
	Reads  bool      `json:"reads,omitempty"`  // which half of the account, when Scope is Account
	Kind   Kind      `json:"kind"`             // of the flood that set Until
	Scope  Scope     `json:"scope"`            // which calls are held back
	Until  time.Time `json:"until,omitzero"`   // zero for one that ended before its deadline
	// Wait is how long Until was ahead when the flood came. What is left is never more, even
	// when the clock is set back.
	Wait time.Duration `json:"wait_ns,omitempty"`
	Hits int           `json:"hits,omitempty"` // floods so far, those included that changed nothing
	// Repeats says how often in a row a call was flooded again right after the deadline. Each
	// repeat makes the next wait longer.
	Repeats int `json:"repeats,omitempty"`
	// Inferred: the server did not say that the flood reaches so far. A guess lasts no longer
	// than the shortest of the floods that led to it, one call is let through now and then, and
	// requests for missed updates are not held. The account's is always a guess.
	Inferred bool   `json:"inferred,omitempty"`
	Why      string `json:"why,omitempty"` // what led to the guess; empty unless Inferred
	// Waiting is the number of calls that the record holds back in this process.
	Waiting int `json:"waiting,omitempty"`

	// The rest describes the flood that has just come. It is zero in a snapshot and is not
	// stored.

	// Widened: this flood made the scope wider than it was.
	Widened bool `json:"-"`
	// News: the flood is new, wider, or lasts at least a second longer than was known. A flood
	// that is no news need not be logged: file parts are flooded by the dozen.
	News bool `json:"-"`
	// Again is when the flooded call itself may go again. It is later than Until if its own
	// chat is held for longer than the wider scope.
	Again time.Time `json:"-"`
	// Evidence: the flood shows how much may be sent. It is a numbered FLOOD_WAIT of at most a
	// minute, met by a call that is charged to a category and is no early probe of a guess.
	// Without it About and Known are zero.
	Evidence bool `json:"-"`
	// About is what the flood appears to limit: Chat, Method or Account, 0 while that is not
	// known. It may be wider than Scope: when chats that rest are flooded by turns, only one is
	// held at a time.
	About Scope `json:"-"`
	// Known: only the chat is held, but floods of the method have lately proved to be those of
	// all chats.
	Known bool `json:"-"`
}

// maxMethod is the longest name of a method that a key holds as it is. Telegram's are shorter
// than a quarter of it.
const maxMethod = 256

// Key is the text under which a store keeps the record: the same for all records that
// replace one another, different for all others, at most 512 bytes.
func (r Record) Key() string {
	method, chat, reads, reach := r.Method, r.Chat, false, "own"
	switch {
	case r.Kind != FloodWait:
		reach = "told"
	case r.Scope == Account || r.Scope == Method && (r.Inferred || r.Why != ""):
		reach = "inferred"
	}
	switch {
	case r.Scope == Account:
		method, chat, reads = "", 0, r.Reads
	case r.Scope == Method:
		chat = 0
	case r.Kind == SlowMode && HeldBySlowMode(r.Method):
		method = "" // one record for all that sends
	}
	if len(method) > maxMethod {
		method = fmt.Sprintf("#%x", sha256.Sum256([]byte(method)))
	}
	return fmt.Sprintf("flood/%d/%v/%s/%d/%t/%s", r.DC, r.Scope, reach, chat, reads, method)
}

// MarshalJSON writes the record with its deadline in UTC. It fails for a Kind or a Scope that
// does not exist.
func (r Record) MarshalJSON() ([]byte, error) {
	type plain Record
	if !r.Until.IsZero() {
		r.Until = r.Until.UTC()
	}
	return json.Marshal(plain(r))
}
