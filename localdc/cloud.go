package localdc

import (
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gotd/log"
	"github.com/gotd/log/logzap"
	"github.com/gotd/td/clock"
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/telegram/dcs"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgtest"
	"github.com/gotd/td/transport"
	"go.uber.org/zap"
)

// DemoBotToken is the bot token that a Cloud accepts unless told otherwise. It
// opens nothing anywhere else.
const DemoBotToken = "1000:demo-token-of-a-local-data-centre"

// ErrClosed is returned by what waits on a Cloud that was closed.
var ErrClosed = errors.New("localdc: closed")

// Options configure a [Cloud]. The zero value is useful: two data centres, no
// limits, the demo token.
type Options struct {
	// DCs are the ids of the data centres, each above 0 and named once.
	// Default: 2 and 4.
	DCs []int
	// Home is the data centre where the account lives; a login at another is
	// answered with USER_MIGRATE_<Home>. Default: the first of DCs.
	Home int
	// CDN is the id of a CDN to have beside DCs, above 0 and none of them, such as
	// 203; 0 for none. If there is one, a client that says with upload.getFile that
	// it can deal with a CDN is sent there for every file; gotd's says so with
	// AllowCDN. The CDN has an RSA key of its own, which help.getCdnConfig tells.
	CDN int
	// Limits are what is enforced from the start; see [Cloud.SetLimits].
	Limits Limits
	// BotToken is the token to accept: the bot's id, a colon, a secret.
	// Default: DemoBotToken.
	BotToken string
	// Person makes the account a person's as far as the client is told: its user
	// is no bot. Everything else is the same, the login with BotToken too.
	Person bool
	// Clock is what limits, dates and delays are reckoned on. The limits are as
	// exact with a virtual clock as with the real one. Default: clock.System.
	Clock clock.Clock
	// Link is the network that clients made with [Cloud.ClientOptions] connect over.
	// Default: loopback as it is. Close does not close it.
	Link *Link
	// Logger gets what the servers have to say. Default: nothing.
	Logger *zap.Logger
}

func (o *Options) setDefaults() {
	if len(o.DCs) == 0 {
		o.DCs = []int{2, 4}
	}
	if o.Home == 0 {
		o.Home = o.DCs[0]
	}
	if o.BotToken == "" {
		o.BotToken = DemoBotToken
	}
	if o.Clock == nil {
		o.Clock = clock.System
	}
}

func (o Options) validate() error {
	seen := map[int]bool{}
	for _, id := range o.DCs {
		if id <= 0 || seen[id] {
			return fmt.Errorf("localdc: DCs is %v: want ids above 0, each once", o.DCs)
		}
		seen[id] = true
	}
	if !seen[o.Home] {
		return fmt.Errorf("localdc: Home is %d: want one of DCs %v", o.Home, o.DCs)
	}
	if o.CDN < 0 || seen[o.CDN] {
		return fmt.Errorf("localdc: CDN is %d: want 0 or an id that is none of DCs %v", o.CDN, o.DCs)
	}
	if _, err := botID(o.BotToken); err != nil {
		return err
	}
	return nil
}

// botID is the number before the colon of a token.
func botID(token string) (int64, error) {
	digits, secret, ok := strings.Cut(token, ":")
	id, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || id <= 0 || id >= firstUserID || secret == "" {
		return 0, fmt.Errorf("localdc: BotToken is malformed: want <id>:<secret>, with an id from 1 to %d", firstUserID-1)
	}
	return id, nil
}

// Cloud is a Telegram of one's own on loopback: data centres that share one bot
// account, its chats and its limits. All methods are safe for concurrent use.
type Cloud struct {
	opts    Options
	key     *rsa.PrivateKey
	schema  *schema
	methods map[uint32]method
	dcs     []*dataCentre // in the order of Options.DCs, then the CDN
	start   time.Time

	cancel context.CancelFunc
	goes   sync.WaitGroup
	done   chan struct{}

	mu      sync.Mutex
	closed  bool
	changed chan struct{} // closed and replaced after every call
	conns   map[*conn]struct{}
	judge   judge
	record  Record
	script  script
	auth    auth
	chats   chats
	common  box
	files   files
	sent    map[int64]struct{} // random ids
	queries map[int64]*string  // callback queries; nil until answered
}

// dataCentre is one server of the Cloud.
type dataCentre struct {
	cloud  *Cloud
	id     int
	cdn    bool
	key    *rsa.PrivateKey
	addr   *net.TCPAddr
	server *tgtest.Server

	turn    sync.Mutex // held by the connection at work
	current *conn      // that connection; guarded by turn

	sessions map[int64]*session // guarded by Cloud.mu
}

// New starts a Cloud: it listens on free ports of 127.0.0.1 and serves until
// Close. It fails when an option makes no sense or no port can be had. The first Cloud
// of a process takes some 0.1 s to 0.5 s, in which the RSA key of all of them is made.
func New(opts Options) (*Cloud, error) {
	opts.setDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	schema := newSchema()
	if err := opts.Limits.validate(schema.function); err != nil {
		return nil, err
	}
	opts.DCs = slices.Clone(opts.DCs)
	key, err := commonKey()
	if err != nil {
		return nil, err
	}
	id, err := botID(opts.BotToken)
	if err != nil {
		return nil, err
	}
	c := &Cloud{
		opts:    opts,
		key:     key,
		schema:  schema,
		start:   opts.Clock.Now(),
		done:    make(chan struct{}),
		changed: make(chan struct{}),
		conns:   map[*conn]struct{}{},
		judge:   newJudge(opts.Limits),
		record:  newRecord(),
		script:  newScript(),
		auth:    newAuth(),
		chats:   newChats(id, !opts.Person),
		common:  newBox(),
		files:   newFiles(),
		sent:    map[int64]struct{}{},
		queries: map[int64]*string{},
	}
	c.methods = c.table()
	if err := c.listen(); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Cloud) listen() error {
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	var logger log.Logger
	if c.opts.Logger != nil {
		logger = logzap.New(c.opts.Logger)
	}
	for _, id := range c.opts.DCs {
		if err := c.serve(ctx, &dataCentre{id: id, key: c.key}, logger); err != nil {
			return err
		}
	}
	if c.opts.CDN == 0 {
		return nil
	}
	key, err := generateKey()
	if err != nil {
		return err
	}
	return c.serve(ctx, &dataCentre{id: c.opts.CDN, key: key, cdn: true}, logger)
}

// serve starts a data centre.
func (c *Cloud) serve(ctx context.Context, dc *dataCentre, logger log.Logger) error {
	raw, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("localdc: listen for DC %d: %w", dc.id, err)
	}
	dc.cloud, dc.addr, dc.sessions = c, raw.Addr().(*net.TCPAddr), map[int64]*session{}
	dc.server = tgtest.NewServer(tgtest.NewPrivateKey(dc.key), tgtest.HandlerFunc(dc.onMessage), tgtest.ServerOptions{
		DC:     dc.id,
		Logger: logger,
		// Idle clients ping once a minute.
		ReadTimeout:  5 * time.Minute,
		WriteTimeout: 10 * time.Second,
	})
	c.dcs = append(c.dcs, dc)
	l := newListener(dc, raw)
	c.goes.Go(l.run)
	c.goes.Go(func() {
		// The only ends are Close and a listener that is closed by it.
		_ = dc.server.Serve(ctx, transport.ListenCodec(nil, l))
	})
	return nil
}

// Close cuts every connection, ends every wait with [ErrClosed] and returns
// when nothing of the Cloud runs any more. Closing twice is harmless.
func (c *Cloud) Close() error {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		close(c.done)
		for conn := range c.conns {
			c.detachLocked(conn)
		}
	}
	c.mu.Unlock()
	c.cancel()
	c.goes.Wait()
	return nil
}

// ClientOptions returns what a gotd client needs to connect here: keys,
// addresses, resolver and a data centre to start at (the home one). The caller
// adds its own session storage, update handler, AllowCDN and so on.
func (c *Cloud) ClientOptions() telegram.Options {
	var network dcs.PlainOptions
	if c.opts.Link != nil {
		network.Dial = c.opts.Link.Dial
	}
	return telegram.Options{
		PublicKeys: []telegram.PublicKey{{RSA: &c.key.PublicKey}},
		DC:         c.opts.Home,
		DCList:     dcs.List{Options: c.dcOptions()},
		Resolver:   dcs.Plain(network),
	}
}

func (c *Cloud) dcOptions() []tg.DCOption {
	var out []tg.DCOption
	for _, dc := range c.dcs {
		option := tg.DCOption{Static: true, CDN: dc.cdn, ID: dc.id, IPAddress: dc.addr.IP.String(), Port: dc.addr.Port}
		out = append(out, option)
		if !dc.cdn {
			option.MediaOnly = true
			out = append(out, option)
		}
	}
	return out
}

// SetLimits replaces the limits, for all calls that arrive from now on. Tokens
// and windows are carried over: no change grants a fresh burst, and a flood that
// stands keeps its deadline unless its limit is gone. A limit that was not there
// before counts from now. Limits that chats have of their own ([Chat.SetLimit]) and
// floods of [Cloud.Flood] stay as they are. Bad limits are an error and change
// nothing.
func (c *Cloud) SetLimits(l Limits) error {
	if err := l.validate(c.schema.function); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.judge.limits = l.clone()
	c.retune()
	return nil
}

// retune applies limits that changed. The caller holds mu.
func (c *Cloud) retune() { c.judge.retune(c.elapsed(c.opts.Clock.Now())) }

// elapsed is now as limits reckon it: from the start, never from the wall.
func (c *Cloud) elapsed(now time.Time) time.Duration { return now.Sub(c.start) }

// notify wakes what waits for a change. The caller holds mu.
func (c *Cloud) notify() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// wait blocks until something changed.
func (c *Cloud) wait(ctx context.Context, changed <-chan struct{}) error {
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.done:
		return ErrClosed
	}
}
