package client

import (
	"context"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/invoke"
)

// self asks for the account before the first call to a chat, if neither a login, nor a store,
// nor the program has said whether it is a bot: the chats of bots have limits. A session
// that is kept does not say it.
type self struct {
	limiter *invoke.Limiter
	turn    chan struct{} // held while one call asks for all
}

func newSelf(limiter *invoke.Limiter) *self {
	return &self{limiter: limiter, turn: make(chan struct{}, 1)}
}

// learning is a middleware that does so.
func (s *self) learning(next tg.Invoker) telegram.InvokeFunc {
	return func(ctx context.Context, input bin.Encoder, output bin.Decoder) error {
		if s.limiter.NeedsSelf() && classify.PeerOf(input) != 0 {
			s.ask(ctx, next)
		}
		return next.Invoke(ctx, input, output)
	}
}

// ask blocks until there is an answer or ctx is done. After an error the call goes on, and the
// next one asks again.
func (s *self) ask(ctx context.Context, next tg.Invoker) {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-s.turn }()
	if !s.limiter.NeedsSelf() {
		return
	}
	plain, cancel := plain(ctx)
	defer cancel()
	// The choke point reads the answer. What an error says, the call itself will meet too.
	_, _ = tg.NewClient(next).UsersGetUsers(plain, []tg.InputUserClass{&tg.InputUserSelf{}})
}

// plain returns a context that ends with ctx. It has none of its values: a permit or a cost
// there is for the call itself.
func plain(ctx context.Context) (context.Context, context.CancelFunc) {
	plain, cancel := context.WithCancel(context.Background())
	stop := context.AfterFunc(ctx, cancel)
	return plain, func() { stop(); cancel() }
}
