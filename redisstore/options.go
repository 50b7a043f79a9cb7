package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/weirtg/weir/store"
)

// What [Options] default to.
const (
	// DefaultTimeout is what a server may take to answer. On a local network it answers
	// within a millisecond, from another continent within 300 ms.
	DefaultTimeout = 500 * time.Millisecond
	// DefaultConnectTimeout is what setting a connection up may take: it is up to six round
	// trips, and more with TLS.
	DefaultConnectTimeout = 5 * time.Second
)

// Options says where a store keeps what, and how long it waits for it.
type Options struct {
	// Client is the connection: a *redis.Client (with Sentinel as well), a
	// *redis.ClusterClient or a *redis.Ring. It has to be made with
	// ContextTimeoutEnabled, without which it does not keep to a Timeout, and should be
	// made with MaxRetries -1: a decision that is repeated is charged twice.
	Client redis.UniversalClient
	// Account is the name of the account that the processes share, 1 to 64 bytes
	// without braces, such as the id of a bot. All keys start with weir:{account}: and
	// so lie in one slot of a cluster. It is no secret: never a bot's token.
	Account string
	// Timeout is how long a call waits for its answer, from 1 ms to 10 s; 0 is
	// DefaultTimeout. It has to be longer than a round trip to the server.
	Timeout time.Duration
	// ConnectTimeout is how long it may take to set a connection up (dial, TLS, log in,
	// choose the database, load the scripts), from 10 ms to 1 min; 0 is
	// DefaultConnectTimeout. No call waits that long: it goes on behind the call. Only
	// [Store.Check] waits for it. Set the client's DialTimeout to it as well.
	ConnectTimeout time.Duration
}

// check returns a [*store.ArgumentError] for the first option that cannot be used, and
// fills in what was left out.
func (o *Options) check() error {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.ConnectTimeout == 0 {
		o.ConnectTimeout = DefaultConnectTimeout
	}
	switch {
	case o.Client == nil:
		return &store.ArgumentError{Field: "client", Value: "missing", Want: "a Redis client"}
	case !boundedByContext(o.Client):
		return &store.ArgumentError{
			Field: "client", Value: "one that takes no notice of deadlines", Want: "one made with ContextTimeoutEnabled",
		}
	case o.Account == "" || len(o.Account) > 64 || strings.ContainsAny(o.Account, "{}"):
		return &store.ArgumentError{
			Field: "account", Value: strconv.Quote(o.Account[:min(len(o.Account), 80)]), Want: "1 to 64 bytes without braces",
		}
	case o.Timeout < time.Millisecond || o.Timeout > 10*time.Second:
		return &store.ArgumentError{Field: "timeout", Value: o.Timeout.String(), Want: "1ms to 10s, or 0 for " + DefaultTimeout.String()}
	case o.ConnectTimeout < 10*time.Millisecond || o.ConnectTimeout > time.Minute:
		return &store.ArgumentError{
			Field: "connect_timeout", Value: o.ConnectTimeout.String(), Want: "10ms to 1m, or 0 for " + DefaultConnectTimeout.String(),
		}
	}
	return nil
}

func boundedByContext(client redis.UniversalClient) bool {
	switch c := client.(type) {
	case *redis.Client:
		return c.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		return c.Options().ContextTimeoutEnabled
	case *redis.Ring:
		return c.Options().ContextTimeoutEnabled
	default:
		return true // a stand-in of the program's own
	}
}

// New returns a store on a connection that the program has made and will close. It
// does not talk to the server. The error is a [*store.ArgumentError].
func New(o Options) (*Store, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("redis store: %w", err)
	}
	life, end := context.WithCancel(context.Background())
	return &Store{
		client:  o.Client,
		prefix:  "weir:{" + o.Account + "}:",
		timeout: o.Timeout,
		connect: o.ConnectTimeout,
		saving:  make(chan struct{}, 1),
		process: strconv.FormatUint(rand.Uint64(), 36),
		scripts: newScripts(strings.NewReplacer()),
		start:   time.Now(),
		life:    life,
		end:     end,
	}, nil
}

// Open returns a store on a single server, whose Close ends the connection. The URL is as
// go-redis has it, with two settings of the store's own, durations such as 500ms:
//
//	redis://user:password@host:6379/0        rediss:// with TLS
//	unix://user:password@/path/to/socket?db=0
//	redis://host/0?timeout=1s&connect_timeout=10s        see [Options]
//
// Settings of go-redis in the query (pool_size, read_timeout, …) hold, except that a
// question is not retried and is bounded by the timeout. Open does not talk to the server,
// which may come later; a program that needs it at once calls [Store.Check]. The error is a
// [*store.ArgumentError] that names the setting, and does not contain the URL, which may
// hold a password.
func Open(url, account string) (*Store, error) {
	config, o, err := parse(url)
	if err != nil {
		return nil, fmt.Errorf("redis store: %w", err)
	}
	o.Account = account
	config.ContextTimeoutEnabled = true
	config.MaxRetries = -1
	config.DialerRetries = 1
	if config.DialTimeout == 0 {
		config.DialTimeout = cmp.Or(o.ConnectTimeout, DefaultConnectTimeout)
	}
	config.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	config.DisableIdentity = true // a round trip on each new connection

	o.Client = redis.NewClient(config)
	s, err := New(o)
	if err != nil {
		return nil, errors.Join(err, o.Client.Close())
	}
	s.own = true
	return s, nil
}
