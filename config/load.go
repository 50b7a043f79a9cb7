package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
)

// maxFile bounds the file, in bytes. A full configuration takes under 4 KiB; a file
// larger than 1 MiB is some other file.
const maxFile = 1 << 20

// Flags holds what the command line says. It wins over the environment and the file; an
// empty field says nothing.
type Flags struct {
	HTTP     string // --http
	LogLevel string // --log-level
}

// Load reads the file at path, then the environment through getenv, which is
// [os.LookupEnv] or stands in for it, then flags. An empty path is no file, a nil getenv
// no environment. A relative path starts at the working directory. Load blocks while it
// reads the file.
//
// The error is an [*Error] with all faults, and the Config is then zero. A file that
// cannot be read is such a fault, and errors.Is finds its cause. It is also a fault to
// give only a part of app_id, app_hash and bot_token.
func Load(path string, getenv func(string) (string, bool), flags Flags) (Config, error) {
	l := newLoader()
	complete := true // whether all keys of the file are known
	if path != "" {
		data, mode, err := readFile(path)
		if err != nil {
			l.faults = append(l.faults, fileFault(err))
			complete = false
		} else {
			complete = l.file(data)
			l.warn(path, mode)
		}
	}
	for _, k := range l.keys {
		if k.env != "" && getenv != nil {
			text, _ := getenv(k.env)
			l.override(k, k.env, text)
		}
	}
	l.override(l.key("http"), "--http", flags.HTTP)
	l.override(l.key("log_level"), "--log-level", flags.LogLevel)
	if complete {
		l.account()
	}
	return l.result(path)
}

// Parse reads data as the content of a file, without environment and flags. The error is
// as that of [Load], but a part of an account is no fault: the environment may have the
// rest.
func Parse(data []byte) (Config, error) {
	l := newLoader()
	l.file(data)
	return l.result("")
}

// loader collects values and faults. It goes on after a fault, to find them all; a
// Config with faults is thrown away.
type loader struct {
	cfg    *Config
	keys   []key
	limits map[string]*RateLimit // by category; zero if the file does not name it
	given  map[string]value      // the last value of each key, right or wrong
	faults []Fault
}

func newLoader() *loader {
	l := &loader{
		cfg:    &Config{SessionFile: defaultSessionFile, StoreFile: defaultStoreFile},
		limits: make(map[string]*RateLimit),
		given:  make(map[string]value),
	}
	l.keys = keys(l.cfg, l.limits)
	return l
}

// set checks a value and keeps it.
func (l *loader) set(k key, v value) {
	l.given[k.name] = v
	if problem, remedy := k.check(v); problem != "" {
		if k.secret {
			v.text = ""
		}
		l.refuse(v, problem, remedy)
	}
}

// override sets a value from outside of the file, unless it is empty.
func (l *loader) override(k key, source, text string) {
	if text != "" {
		l.set(k, value{field: k.name, source: source, text: text})
	}
}

// readFile returns the content of the file, at most one byte more than is allowed.
func readFile(path string) ([]byte, fs.FileMode, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = f.Close() }() // opened for reading: nothing is lost
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	return data, info.Mode(), err
}

// fileFault is the fault of a file that cannot be read. The message names the path
// already, so the path in err is left out.
func fileFault(err error) Fault {
	f := Fault{Err: err, Problem: "cannot be read: " + err.Error()}
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		f.Problem = "cannot be read: " + pathErr.Err.Error()
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.Remedy = "create it, or name no file"
	case errors.Is(err, fs.ErrPermission):
		f.Remedy = "make it readable for the user that runs this program"
	}
	return f
}

// warn notes a file with secrets that others may open. It runs before the environment
// is read, whose secrets are not in the file.
func (l *loader) warn(path string, mode fs.FileMode) {
	if mode.Perm()&0o077 == 0 || runtime.GOOS == "windows" {
		return
	}
	var held []string
	for _, k := range l.keys {
		if _, given := l.given[k.name]; given && k.secret && (k.name != "store" || l.cfg.RedisURL.Reveal() != "") {
			held = append(held, k.name)
		}
	}
	if held != nil {
		l.cfg.Warnings = append(l.cfg.Warnings, fmt.Sprintf(
			"%s holds %s and others may open it (mode %04o): run chmod 600 on it",
			path, strings.Join(held, " and "), mode.Perm()))
	}
}

// account faults an account that is given in part.
func (l *loader) account() {
	var given []string
	var missing []key
	for _, k := range l.keys[:3] { // app_id, app_hash, bot_token
		if _, ok := l.given[k.name]; ok {
			given = append(given, k.name)
		} else {
			missing = append(missing, k)
		}
	}
	if given == nil {
		return
	}
	for _, k := range missing {
		l.faults = append(l.faults, Fault{
			Field:   k.name,
			Problem: "is missing, and so is " + k.env + " in the environment, with " + strings.Join(given, " and ") + " given",
			Remedy:  "give all three of app_id, app_hash and bot_token, or none",
		})
	}
}

func (l *loader) result(path string) (Config, error) {
	if len(l.faults) > 0 {
		return Config{}, &Error{Path: path, Faults: l.faults}
	}
	for name, limit := range l.limits {
		if *limit == (RateLimit{}) {
			continue
		}
		if l.cfg.RateLimits == nil {
			l.cfg.RateLimits = make(map[string]RateLimit)
		}
		l.cfg.RateLimits[name] = *limit
	}
	return *l.cfg, nil
}
