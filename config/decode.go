package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxFaults bounds the faults that are listed of a file, which has some thirty values.
const maxFaults = 100

// decimalPoint is for 10,5, which YAML takes for two values between braces.
const decimalPoint = "write a decimal point, not a comma"

// file reads the content of the file and reports whether all of it could be read as
// YAML: whether its keys are known.
func (l *loader) file(data []byte) bool {
	if len(data) > maxFile {
		l.faults = append(l.faults, Fault{Problem: "is larger than 1 MiB", Remedy: "name a configuration, which takes a few KiB"})
		return false
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, next yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return true // empty, or nothing but comments
	}
	if err == nil {
		l.mapping("", doc.Content[0])
		if l.cfg.TestDC && l.cfg.DC > 3 {
			l.refuse(l.given["dc"], "is no data centre of the test servers", "write 1, 2 or 3, or leave out test_dc")
		}
		l.arrange()
		err = dec.Decode(&next)
	}
	switch {
	case errors.Is(err, io.EOF):
		return true
	case err == nil:
		l.faults = append(l.faults, Fault{
			Line: next.Line, Column: next.Column, Problem: "has a second document", Remedy: "remove this --- and what follows",
		})
		return true
	}
	f := Fault{Problem: "is not YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
	switch {
	case strings.Contains(f.Problem, "unknown anchor"):
		// This is the only message of the parser that repeats text of the file, which may
		// be a secret.
		f.Problem = "is not YAML: a value starts with * and is no alias"
		f.Remedy = "put the value in quotes"
	case regexp.MustCompile(`cannot start any token|tab character`).MatchString(f.Problem) && regexp.MustCompile(`(?m)^ *\t`).Match(data):
		f.Remedy = "indent with spaces, not tabs"
	}
	l.faults = append(l.faults, f)
	return false
}

// arrange sorts the faults of the file by line. Of very many it keeps the first: that is
// some other file.
func (l *loader) arrange() {
	slices.SortStableFunc(l.faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if more := len(l.faults) - maxFaults; more > 0 {
		l.faults = append(l.faults[:maxFaults], Fault{
			Problem: fmt.Sprintf("has %d more faults", more), Remedy: "see whether it is the right file",
		})
	}
}

// mapping reads what the file has at path, which is a mapping of known names. One
// without a value is empty.
func (l *loader) mapping(path string, n *yaml.Node) {
	n = target(n)
	known := l.below(path)
	list := strings.Join(known, ", ")
	v := value{field: path, line: n.Line, column: n.Column}
	switch {
	case n.Style&yaml.TaggedStyle != 0:
		l.tagged(v)
		return
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return
	case n.Kind != yaml.MappingNode:
		remedy := "write lines of the form key: value, with " + list
		switch known[0] {
		case "rate":
			remedy = "write for example {rate: 20, burst: 30}"
		case "limit":
			remedy = "write for example {limit: 20, period: 1m}"
		}
		l.refuse(v, "is not a mapping", remedy)
		return
	}
	first := make(map[string]int, len(known)) // the line of each name
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, next := n.Content[i], n.Content[i+1]
		written := target(name)
		at := value{field: join(path, show(written.Value)), line: name.Line, column: name.Column}
		switch {
		case written.Kind != yaml.ScalarNode:
			at.field = path
			l.refuse(at, "has a key that is not a name", "the keys are "+list)
		case written.Style&yaml.TaggedStyle != 0:
			l.tagged(at)
		case name.Tag == "!!merge":
			l.refuse(at, "is a merge, which is not supported", "write the keys out, or use an alias for a whole value")
		case !slices.Contains(known, written.Value):
			otherwise := "the keys are " + list
			if i > 0 && n.Content[i-1].Tag == "!!int" && name.Tag == "!!int" && next.Tag == "!!null" {
				otherwise = decimalPoint
			}
			l.refuse(at, "is not a known key", remedy(written.Value, known, otherwise))
		case first[written.Value] > 0:
			l.refuse(at, fmt.Sprintf("is given twice, first on line %d", first[written.Value]), "remove one of the two")
		default:
			first[written.Value] = name.Line
			if at.field = join(path, written.Value); len(l.below(at.field)) > 0 {
				l.mapping(at.field, next)
			} else {
				l.scalar(at.field, next)
			}
		}
	}
}

// scalar reads the single value that the file has at path.
func (l *loader) scalar(path string, n *yaml.Node) {
	n = target(n)
	v := value{field: path, line: n.Line, column: n.Column}
	switch {
	case n.Style&yaml.TaggedStyle != 0:
		l.tagged(v)
	case n.Kind != yaml.ScalarNode:
		l.refuse(v, "is a list or a mapping", "write one value, in quotes if it starts with [ or {")
	case n.Tag != "!!null":
		v.text, v.tag = n.Value, n.Tag
		l.set(l.key(path), v)
	}
}

func (l *loader) tagged(v value) {
	l.refuse(v, "has a tag (a word that starts with !)", "remove the tag, or put the value in quotes")
}

// refuse notes a fault of v.
func (l *loader) refuse(v value, problem, remedy string) {
	f := Fault{Field: v.field, Source: v.source, Line: v.line, Column: v.column, Problem: problem, Remedy: remedy}
	switch {
	case v.text == "":
	case v.isText():
		f.Value = strconv.Quote(redact(v.text))
	default:
		f.Value = redact(v.text)
	}
	l.faults = append(l.faults, f)
}

// target returns the node that an alias stands for. An alias never names an alias, and
// one that contains itself is followed no further than the three levels of the file.
func target(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}
