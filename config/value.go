package config

import (
	"encoding/hex"
	"fmt"
	"math"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxLimit bounds a rate, in calls a second, and a burst. Telegram publishes no
// limit above 1000 a second.
const maxLimit = 1_000_000

// value is one value as it was written, and where.
type value struct {
	field, env   string
	line, column int
	text         string
	tag          string // the type that YAML saw, such as !!int; empty from the environment
}

// isText reports whether the value is text to YAML. A variable is always taken
// as what its field wants.
func (v value) isText() bool { return v.tag == "" || v.tag == "!!str" }

// refuse notes a fault of v. The value of a secret is not shown.
func (p *parser) refuse(v value, problem, remedy string) {
	f := Fault{
		Field: v.field, Env: v.env, Line: v.line, Column: v.column,
		Problem: problem, Remedy: remedy,
	}
	switch {
	case v.text == "" || v.field == "app_hash" || v.field == "bot_token" || v.field == "store":
	case v.isText():
		f.Value = strconv.Quote(redact(v.text))
	default:
		f.Value = redact(v.text)
	}
	p.faults = append(p.faults, f)
}

func (p *parser) integer(v value, low, high int, remedy string) int {
	n, err := strconv.Atoi(v.text)
	inRange := err == nil && low <= n && n <= high
	if inRange && v.tag == "!!str" {
		p.refuse(v, "is text, not a number", "write it without quotes")
		return 0
	}
	if !inRange || v.tag != "" && v.tag != "!!int" {
		p.refuse(v, fmt.Sprintf("is not a whole number from %d to %d", low, high), remedy)
		return 0
	}
	return n
}

// decimalPoint is for who writes 10,5, which YAML takes for two values where it is in braces.
const decimalPoint = "write a decimal point, not a comma"

func (p *parser) rate(v value) float64 {
	// ParseFloat takes "inf" and "nan", and YAML has .inf and .nan: neither lies
	// between two numbers.
	rate, err := strconv.ParseFloat(v.text, 64)
	inRange := err == nil && 0 <= rate && rate <= maxLimit
	switch {
	case inRange && v.tag == "!!str":
		p.refuse(v, "is text, not a number", "write it without quotes")
	case strings.Contains(v.text, ","):
		p.refuse(v, fmt.Sprintf("is not a number from 0 to %d", maxLimit), decimalPoint)
	case !inRange || v.tag != "!!int" && v.tag != "!!float":
		p.refuse(v, fmt.Sprintf("is not a number from 0 to %d", maxLimit), limitRemedy(v, "write calls a second, 0 to pause"))
	}
	return math.Abs(rate) // -0 is in range, and a limiter divides by the rate
}

// limitRemedy returns why a limit has a bound if v is beyond it, else the remedy.
func limitRemedy(v value, remedy string) string {
	// Out of range gives infinity, which is beyond the bound as well.
	if n, _ := strconv.ParseFloat(v.text, 64); n > maxLimit {
		return "Telegram publishes no limit above 1000 a second: this is probably a slip"
	}
	return remedy
}

func (p *parser) boolean(v value) bool {
	if v.tag != "!!bool" {
		p.refuse(v, "is neither true nor false", "write true or false, without quotes")
	}
	return strings.EqualFold(v.text, "true")
}

// appHash takes the text whatever YAML makes of it: a hash may consist of digits
// alone, or look like a number with an exponent.
func (p *parser) appHash(v value) Secret {
	if _, err := hex.DecodeString(v.text); err != nil || len(v.text) != 32 {
		p.refuse(v, fmt.Sprintf("is not 32 hexadecimal digits (it has %d characters)", len(v.text)),
			"copy it from my.telegram.org, without spaces")
	}
	return NewSecret(v.text)
}

func (p *parser) botToken(v value) Secret {
	id, rest, _ := strings.Cut(v.text, ":")
	if !consists(id, isDigit) || !consists(rest, isTokenByte) {
		p.refuse(v, "is not digits, a colon and then letters, digits, - or _",
			"copy it from @BotFather, without spaces")
	}
	return NewSecret(v.text)
}

// fileName refuses what can be no file's name, and reports whether it did.
func (p *parser) fileName(v value, ifEmpty string) (refused bool) {
	switch {
	case !v.isText():
		p.refuse(v, "is not text", "put the file's name in quotes")
	case v.text == "":
		p.refuse(v, "is empty", ifEmpty)
	case strings.ContainsRune(v.text, 0):
		p.refuse(v, "has a zero byte, which no file's name has", "remove it")
	default:
		return false
	}
	return true
}

func (p *parser) sessionFile(v value) string {
	p.fileName(v, "name a file, or remove the line for "+DefaultSessionFile)
	return v.text
}

// store takes a file's name, the URL of a Redis server or the word memory. A URL may
// hold a password, so the value is shown in no fault.
func (p *parser) store(v value) (file string, url Secret) {
	scheme, rest, isURL := strings.Cut(v.text, "://")
	switch {
	case p.fileName(v, "name a file, or memory to keep nothing, or remove the line for "+DefaultStoreFile):
	case v.text == "memory":
	case !isURL && !strings.HasPrefix(v.text, "redis:"):
		return v.text, Secret{}
	case !slices.Contains([]string{"redis", "rediss", "unix"}, scheme) || rest == "":
		p.refuse(v, "is no URL of a Redis server", "write for example redis://127.0.0.1:6379/0, or the name of a file")
	default:
		return "", NewSecret(v.text)
	}
	return "", Secret{}
}

func (p *parser) accountName(v value) string {
	if !consists(v.text, isTokenByte) || len(v.text) > 64 {
		p.refuse(v, "is not 1 to 64 letters, digits, - and _", "write a name that all processes of the account use, such as its username")
	}
	return v.text
}

func (p *parser) threshold(v value) Threshold {
	switch v.text {
	case "default":
		return Threshold{}
	case "never":
		return Threshold{Kind: ThresholdNever}
	case "always":
		return Threshold{Kind: ThresholdAlways}
	}
	number, notNumber := strconv.ParseFloat(v.text, 64)
	d, err := time.ParseDuration(v.text)
	switch {
	case notNumber == nil && number == 0, err == nil && d == 0:
		p.refuse(v, "does not say what is meant", "write never to sit out no wait, or default")
	case err == nil && d < 0:
		p.refuse(v, "is negative", "write never to sit out no wait")
	case err == nil:
		return Threshold{Kind: ThresholdFor, Duration: d}
	case notNumber == nil:
		p.refuse(v, "has no unit", "write a duration such as 10s or 1m30s")
	default:
		remedy := "write one of these words, or for example 10s"
		if near := nearest(v.text, []string{"never", "always", "default"}); near != "" {
			remedy = "did you mean " + near + "?"
		}
		p.refuse(v, "is not never, always, default or a duration", remedy)
	}
	return Threshold{}
}

func (p *parser) period(v value) time.Duration {
	const remedy = "write a duration such as 30s or 1m"
	number, notNumber := strconv.ParseFloat(v.text, 64)
	d, err := time.ParseDuration(v.text)
	switch {
	case notNumber == nil && number > 0:
		p.refuse(v, "has no unit", remedy)
	case notNumber == nil, err == nil && d <= 0:
		p.refuse(v, "is not above zero", remedy)
	case err != nil:
		p.refuse(v, "is not a duration", remedy)
	}
	return d
}

func (p *parser) address(v value) string {
	if v.text == "" {
		return ""
	}
	host, port, err := net.SplitHostPort(v.text)
	if consists(v.text, isDigit) { // a port alone
		host, port, err = "", v.text, nil
	}
	_, portErr := strconv.ParseUint(port, 10, 16)
	_, ipErr := netip.ParseAddr(host)
	switch {
	case err != nil:
		p.refuse(v, "is not host:port", "write for example 127.0.0.1:9090")
	case portErr != nil:
		p.refuse(v, "does not end in a port from 0 to 65535", "write for example 127.0.0.1:9090")
	case host == "":
		p.refuse(v, "names no host and would listen on every network", "write 127.0.0.1:"+port+" for this machine alone")
	case ipErr != nil && !consists(host, isHostByte):
		p.refuse(v, "has no host's name or IP address before the port", "write for example 127.0.0.1:"+port)
	}
	return v.text
}

// word takes one of a few words.
func (p *parser) word(v value, what string, words ...string) string {
	if !slices.Contains(words, v.text) {
		last := len(words) - 1
		remedy := "write " + strings.Join(words[:last], ", ") + " or " + words[last]
		if near := nearest(v.text, words); near != "" {
			remedy = "did you mean " + near + "?"
		}
		p.refuse(v, "is not "+what, remedy)
	}
	return v.text
}

// consists reports whether s is not empty and every byte of it is of a kind.
func consists(s string, of func(byte) bool) bool {
	for i := range len(s) {
		if !of(s[i]) {
			return false
		}
	}
	return s != ""
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

func isTokenByte(b byte) bool {
	return isDigit(b) || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || b == '_' || b == '-'
}

func isHostByte(b byte) bool { return isTokenByte(b) || b == '.' }
