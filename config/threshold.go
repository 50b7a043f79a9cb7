package config

import "time"

// ThresholdKind says how a [Threshold] is to be read.
type ThresholdKind int

const (
	// ThresholdDefault leaves the choice to the program.
	ThresholdDefault ThresholdKind = iota
	// ThresholdNever sits out no wait, however short.
	ThresholdNever
	// ThresholdAlways sits out every wait, however long.
	ThresholdAlways
	// ThresholdFor sits out a wait of at most Threshold.Duration.
	ThresholdFor
)

// Threshold is the longest wait ordered by Telegram that a call sits out. The
// zero value is the default; it does not mean a threshold of zero.
type Threshold struct {
	Kind ThresholdKind
	// Duration is above zero if Kind is ThresholdFor, and zero otherwise.
	Duration time.Duration
}

// String returns the threshold as the file writes it.
func (t Threshold) String() string {
	switch t.Kind {
	case ThresholdNever:
		return "never"
	case ThresholdAlways:
		return "always"
	case ThresholdFor:
		return t.Duration.String()
	default:
		return "default"
	}
}
