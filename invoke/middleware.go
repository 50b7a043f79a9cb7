package invoke

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/clock"
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/internal/floods"
	"github.com/weirtg/weir/ratelimit"
)

// ErrClosed is what calls get after [Middleware.Close] or [Limiter.Close], those
// that wait included. It is ratelimit.ErrClosed.
var ErrClosed = ratelimit.ErrClosed

// ErrNotSent matches, with errors.Is, the error of a call that was admitted and then ended
// before it was written to a connection, such as one whose context was done while there was
// none. Its tokens are given back. Package client returns it; with the middleware alone nobody
// knows whether gotd has written a call.
var ErrNotSent = errors.New("not sent")

// Middleware is the choke point of one client. It is a telegram.Middleware and
// safe for concurrent use.
type Middleware struct {
	limiter    *Limiter
	classifier *classify.Classifier
	standard   *classify.Classifier // without the program's categories
	clock      clock.Clock
	threshold  flood.Threshold
	maxWait    time.Duration
	maxRetries int
	owns       bool // the limiter is its own, and is closed with it
	observer   Observer
	logger     *zap.Logger
	condenser  *condenser
	main       *wire           // of the account's own data centre
	account    atomic.Int64    // that the client is logged in as, 0 until an answer shows it
	owner      atomic.Int64    // the account of the limiter, 0 until then
	life       context.Context // done after Close
	end        context.CancelFunc

	lineMu sync.Mutex             // for those who change outage
	outage atomic.Pointer[outage] // nil while there is a connection
}

var _ telegram.Middleware = (*Middleware)(nil)

// New returns a middleware. The error names every option that is wrong.
func New(opts Options) (*Middleware, error) {
	var wrong error
	standard, err := classify.New(classify.Options{})
	if err != nil {
		return nil, fmt.Errorf("invoke: %w", err)
	}
	limiter := opts.Limiter
	if limiter != nil {
		wrong = opts.inherit()
	}
	wrong = errors.Join(wrong, opts.setDefaults())
	classifier, err := classify.New(opts.Categories)
	if err != nil {
		wrong = errors.Join(wrong, fmt.Errorf("categories: %w", err))
	}
	owns := limiter == nil
	if owns {
		limiter, err = NewLimiter(opts)
		wrong = errors.Join(wrong, err)
	}
	if wrong != nil {
		if owns && limiter != nil {
			limiter.Close()
		}
		return nil, fmt.Errorf("invoke: %w", wrong)
	}
	m := &Middleware{
		limiter:    limiter,
		classifier: classifier,
		standard:   standard,
		clock:      limiter.clock,
		threshold:  opts.SleepThreshold.Or(flood.Threshold(flood.DefaultThreshold)),
		maxWait:    opts.MaxWait,
		maxRetries: opts.MaxRetries,
		owns:       owns,
		observer:   opts.Observer,
		logger:     opts.Logger,
		condenser:  newCondenser(limiter.clock),
	}
	m.life, m.end = context.WithCancel(limiter.life)
	m.main = m.newWire()
	return m, nil
}

// Must is New for options that are known to be right. It panics on an error, like
// regexp.MustCompile.
func Must(opts Options) *Middleware {
	m, err := New(opts)
	if err != nil {
		panic(err)
	}
	return m
}

// Limiter returns the limiter of the middleware, to be watched, changed or shared.
func (m *Middleware) Limiter() *Limiter { return m.limiter }

// Close ends every call of this middleware that waits with [ErrClosed], and every
// later one. Calls that have been admitted are not touched. A limiter of its own is
// closed too, which saves what is to be kept and may take as long as [Limiter.Close]
// says; one that is shared is not touched.
func (m *Middleware) Close() {
	m.end()
	if m.owns {
		m.limiter.Close()
	}
}

// Handle implements telegram.Middleware, for calls to the account's own data
// centre.
func (m *Middleware) Handle(next tg.Invoker) telegram.InvokeFunc { return m.HandleDC(0, next) }

// HandleDC is Handle for an invoker whose calls go to another data centre, such as
// a pool: floods are known by data centre. 0 is the account's own.
func (m *Middleware) HandleDC(dc int, next tg.Invoker) telegram.InvokeFunc {
	wire := m.main
	if dc != 0 {
		wire = m.newWire()
	}
	return func(ctx context.Context, input bin.Encoder, output bin.Decoder) error {
		c := call{m: m, Call: m.classifier.Call(input), opt: chosen(ctx), asksSelf: asksSelf(input), dc: m.limiter.trackerDC(dc), wire: wire}
		if err := errors.Join(c.opt.check(), m.admits(c.Method)); err != nil {
			return err
		}
		if c.opt.category != 0 {
			c.Category = c.opt.category
		}
		m.limiter.findGates(&c.pass, c.Call, input)
		return c.invoke(ctx, next, input, output)
	}
}

func (m *Middleware) newWire() *wire {
	return newWire(m.limiter.limiter, m.clock, m.life.Done())
}

// Acquire takes a token of the category and a global one, for a request that is
// made past the middleware. It blocks until they are there, ctx is done or the
// middleware is closed, and fails like [ratelimit.Limiter.Begin].
//
// After a nil error, call settle once when the request has returned: until then the tokens are
// pending, see [ratelimit.Limiter.Begin]. Further calls of settle do nothing.
func (m *Middleware) Acquire(ctx context.Context, category classify.Category) (settle func(), err error) {
	c := call{m: m, Call: classify.Call{Category: category}, opt: choices{cost: 1, category: category}}
	if err := c.opt.check(); err != nil {
		return nil, err
	}
	c.pass.add(m.limiter.gates[category])
	c.pass.add(m.limiter.gates[classify.Global])
	if m.life.Err() != nil {
		return nil, ErrClosed
	}
	if _, err := c.acquire(ctx, floods.Pass{}, &waits{}); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { m.limiter.limiter.Settle(1, c.pass.all()...) }), nil
}

// join returns a context that also ends when the middleware is closed. Only calls
// that have to wait need one.
func (m *Middleware) join(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(m.life, cancel)
	return ctx, func() { stop(); cancel() }
}

// tell tells the observer, of which there has to be one. Its faults are not the call's.
func (m *Middleware) tell(e Event) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		if _, ok := m.condenser.first("observer", time.Minute); ok {
			m.logger.Error("Observer panicked", zap.Any("panic", r), zap.Stringer("event", e.Kind), zap.Stack("stack"))
		}
	}()
	m.observer.Observe(e)
}
