package redisstore

import (
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

// DefaultTimeout is what a server may take to answer unless it is set. On a local
// network it answers within a millisecond.
const DefaultTimeout = 100 * time.Millisecond

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
	// Timeout is how long a call may take at most, connecting included, from 1 ms to
	// 10 s; 0 is DefaultTimeout.
	Timeout time.Duration
}

// check returns a [*store.ArgumentError] for the first option that cannot be used, and
// fills in what was left out.
func (o *Options) check() error {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
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
		process: strconv.FormatUint(rand.Uint64(), 36),
		scripts: newScripts(strings.NewReplacer()),
		start:   time.Now(),
		life:    life,
		end:     end,
	}, nil
}

// Open returns a store on a single server, with [DefaultTimeout], whose Close ends the
// connection. The URL is as go-redis has it:
//
//	redis://user:password@host:6379/0        rediss:// with TLS
//	unix://user:password@/path/to/socket?db=0
//
// Settings in its query (pool_size, dial_timeout, …) hold, but for those that a
// decision needs otherwise: it is bounded by the Timeout, and not retried. Open does not
// talk to the server, which may come later; who needs it at once asks with [Store.Ping].
// The error is a [*store.ArgumentError], and does not contain the URL, which may hold a
// password.
func Open(url, account string) (*Store, error) {
	config, err := redis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("redis store: %w", &store.ArgumentError{
			Field: "url", Value: "none that can be read", Want: "redis://user:password@host:6379/0",
		})
	}
	config.ContextTimeoutEnabled = true
	config.MaxRetries = -1
	config.DialerRetries = 1
	if config.DialTimeout == 0 {
		// A connection that takes longer than a call goes on being made, and serves later
		// ones.
		config.DialTimeout = time.Second
	}
	config.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	config.DisableIdentity = true // a round trip on each new connection

	client := redis.NewClient(config)
	s, err := New(Options{Client: client, Account: account})
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	s.own = true
	return s, nil
}
