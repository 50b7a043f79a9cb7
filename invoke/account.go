package invoke

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/weirtg/weir/store"
)

// ErrOtherAccount matches, with errors.Is, the error of every call that a client makes once
// an answer has shown that its limiter, or the store of that, belongs to another account:
// the floods and refusals of one account would stop the other. Give each account a Limiter
// and a Store of its own. Calls of auth.* go on, to log out or in.
var ErrOtherAccount = errors.New("invoke: the limiter or its store belongs to another account")

const (
	// accountFact is the key of the account that a store belongs to.
	accountFact = "account"
	// accountKept is how long a store belongs to an account that does not use it.
	accountKept = 365 * 24 * time.Hour
)

// owner is the account that a limiter and its store belong to: the first that an answer
// shows. Without one, as long as nobody has asked, nothing is known.
type owner struct {
	mu sync.Mutex
	id int64 // 0: not known
	// bot is whether the account is one, if the store knows that too.
	bot, keeps bool
}

type keptAccount struct {
	ID int64 `json:"id"`
	// Bot is whether the account is one, nil where an earlier version has not kept it.
	Bot *bool `json:"bot,omitempty"`
}

// accountFacts is the account that the store belongs to.
type accountFacts struct{ *Limiter }

// Prefix implements persist.Source. It is the whole key.
func (accountFacts) Prefix() string { return accountFact }

// Fact implements persist.Marked.
func (l accountFacts) Fact(key string) (f store.Fact, ok bool) {
	l.owner.mu.Lock()
	defer l.owner.mu.Unlock()
	bot := l.owner.bot
	return fact(key, keptAccount{l.owner.id, &bot}, l.clock.Now().Add(accountKept)), true
}

// Restore implements persist.Source.
func (l accountFacts) Restore(f store.Fact) {
	var kept keptAccount
	if f.Key != accountFact || f.Value == nil || json.Unmarshal(f.Value, &kept) != nil || kept.ID <= 0 {
		return
	}
	l.owner.mu.Lock()
	defer l.owner.mu.Unlock()
	if l.owner.id == 0 {
		l.owner.id = kept.ID
	}
	if l.owner.id != kept.ID || kept.Bot == nil {
		return
	}
	l.owner.bot, l.owner.keeps = *kept.Bot, true
	if l.bot.Load() == botUnknown {
		l.SetBot(*kept.Bot)
	}
}

// settles returns the account that the limiter belongs to if id changes nothing about it, and 0
// if that is not known, or the store does not know yet whether it is a bot.
func (o *owner) settles(id int64) int64 {
	if o.id != id || o.keeps {
		return o.id
	}
	return 0
}

// ownedBy returns the account that the limiter belongs to, which is id if it had none. It
// blocks while the store is asked, until ctx is done.
func (l *Limiter) ownedBy(ctx context.Context, id int64, bot bool) int64 {
	o := &l.owner
	o.mu.Lock()
	known := o.settles(id)
	o.mu.Unlock()
	if known != 0 {
		return known
	}
	// Another limiter may have made the store its account's since this one was made.
	l.keeper.Recall(ctx, accountFact)
	o.mu.Lock()
	defer o.mu.Unlock()
	if known := o.settles(id); known != 0 {
		return known
	}
	o.id, o.bot, o.keeps = id, bot, true
	l.keeper.Journal().Mark(accountFact, true)
	return id
}

// shown notes which account an answer shows the client to be of. The error matches
// ErrOtherAccount.
func (m *Middleware) shown(ctx context.Context, account int64, bot bool) error {
	if account == m.account.Swap(account) {
		return m.foreign()
	}
	m.owner.Store(m.limiter.ownedBy(ctx, account, bot))
	m.limiter.keeper.Remember(ctx)
	return m.foreign()
}

// foreign is an error if the client's account is not the limiter's.
func (m *Middleware) foreign() error {
	account, owner := m.account.Load(), m.owner.Load()
	if owner == 0 || account == owner {
		return nil
	}
	return fmt.Errorf("%w: it is that of account %d, and the client is logged in as %d: give each account a Limiter and a Store of its own",
		ErrOtherAccount, owner, account)
}

// admits is an error for a call that is not to be made with another account's limiter.
func (m *Middleware) admits(method string) error {
	if strings.HasPrefix(method, "auth.") {
		return nil
	}
	return m.foreign()
}
