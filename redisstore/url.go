package redisstore

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirtg/weir/store"
)

// parse reads a URL. An error names the setting that is wrong, and shows nothing that could
// be a secret.
func parse(text string) (*redis.Options, Options, error) {
	var o Options
	u, err := url.Parse(text)
	if err != nil {
		return nil, o, badURL()
	}
	query := u.Query()
	for name, to := range map[string]*time.Duration{"timeout": &o.Timeout, "connect_timeout": &o.ConnectTimeout} {
		if !query.Has(name) {
			continue
		}
		value := query.Get(name)
		if *to, err = time.ParseDuration(value); err != nil || *to <= 0 {
			return nil, o, &store.ArgumentError{Field: name, Value: shown(value), Want: "a duration such as 500ms"}
		}
		query.Del(name)
	}
	u.RawQuery = query.Encode()
	config, err := redis.ParseURL(u.String())
	if err == nil {
		return config, o, nil
	}
	// Which setting is it? Each is tried by itself.
	for name := range query {
		one := *u
		one.RawQuery = url.Values{name: query[name]}.Encode()
		_, err := redis.ParseURL(one.String())
		one.RawQuery = ""
		if _, bare := redis.ParseURL(one.String()); err == nil || bare != nil {
			continue
		}
		if strings.Contains(err.Error(), "unexpected option") { // it may be a password that was put there
			return nil, o, &store.ArgumentError{
				Field: name, Value: "not a setting", Want: "timeout, connect_timeout or one of go-redis, such as pool_size",
			}
		}
		return nil, o, &store.ArgumentError{Field: name, Value: shown(query.Get(name)), Want: "a value of the kind that go-redis has for it"}
	}
	return nil, o, badURL()
}

func badURL() error {
	return &store.ArgumentError{Field: "url", Value: "not readable", Want: "redis://user:password@host:6379/0"}
}

func shown(value string) string { return strconv.Quote(value[:min(len(value), 80)]) }
