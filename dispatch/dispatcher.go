package dispatch

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"

	"github.com/gotd/td/telegram"
	"github.com/gotd/td/telegram/updates"
	"github.com/gotd/td/telegram/updates/hook"
	"github.com/gotd/td/tg"
)

// Defaults of [Options].
const (
	DefaultMaxWaiting  = 10_000
	DefaultMaxHandlers = 1_000
)

// Options of a [Dispatcher]. The zero value is ready for use.
type Options struct {
	// MaxWaiting is how many updates wait for their handler at most; 0 or less for
	// DefaultMaxWaiting. One chat has at most half of them, unless Block or InOrder is set.
	//
	// An update that comes when the bound is reached is dropped, and a warning is logged
	// once until there is room again. A dropped update is lost, except in front of an
	// updates.Manager, which is made to fetch it once there is room. See Block for the
	// alternative.
	MaxWaiting int
	// MaxHandlers is how many handlers run at the same time at most, each on a goroutine;
	// 0 or less for DefaultMaxHandlers. Chats beyond it take turns.
	MaxHandlers int
	// Block makes Handle wait for room, or for its context, when MaxWaiting is reached;
	// nothing is dropped then. It is for the handler of an updates.Manager. In
	// telegram.Options it would bring back what this package is there to avoid.
	Block bool
	// InOrder hands over each packet as it came and one at a time. It is always on for
	// an *updates.Manager. Set it for a handler of your own that passes packets on to one.
	InOrder bool
	// Logger gets the errors of handlers, and a warning when MaxWaiting is reached. nil
	// logs nothing.
	Logger *zap.Logger
}

// Dispatcher is a telegram.UpdateHandler that calls another one on goroutines of its
// own. Make one with [New]. It is safe for concurrent use.
type Dispatcher struct {
	handler     telegram.UpdateHandler
	maxHandlers int
	maxChat     int
	block       bool
	inOrder     bool
	logger      *zap.Logger

	ctx     context.Context // done when the Dispatcher is closed
	cancel  context.CancelFunc
	running sync.WaitGroup
	room    *semaphore.Weighted // a unit for each update that may wait
	half    int                 // as many may wait when the dropped ones are asked for

	mu       sync.Mutex
	closed   bool
	chats    map[chat]*queue // those with an update that waits or is handled
	ready    []*queue        // those that wait for a goroutine
	handlers int             // goroutines
	waiting  int             // updates in all queues
	missed   missed

	differences differences
}

// New returns a Dispatcher that calls handler, which must not be nil. It starts no
// goroutine before the first update.
func New(handler telegram.UpdateHandler, opts Options) *Dispatcher {
	if opts.MaxWaiting <= 0 {
		opts.MaxWaiting = DefaultMaxWaiting
	}
	if opts.MaxHandlers <= 0 {
		opts.MaxHandlers = DefaultMaxHandlers
	}
	if opts.Logger == nil {
		opts.Logger = zap.NewNop()
	}
	if _, ok := handler.(*updates.Manager); ok {
		opts.InOrder = true
	}
	d := &Dispatcher{
		handler:     handler,
		maxHandlers: opts.MaxHandlers,
		maxChat:     max(1, opts.MaxWaiting/2),
		block:       opts.Block,
		inOrder:     opts.InOrder,
		logger:      opts.Logger,
		room:        semaphore.NewWeighted(int64(opts.MaxWaiting)),
		half:        opts.MaxWaiting / 2,
		chats:       map[chat]*queue{},
	}
	if opts.Block || opts.InOrder {
		d.maxChat = opts.MaxWaiting
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

// Handle queues the updates and returns nil at once, unless Block is set. The handler
// gets ctx, so with gotd it ends when the client's Run does. Updates whose ctx is done
// before their turn are dropped.
//
// With Block, it waits for room and returns ctx's error if that is done first.
func (d *Dispatcher) Handle(ctx context.Context, u tg.UpdatesClass) error {
	return d.pass(ctx, d.handler, u)
}

// pass queues what handler is to get.
func (d *Dispatcher) pass(ctx context.Context, handler telegram.UpdateHandler, u tg.UpdatesClass) error {
	if u == nil {
		return nil
	}
	parts := []part{{updates: u}}
	if !d.inOrder {
		parts = split(u)
	}
	for _, p := range parts {
		err := d.add(p.chat, item{ctx: ctx, pts: p.pts, updates: p.updates, handle: func(ctx context.Context) error {
			return handler.Handle(ctx, p.updates)
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

// Hook returns a hook.UpdateHook that queues the answers to the program's own calls for
// next, in the order of all other updates, so that the call does not wait for next.
//
//	Middlewares: []telegram.Middleware{d.Hook(manager.Handle)}
//
// next gets a context that is done when the Dispatcher is closed, since that of the
// call may end with the call.
func (d *Dispatcher) Hook(next hook.UpdateHook) hook.UpdateHook {
	return func(_ context.Context, u tg.UpdatesClass) error {
		// The answer belongs to the caller, who may change it.
		return d.pass(d.ctx, telegram.UpdateHandlerFunc(next), copied(u))
	}
}

// HandleAffected queues what hook.AffectedHook reports for the Manager that the
// Dispatcher stands in front of, and returns at once. Without such a Manager it does
// nothing.
func (d *Dispatcher) HandleAffected(_ context.Context, channelID int64, pts, ptsCount int) error {
	manager, ok := d.handler.(hook.AffectedHandler)
	if !ok {
		return nil
	}
	return d.add(chat{}, item{ctx: d.ctx, handle: func(ctx context.Context) error {
		return manager.HandleAffected(ctx, channelID, pts, ptsCount)
	}})
}

// Waiting returns how many updates wait for their handlers. Those that are being handled
// are not among them.
func (d *Dispatcher) Waiting() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.waiting
}

// Close drops the updates that wait and returns when the handlers that run have
// returned. It does not end the contexts that Handle was given: those of gotd end with
// the client's Run, so call it after that. Later updates are dropped.
func (d *Dispatcher) Close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.cancel()
	d.running.Wait()
}

// call runs a handler and logs its error, as gotd would.
func (d *Dispatcher) call(i item) {
	if i.ctx.Err() != nil || d.ctx.Err() != nil {
		return
	}
	err := i.handle(i.ctx)
	if err == nil || i.ctx.Err() != nil && errors.Is(err, i.ctx.Err()) {
		return
	}
	d.logger.Warn("Update handler failed", zap.String("updates", fmt.Sprintf("%T", i.updates)), zap.Error(err))
}
