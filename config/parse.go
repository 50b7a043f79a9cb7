package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxFaults bounds the faults that are listed of a file, which has two dozen
// values to get wrong.
const maxFaults = 100

// parser gathers values and faults. It goes on after a fault, so that all are
// found; a config with faults is thrown away, so that it may hold nonsense.
type parser struct {
	cfg    Config
	named  map[string]bool // the top-level keys that were given, wherever
	faults []Fault
}

func newParser() *parser {
	return &parser{
		cfg:   Config{SessionFile: DefaultSessionFile, StoreFile: DefaultStoreFile},
		named: make(map[string]bool),
	}
}

// file reads the file's content and reports whether it could be taken apart:
// whether its keys are known.
func (p *parser) file(data []byte) bool {
	if len(data) > maxFile {
		p.faults = append(p.faults, Fault{
			Problem: "is larger than 1 MiB",
			Remedy:  "name a configuration, which takes a few KiB",
		})
		return false
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, next yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return true // empty, or nothing but comments
	}
	if err == nil {
		p.document(doc.Content[0])
		p.arrange()
		err = dec.Decode(&next)
	}
	switch {
	case err == nil:
		p.faults = append(p.faults, Fault{
			Line: next.Line, Column: next.Column,
			Problem: "has a second document",
			Remedy:  "remove what stands from this --- on",
		})
	case !errors.Is(err, io.EOF):
		f := Fault{Problem: "is not YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
		// Of all the parser's messages this alone repeats the file's text, and it may
		// be a secret that was written with a star.
		if strings.Contains(f.Problem, "unknown anchor") {
			f.Problem = "is not YAML: a value starts with * and is no alias"
			f.Remedy = "put the value in quotes"
		}
		if indentedByTab(data) && (strings.Contains(f.Problem, "cannot start any token") || strings.Contains(f.Problem, "tab character")) {
			f.Remedy = "indent with spaces, not tabs"
		}
		p.faults = append(p.faults, f)
		return false
	}
	return true
}

// indentedByTab reports whether a line begins with a tab, or with spaces and one.
func indentedByTab(data []byte) bool {
	for line := range bytes.Lines(data) {
		if bytes.HasPrefix(bytes.TrimLeft(line, " "), []byte("\t")) {
			return true
		}
	}
	return false
}

// arrange puts the faults of the document in the order of its lines. Of very many
// it keeps the first: that is some other file, and a million lines help nobody.
func (p *parser) arrange() {
	slices.SortStableFunc(p.faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if more := len(p.faults) - maxFaults; more > 0 {
		p.faults = append(p.faults[:maxFaults], Fault{
			Problem: fmt.Sprintf("has %d more faults", more),
			Remedy:  "see whether it is the right file",
		})
	}
}

func (p *parser) document(root *yaml.Node) {
	keys := []string{
		"app_id", "app_hash", "bot_token", "session_file", "store", "account", "on_store_failure", "dc", "test_dc",
		"sleep_threshold", "rate_limits", "chats", "learning", "max_waiters", "http", "log_level",
	}
	var dc value
	p.mapping("", root, keys, func(key string, n *yaml.Node) {
		switch key {
		case "rate_limits":
			p.rateLimits(n)
			return
		case "chats":
			p.chats(n)
			return
		}
		v, ok := p.scalar(key, n)
		if !ok {
			return
		}
		if key == "dc" {
			dc = v
		}
		p.set(v)
	})
	if p.cfg.TestDC && p.cfg.DC > 3 {
		p.refuse(dc, "is no data centre of the test servers", "write 1, 2 or 3, or leave out test_dc")
	}
}

func (p *parser) rateLimits(n *yaml.Node) {
	names := []string{"message", "media", "query", "admin", "bulk", "account", "global"}
	p.mapping("rate_limits", n, names, func(name string, n *yaml.Node) {
		limit := p.rateLimit("rate_limits."+name, n)
		if limit == (RateLimit{}) {
			return
		}
		if p.cfg.RateLimits == nil {
			p.cfg.RateLimits = make(map[string]RateLimit)
		}
		p.cfg.RateLimits[name] = limit
	})
}

func (p *parser) rateLimit(path string, n *yaml.Node) (limit RateLimit) {
	p.mapping(path, n, []string{"rate", "burst"}, func(key string, n *yaml.Node) {
		v, ok := p.scalar(path+"."+key, n)
		switch {
		case !ok:
		case key == "rate":
			rate := p.rate(v)
			limit.Rate = &rate
		default:
			burst := p.integer(v, 0, maxLimit, limitRemedy(v, "write how many calls may go at once"))
			limit.Burst = &burst
		}
	})
	return limit
}

func (p *parser) chats(n *yaml.Node) {
	chats := &p.cfg.Chats
	p.mapping("chats", n, []string{"mode", "private", "group"}, func(key string, n *yaml.Node) {
		switch key {
		case "private":
			chats.Private = p.rateLimit("chats.private", n)
		case "group":
			chats.Group = p.window("chats.group", n)
		default:
			if v, ok := p.scalar("chats.mode", n); ok {
				chats.Mode = p.word(v, "a mode", "bots", "always", "never")
			}
		}
	})
}

func (p *parser) window(path string, n *yaml.Node) (w Window) {
	p.mapping(path, n, []string{"limit", "period"}, func(key string, n *yaml.Node) {
		v, ok := p.scalar(path+"."+key, n)
		switch {
		case !ok:
		case key == "limit":
			limit := p.integer(v, 0, maxLimit, limitRemedy(v, "write how many messages may go in a period, 0 to pause"))
			w.Limit = &limit
		default:
			period := p.period(v)
			w.Period = &period
		}
	})
	return w
}

// set checks one value of the top level, from either source, and keeps it.
func (p *parser) set(v value) {
	p.named[v.field] = true
	switch v.field {
	case "app_id":
		p.cfg.AppID = p.integer(v, 1, math.MaxInt32, "take it from my.telegram.org")
	case "app_hash":
		p.cfg.AppHash = p.appHash(v)
	case "bot_token":
		p.cfg.BotToken = p.botToken(v)
	case "session_file":
		p.cfg.SessionFile = p.sessionFile(v)
	case "store":
		p.cfg.StoreFile, p.cfg.RedisURL = p.store(v)
	case "account":
		p.cfg.Account = p.accountName(v)
	case "on_store_failure":
		p.cfg.OnStoreFailure = p.word(v, "what to do when the store fails", "closed", "open", "local")
	case "learning":
		learning := p.boolean(v)
		p.cfg.Learning = &learning
	case "dc":
		p.cfg.DC = p.integer(v, 0, 5, "0 leaves the choice to the client")
	case "test_dc":
		p.cfg.TestDC = p.boolean(v)
	case "sleep_threshold":
		p.cfg.SleepThreshold = p.threshold(v)
	case "max_waiters":
		p.cfg.MaxWaiters = p.integer(v, 0, math.MaxInt32, "0 sets no bound")
	case "http":
		p.cfg.HTTP = p.address(v)
	case "log_level":
		p.cfg.LogLevel = p.word(v, "a level", "debug", "info", "warn", "error")
	}
}

type variable struct{ name, key string }

// variables are the names in the environment, in the order that they are read.
func variables() []variable {
	return []variable{
		{"APP_ID", "app_id"},
		{"APP_HASH", "app_hash"},
		{"BOT_TOKEN", "bot_token"},
		{"SESSION_FILE", "session_file"},
		{"STORE", "store"},
	}
}

func (p *parser) environment(getenv func(string) (string, bool)) {
	for _, v := range variables() {
		if text, _ := getenv(v.name); text != "" {
			p.set(value{field: v.key, env: v.name, text: text})
		}
	}
}

// mapping calls each for every known key of n once, with what it stands for.
// A mapping without a value is one without keys.
func (p *parser) mapping(path string, n *yaml.Node, known []string, each func(string, *yaml.Node)) {
	n = target(n)
	v := value{field: path, line: n.Line, column: n.Column}
	switch {
	case n.Style&yaml.TaggedStyle != 0:
		p.tagged(v)
		return
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return
	case n.Kind != yaml.MappingNode:
		remedy := "write lines of the form key: value, with " + strings.Join(known, ", ")
		switch known[0] {
		case "rate":
			remedy = "write for example {rate: 20, burst: 30}"
		case "limit":
			remedy = "write for example {limit: 20, period: 1m}"
		}
		p.refuse(v, "is not a mapping", remedy)
		return
	}
	seen := make(map[string]int, len(known))
	for i := 0; i+1 < len(n.Content); i += 2 {
		keyNode := n.Content[i]
		key := target(keyNode).Value
		v := value{field: join(path, show(key)), line: keyNode.Line, column: keyNode.Column}
		switch {
		case target(keyNode).Kind != yaml.ScalarNode:
			v.field = path
			p.refuse(v, "has a key that is not a name", "the keys are "+strings.Join(known, ", "))
		case target(keyNode).Style&yaml.TaggedStyle != 0:
			p.tagged(v)
		case keyNode.Tag == "!!merge":
			p.refuse(v, "is a merge, which is not supported", "write the keys out, or use an alias for a whole value")
		case !slices.Contains(known, key):
			remedy := "the keys are " + strings.Join(known, ", ")
			if near := nearest(key, known); near != "" {
				remedy = "did you mean " + near + "?"
			} else if i > 0 && n.Content[i-1].Tag == "!!int" && keyNode.Tag == "!!int" && n.Content[i+1].Tag == "!!null" {
				remedy = decimalPoint
			}
			p.refuse(v, "is not a known key", remedy)
		case seen[key] > 0:
			p.refuse(v, fmt.Sprintf("is given twice, first on line %d", seen[key]), "remove one of the two")
		default:
			seen[key] = keyNode.Line
			each(key, n.Content[i+1])
		}
	}
}

// scalar returns the single value that n stands for, and false if there is none.
func (p *parser) scalar(field string, n *yaml.Node) (value, bool) {
	n = target(n)
	v := value{field: field, line: n.Line, column: n.Column, text: n.Value, tag: n.Tag}
	switch {
	case n.Style&yaml.TaggedStyle != 0:
		v.text, v.tag = "", ""
		p.tagged(v)
	case n.Kind != yaml.ScalarNode:
		v.text, v.tag = "", ""
		p.refuse(v, "is a list or a mapping", "write one value, in quotes if it starts with [ or {")
	default:
		return v, n.Tag != "!!null"
	}
	return v, false
}

func (p *parser) tagged(v value) {
	p.refuse(v, "has a tag (a word that starts with !)", "remove the tag, or put the value in quotes")
}

// target is the node that an alias stands for. An alias of an alias there is
// none in YAML, and one that holds itself is never followed further than the
// three levels that the file has.
func target(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
