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
	// keeps: the store knows whether the account is a bot.
	keeps bool
}

type keptAccount struct {
	ID int64 `json:"id"`
	// Bot is whether the account is one, nil where an earlier version has not kept it.
	Bot *bool `json:"bot,omitempty"`
}

// toldOwner takes in the account that the store belongs to.
func (l *Limiter) toldOwner(f store.Fact) {
	var kept keptAccount
	if f.Value == nil || json.Unmarshal(f.Value, &kept) != nil || kept.ID <= 0 {
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
	l.owner.keeps = true
	if l.bot.Load() == botUnknown {
		l.SetBot(*kept.Bot)
	}
}

// ownedBy returns the account that the limiter belongs to, which is id if it had none.
func (l *Limiter) ownedBy(id int64, bot bool) int64 {
	l.owner.mu.Lock()
	known, keeps := l.owner.id, l.owner.keeps
	l.owner.mu.Unlock()
	if known != 0 && (known != id || keeps) {
		return known
	}
	// Another limiter may have made the store its account's since this one was made.
	if k := l.keeper; k != nil && !k.isLost() {
		ctx, cancel := context.WithTimeout(l.life, storePatience)
		facts, err := k.memory.Load(ctx)
		cancel()
		k.note(err)
		for _, f := range facts {
			if f.Key == accountFact {
				l.toldOwner(f)
			}
		}
	}
	l.owner.mu.Lock()
	defer l.owner.mu.Unlock()
	if l.owner.id != 0 && (l.owner.id != id || l.owner.keeps) {
		return l.owner.id
	}
	l.owner.id, l.owner.keeps = id, true
	if k := l.keeper; k != nil {
		k.mu.Lock()
		k.pending[accountFact] = fact(accountFact, keptAccount{id, &bot}, l.clock.Now().Add(accountKept))
		k.mu.Unlock()
	}
	return id
}

// shown notes which account an answer shows the client to be of. The error matches
// ErrOtherAccount.
func (m *Middleware) shown(account int64, bot bool) error {
	if account == m.account.Swap(account) {
		return m.foreign()
	}
	owner := m.limiter.ownedBy(account, bot)
	m.owner.Store(owner)
	m.limiter.remember()
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
