package flood

import (
	"fmt"
	"math"
	"time"
)

// Threshold is the longest wait that is sat out. A longer one is handed back to
// the caller as a [*WaitError].
//
// Not set, never and always are three values, none of them a reading of another:
// [Default], [Never] and [Always]. A finite threshold is made by [UpTo].
type Threshold time.Duration

const (
	// Default is the zero value: nothing was chosen, see [Threshold.Or].
	Default Threshold = 0
	// Never hands every wait back.
	Never Threshold = -1
	// Always sits out every wait.
	Always Threshold = math.MaxInt64
)

// DefaultThreshold is what [Default] comes to where nothing else was chosen
// either: long enough for the small waits that a busy bot meets, short enough to
// be noticed by nobody.
const DefaultThreshold = 10 * time.Second

// UpTo sits out waits of d and less. A d of zero or less is [Never].
func UpTo(d time.Duration) Threshold {
	if d <= 0 {
		return Never
	}
	return Threshold(d)
}

// Or returns t, or the fallback where t is [Default].
func (t Threshold) Or(fallback Threshold) Threshold {
	if t == Default {
		return fallback
	}
	return t
}

// Limit returns the longest wait that t allows: 0 for [Never],
// [DefaultThreshold] for [Default], the longest duration there is for [Always].
func (t Threshold) Limit() time.Duration {
	return max(0, time.Duration(t.Or(Threshold(DefaultThreshold))))
}

// Allows reports whether a wait is to be sat out. A wait of nothing always is.
func (t Threshold) Allows(wait time.Duration) bool { return wait <= t.Limit() }

// String returns "never", "always", "default" or the duration.
func (t Threshold) String() string {
	switch {
	case t == Default:
		return "default"
	case t < 0:
		return "never"
	case t == Always:
		return "always"
	default:
		return time.Duration(t).String()
	}
}

// MarshalText is [Threshold.String] as text. It never fails.
func (t Threshold) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads "never", "always", "default" or a duration above zero in
// Go's notation, such as "30s" or "1m30s". "0s" is refused rather than guessed
// at: it could stand for any of the three words.
func (t *Threshold) UnmarshalText(text []byte) error {
	switch s := string(text); s {
	case "never":
		*t = Never
	case "always":
		*t = Always
	case "default":
		*t = Default
	default:
		d, err := time.ParseDuration(s)
		switch {
		case err != nil:
			return fmt.Errorf(`threshold %q: want "never", "always", "default" or a duration such as "10s"`, s)
		case d <= 0:
			return fmt.Errorf(`threshold %q: a duration has to be above zero; to sit out no wait, say "never"`, s)
		}
		*t = Threshold(d)
	}
	return nil
}

// FirstTimeout is how long the call that goes first after a deadline, or looks whether a guess
// is right, keeps the others waiting. If it is not answered by then, another goes first. gotd
// takes a request for lost after 5 s without an acknowledgement and sends it again.
const FirstTimeout = 5 * time.Second
