package store

import "fmt"

// ArgumentError says which argument cannot be used, what it was, and what would be
// right. Match it with errors.As.
type ArgumentError struct {
	Field string // "key", "window.period", …
	Value string // as it was given; of what is too long, how long it is
	Want  string // what would be right
	Err   error  // why, for errors.Is; may be nil
}

func (e *ArgumentError) Error() string {
	return fmt.Sprintf("%s is %s: want %s", e.Field, e.Value, e.Want)
}

// Unwrap returns Err.
func (e *ArgumentError) Unwrap() error { return e.Err }
