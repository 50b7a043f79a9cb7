package ratelimit

import (
	"math"
	"math/bits"
)

// table remembers the states of the gates of a set that nobody waits at, by key. It is
// a hash table with open addressing, in place of a map, for two reasons: a state lies
// beside its key, where a million gates make every other step a wait for memory; and it
// can be swept a little at each call, so that what is as good as new is forgotten
// without a pause for it.
//
// A pointer to a state is good until the next call of put, remove or sweep.
type table struct {
	slots []slot // a power of two, or none
	n     int    // those in use
	next  int    // where the sweep goes on
}

// slot is in use unless its state says that it is free.
type slot struct {
	key   uint64
	state state
}

// free is the at of a slot that is not in use.
const free = math.MinInt64

// minSlots is the size of the smallest table: enough for the chats of most bots, so
// that the same ones are not forgotten and remembered all the time.
const minSlots = 256

// filling reports whether the table will grow unless something is forgotten.
func (t *table) filling() bool { return 2*t.n > len(t.slots) }

// home is where a key belongs. Keys may be in a row, as the numbers of chats are: the
// multiplication spreads them.
func (t *table) home(key uint64) int {
	return int(key * 0x9e3779b97f4a7c15 >> (64 - bits.Len(uint(len(t.slots)-1))))
}

// find returns the slot of a key, or the free one where it would go.
func (t *table) find(key uint64) *slot {
	mask := len(t.slots) - 1
	for i := t.home(key); ; i = (i + 1) & mask {
		if s := &t.slots[i]; s.state.at == free || s.key == key {
			return s
		}
	}
}

// get returns the state of a key, or nil.
func (t *table) get(key uint64) *state {
	if t.n == 0 {
		return nil
	}
	if s := t.find(key); s.state.at != free {
		return &s.state
	}
	return nil
}

// put returns the state of a key, which is otherwise if it was not there.
func (t *table) put(key uint64, otherwise state) *state {
	if 3*(t.n+1) > 2*len(t.slots) {
		t.resize(max(minSlots, 2*len(t.slots)))
	}
	s := t.find(key)
	if s.state.at == free {
		t.n++
		s.key, s.state = key, otherwise
	}
	return &s.state
}

// remove forgets a key.
func (t *table) remove(key uint64) {
	if t.n == 0 {
		return
	}
	mask := len(t.slots) - 1
	for i := t.home(key); t.slots[i].state.at != free; i = (i + 1) & mask {
		if t.slots[i].key == key {
			t.clear(i)
			return
		}
	}
}

// clear frees a slot and moves up those behind it that had to go round it.
func (t *table) clear(i int) {
	t.n--
	mask := len(t.slots) - 1
	for j := i; ; {
		j = (j + 1) & mask
		if t.slots[j].state.at == free {
			break
		}
		// It may move to i unless its home lies behind i, on the way to j.
		if (j-t.home(t.slots[j].key))&mask >= (j-i)&mask {
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = slot{state: state{at: free}}
}

// sweep looks at some slots further on and forgets those whose state is as good as
// new. A table that has become too large for what is in it shrinks.
func (t *table) sweep(slots int, a algorithm, now int64) {
	for ; slots > 0 && len(t.slots) > 0; slots-- {
		if t.next >= len(t.slots) {
			t.next = 0
			if size := len(t.slots); size > minSlots && 8*t.n < size {
				t.resize(size / 2)
			}
		}
		if s := &t.slots[t.next]; s.state.at != free && a.asNew(&s.state, now) {
			t.clear(t.next) // another may stand here now
			continue
		}
		t.next++
	}
}

func (t *table) resize(size int) {
	before := t.slots
	t.slots, t.next = make([]slot, size), 0
	for i := range t.slots {
		t.slots[i].state.at = free
	}
	for i := range before {
		if s := &before[i]; s.state.at != free {
			*t.find(s.key) = *s
		}
	}
}

// each calls f with every state.
func (t *table) each(f func(*state)) {
	for i := range t.slots {
		if s := &t.slots[i].state; s.at != free {
			f(s)
		}
	}
}
