package classify

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/gotd/td/tg"
)

// methodsFile names every function of the layer, one a line, each followed by
// its category. A person reads it when the layer changes, and a test writes it
// from gotd's types. The names alone are used here; the categories come from
// the rules.
//
// gotd's registry of names does not tell functions from types, and its registry
// of constructors, which does, makes the linker keep every type of the layer:
// it adds 15 MB to a bot of 19 MB.
//
//go:embed testdata/methods.golden
var methodsFile string

// layer is what the package knows of gotd's TL layer.
type layer struct {
	rules    rules
	names    []string // sorted
	byID     *index
	idByName map[string]uint32
}

// loadLayer builds the layer, once in a process: nothing changes it, and all
// classifiers without overrides share it.
var loadLayer = sync.OnceValue(func() *layer {
	l := &layer{
		rules:    newRules(),
		byID:     new(index),
		idByName: make(map[string]uint32),
	}
	ids := tg.NamesMap()
	for line := range strings.Lines(methodsFile) {
		name, _, _ := strings.Cut(line, "\t")
		l.names = append(l.names, name)
		l.idByName[name] = ids[name]
		l.byID.put(ids[name], l.entry(name))
	}
	return l
})

func (l *layer) entry(name string) entry {
	return entry{
		name:     name,
		category: l.rules.category(name),
		transfer: strings.HasPrefix(name, "upload."),
		wrapper:  isWrapper(name),
	}
}

// Names returns the TL name of every function of gotd's layer, the wrappers
// among them, sorted. The caller may change the slice.
func Names() []string {
	return slices.Clone(loadLayer().names)
}

// Known reports whether method is the TL name of a function of gotd's layer,
// such as "messages.sendMessage". Case matters, and there is no #id.
func Known(method string) bool {
	_, ok := loadLayer().idByName[method]
	return ok
}

// Nearest returns the name of the function that looks most like method, for a
// message to somebody who mistyped it. A method without a namespace is compared
// with what stands behind the dot, and of several the one among the messages
// wins. It takes a millisecond or so.
func Nearest(method string) string {
	var nearest string
	least := -1
	for _, name := range loadLayer().names {
		candidate := name
		if _, local, ok := strings.Cut(name, "."); ok && !strings.Contains(method, ".") {
			candidate = local
		}
		d := distance(strings.ToLower(method), strings.ToLower(candidate))
		if least < 0 || d < least || d == least && strings.HasPrefix(name, "messages.") {
			nearest, least = name, d
		}
	}
	return nearest
}

// distance is the number of bytes to insert, delete or replace to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
