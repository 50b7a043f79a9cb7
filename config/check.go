package config

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxLimit bounds a rate, in calls a second, and a burst. Telegram publishes no limit
// above 1000 a second.
const maxLimit = 1_000_000

// value is one value as it was written, and where.
type value struct {
	field, source string // source is a variable or a flag, empty for the file
	line, column  int
	text          string
	tag           string // the type in YAML, such as !!int; empty outside of the file
}

// isText reports whether the value is text in YAML. Outside of the file all values are.
func (v value) isText() bool { return v.tag == "" || v.tag == "!!str" }

func integer(to *int, low, high int, remedy string) check {
	return func(v value) (string, string) {
		n, err := strconv.Atoi(v.text)
		inRange := err == nil && low <= n && n <= high
		if inRange && v.tag == "!!str" {
			return "is text, not a number", "write it without quotes"
		}
		if !inRange || v.tag != "" && v.tag != "!!int" {
			return fmt.Sprintf("is not a whole number from %d to %d", low, high), remedy
		}
		*to = n
		return "", ""
	}
}

// optional is a check of a value that is nil if it is not given.
func optional[T any](to **T, of func(*T) check) check {
	return func(v value) (string, string) {
		*to = new(T)
		return of(*to)(v)
	}
}

func limit(to **int, remedy string) check {
	return func(v value) (string, string) {
		return optional(to, func(n *int) check { return integer(n, 0, maxLimit, limitRemedy(v, remedy)) })(v)
	}
}

func rate(to **float64) check {
	return func(v value) (string, string) {
		// ParseFloat takes "inf" and "nan", and YAML has .inf and .nan: none is in range.
		rate, err := strconv.ParseFloat(v.text, 64)
		inRange := err == nil && 0 <= rate && rate <= maxLimit
		problem := fmt.Sprintf("is not a number from 0 to %d", maxLimit)
		switch {
		case inRange && v.tag == "!!str":
			return "is text, not a number", "write it without quotes"
		case strings.Contains(v.text, ","):
			return problem, decimalPoint
		case !inRange || v.tag != "!!int" && v.tag != "!!float":
			return problem, limitRemedy(v, "write calls a second, 0 to pause")
		}
		rate = math.Abs(rate) // -0 is in range, and a limiter divides by the rate
		*to = &rate
		return "", ""
	}
}

// limitRemedy explains the bound if v is beyond it, and else returns the remedy.
func limitRemedy(v value, remedy string) string {
	// ParseFloat gives infinity for a number that it cannot hold.
	if n, _ := strconv.ParseFloat(v.text, 64); n > maxLimit {
		return "Telegram publishes no limit above 1000 a second: this is probably a slip"
	}
	return remedy
}

func boolean(to *bool) check {
	return func(v value) (string, string) {
		if v.tag != "!!bool" {
			return "is neither true nor false", "write true or false, without quotes"
		}
		*to = strings.EqualFold(v.text, "true")
		return "", ""
	}
}

// secret takes the text whatever its type in YAML: an app hash may consist of digits
// alone, or look like a number with an exponent.
func secret(to *Secret, pattern, what, remedy string) check {
	return func(v value) (string, string) {
		if !matches(pattern, v.text) {
			return fmt.Sprintf("is not %s (it has %d characters)", what, len(v.text)), remedy
		}
		*to = NewSecret(v.text)
		return "", ""
	}
}

func fileName(to *string, ifEmpty string) check {
	return func(v value) (string, string) {
		switch {
		case !v.isText():
			return "is not text", "put the file's name in quotes"
		case v.text == "":
			return "is empty", ifEmpty
		case strings.ContainsRune(v.text, 0):
			return "has a zero byte, which no file's name has", "remove it"
		}
		*to = v.text
		return "", ""
	}
}

// storeName takes the name of a file, the URL of a Redis server or the word memory.
func storeName(file *string, url *Secret) check {
	isFile := fileName(file, "name a file, or memory to keep nothing, or remove the line for "+defaultStoreFile)
	return func(v value) (string, string) {
		if problem, remedy := isFile(v); problem != "" {
			return problem, remedy
		}
		*url = Secret{}
		scheme, rest, isURL := strings.Cut(v.text, "://")
		switch {
		case v.text == "memory":
			*file = ""
		case !isURL && !strings.HasPrefix(v.text, "redis:"):
		case !slices.Contains([]string{"redis", "rediss", "unix"}, scheme) || rest == "":
			return "is no URL of a Redis server", "write for example redis://127.0.0.1:6379/0, or the name of a file"
		default:
			*file, *url = "", NewSecret(v.text)
		}
		return "", ""
	}
}

func accountName(to *string) check {
	return func(v value) (string, string) {
		if !matches(`[\w-]{1,64}`, v.text) {
			return "is not 1 to 64 letters, digits, - and _", "write a name that all processes of the account use, such as its username"
		}
		*to = v.text
		return "", ""
	}
}

func threshold(to *Threshold) check {
	return func(v value) (string, string) {
		words := []string{"never", "always", "default"}
		if slices.Contains(words, v.text) {
			*to = Threshold{Never: v.text == "never", Always: v.text == "always"}
			return "", ""
		}
		number, notNumber := strconv.ParseFloat(v.text, 64)
		d, err := time.ParseDuration(v.text)
		switch {
		case notNumber == nil && number == 0, err == nil && d == 0:
			return "does not say what is meant", "write never to sit out no wait, or default"
		case err == nil && d < 0:
			return "is negative", "write never to sit out no wait"
		case notNumber == nil:
			return "has no unit", "write a duration such as 10s or 1m30s"
		case err != nil:
			return "is not never, always, default or a duration", remedy(v.text, words, "write one of these words, or for example 10s")
		}
		*to = Threshold{UpTo: d}
		return "", ""
	}
}

func period(to **time.Duration) check {
	return func(v value) (string, string) {
		const remedy = "write a duration such as 30s or 1m"
		number, notNumber := strconv.ParseFloat(v.text, 64)
		d, err := time.ParseDuration(v.text)
		switch {
		case notNumber == nil && number > 0:
			return "has no unit", remedy
		case notNumber == nil && number <= 0, err == nil && d <= 0:
			return "is not above zero", remedy
		case err != nil:
			return "is not a duration", remedy
		}
		*to = &d
		return "", ""
	}
}

func address(to *string) check {
	return func(v value) (string, string) {
		const remedy = "write for example 127.0.0.1:"
		host, port, err := net.SplitHostPort(v.text)
		if matches(`\d+`, v.text) { // a port alone
			host, port, err = "", v.text, nil
		}
		_, portErr := strconv.ParseUint(port, 10, 16)
		_, ipErr := netip.ParseAddr(host)
		switch {
		case v.text == "":
		case err != nil:
			return "is not host:port", remedy + "9090"
		case portErr != nil:
			return "does not end in a port from 0 to 65535", remedy + "9090"
		case host == "":
			return "names no host and would listen on every network", "write 127.0.0.1:" + port + " for this machine alone"
		case ipErr != nil && !matches(`[\w.-]+`, host):
			return "has no host's name or IP address before the port", remedy + port
		}
		*to = v.text
		return "", ""
	}
}

// word takes one of a few words.
func word(to *string, what string, words ...string) check {
	last := len(words) - 1
	otherwise := "write " + strings.Join(words[:last], ", ") + " or " + words[last]
	return func(v value) (string, string) {
		if !slices.Contains(words, v.text) {
			return "is not " + what, remedy(v.text, words, otherwise)
		}
		*to = v.text
		return "", ""
	}
}

// matches reports whether all of text matches the pattern.
func matches(pattern, text string) bool {
	return regexp.MustCompile("^(?:" + pattern + ")$").MatchString(text)
}
