package config

import (
	"strconv"
	"strings"
)

// Fault is one thing that is wrong in the file or the environment.
type Fault struct {
	// Field is the path of the key, such as "rate_limits.message.rate". It is
	// empty if the fault is the file's as a whole.
	Field string
	// Env is the variable that the value came from, empty for the file.
	Env string
	// Line and Column say where in the file, from 1. Both are 0 if the fault has no
	// place there; in YAML that cannot be parsed, the parser's own words name the line.
	Line, Column int
	// Value is what was written, text in quotes. It is empty if there is none to
	// show, and always for a secret.
	Value string
	// Problem says what is wrong, as a predicate: "is not a known key".
	Problem string
	// Remedy says what would be right.
	Remedy string
	// Err is the file system's error, if the file could not be read.
	Err error
}

// String returns the fault in one line, without its place in the file.
func (f Fault) String() string {
	var b strings.Builder
	switch {
	case f.Env != "":
		b.WriteString(f.Env)
	case f.Field != "":
		b.WriteString(f.Field)
	default:
		b.WriteString("the file")
	}
	if f.Value != "" {
		b.WriteString(": " + f.Value)
	}
	b.WriteString(" " + f.Problem)
	if f.Remedy != "" {
		b.WriteString("; " + f.Remedy)
	}
	return b.String()
}

// Error holds every fault that was found: those of the file in the order of its
// lines, then those of the environment, then the keys that are missing. Of a file
// with more than 100 it holds the first 100 and one that counts the rest. Match it
// with [errors.As]; [errors.Is] looks into the causes, such as
// [io/fs.ErrNotExist].
type Error struct {
	// Path is the file as it was named to Load, empty if there was none.
	Path string
	// Faults is never empty.
	Faults []Fault
}

// Error returns one line for each fault, in order. A fault of the file starts
// with path:line:column.
func (e *Error) Error() string {
	path := e.Path
	if path == "" {
		path = "config"
	}
	lines := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		place := path
		if f.Line > 0 {
			place += ":" + strconv.Itoa(f.Line) + ":" + strconv.Itoa(f.Column)
		}
		if f.Env != "" {
			place = "environment"
		}
		lines[i] = place + ": " + f.String()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the causes of those faults that have one.
func (e *Error) Unwrap() []error {
	var causes []error
	for _, f := range e.Faults {
		if f.Err != nil {
			causes = append(causes, f.Err)
		}
	}
	return causes
}
