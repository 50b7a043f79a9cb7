package config

import (
	"cmp"
	"strconv"
	"strings"
)

// Fault is one thing that is wrong in the file or the environment.
type Fault struct {
	// Field is the path of the key, such as "rate_limits.message.rate". It is
	// empty if the fault is the file's as a whole.
	Field string
	// Source is the variable or the flag that the value came from, such as APP_ID or
	// --http; empty for the file.
	Source string
	// Line and Column say where in the file, from 1. Both are 0 if the fault has no place
	// there. For a file that is not YAML, Problem may name the line.
	Line, Column int
	// Value is what was written, text in quotes. It is empty if there is nothing to show,
	// and always for a secret.
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
	s := cmp.Or(f.Source, f.Field, "the file")
	if f.Value != "" {
		s += ": " + f.Value
	}
	s += " " + f.Problem
	if f.Remedy != "" {
		s += "; " + f.Remedy
	}
	return s
}

// Error holds every fault: those of the file in the order of its lines, then those of
// the environment and the flags, then the keys that are missing. Of a file with more than
// 100 it holds the first 100 and one that counts the rest. Match it with [errors.As];
// [errors.Is] finds causes such as [io/fs.ErrNotExist].
type Error struct {
	// Path is the file as it was named to Load, empty if there was none.
	Path string
	// Faults is never empty.
	Faults []Fault
}

// Error returns one line for each fault, in order. A fault of the file starts
// with path:line:column.
func (e *Error) Error() string {
	lines := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		place := cmp.Or(e.Path, "config")
		switch {
		case strings.HasPrefix(f.Source, "--"):
			place = "arguments"
		case f.Source != "":
			place = "environment"
		case f.Line > 0:
			place += ":" + strconv.Itoa(f.Line) + ":" + strconv.Itoa(f.Column)
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
