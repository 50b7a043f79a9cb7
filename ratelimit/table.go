package ratelimit

import (
	"math"
	"math/bits"
	"sync/atomic"
)

// table remembers the states of the gates of a set that nobody waits at, by key. It is
// a hash table with open addressing, in place of a map, for two reasons: a state lies
// beside its key, where a million gates make every other step a wait for memory; and it
// can be swept a little at each call, so that what is as good as new is forgotten
// without a pause for it.
//
// A pointer to a state is good until the next call of put, remove or sweep.
type table struct {
	slots []slot
	n     int // those in use
	next  int // where the sweep goes on
	found int // where get has found something last

	// far is slots, for whoever has not got the lock, if they are too many for the
	// processor's nearer caches.
	far atomic.Pointer[[]slot]
}

// slot is in use unless its state says that it is free. A line of the processor's cache
// holds four.
type slot struct {
	key   uint64
	state state
}

// free is the at of a slot that is not in use.
const free = math.MinInt64

// minSlots is the size of the smallest table: enough for the chats of most bots, so
// that the same ones are not forgotten and remembered all the time.
const minSlots = 256

// farSlots is the size from which on a look is a wait.
const farSlots = 1 << 14

// full reports whether one more would make too many go round others.
func (t *table) full() bool { return 5*(t.n+1) > 4*len(t.slots) }

// filling reports whether the table will grow unless something is forgotten. The half of
// full is early: where much is forgotten, looks are the shorter the emptier it is.
func (t *table) filling() bool { return 5*t.n > 2*len(t.slots) }

// home is where a key belongs, in so many slots. Keys may be in a row, as the numbers of
// chats are: the first multiplication spreads them over 64 bits, and the second takes those
// to the size of the table, which need not be a power of two.
//
// The order of homes is the same at any size, so a table grows from end to end, without
// jumps in memory.
func home(key uint64, slots int) int {
	i, _ := bits.Mul64(key*0x9e3779b97f4a7c15, uint64(slots))
	return int(i)
}

// after is the slot behind i, behind the last the first.
func (t *table) after(i int) int {
	if i++; i < len(t.slots) {
		return i
	}
	return 0
}

// expect tells that a key will be looked up. Where there are many, the wait for
// memory is most of what a look takes, and it goes by meanwhile: the lock and the clock
// come first. It needs no lock, and may look at slots that are out of date.
func (t *table) expect(key uint64) {
	if slots := t.far.Load(); slots != nil {
		expectIn(*slots, key)
	}
}

// expectIn is the seldom part of expect, apart so that the other is inlined.
func expectIn(slots []slot, key uint64) { prefetch(&slots[home(key, len(slots))]) }

// find returns where the slot of a key is, or the free one where it would go.
func (t *table) find(key uint64) int {
	i := home(key, len(t.slots))
	for t.slots[i].key != key && t.slots[i].state.at != free {
		i = t.after(i)
	}
	return i
}

// get returns the state of a key, or nil.
func (t *table) get(key uint64) *state {
	if t.n == 0 {
		return nil
	}
	i := t.find(key)
	s := &t.slots[i].state
	if s.at == free {
		return nil
	}
	t.found = i
	return s
}

// put returns the state of a key, which is otherwise if it was not there.
func (t *table) put(key uint64, otherwise state) *state {
	// A key that is put has mostly been got just before.
	if t.found < len(t.slots) {
		if s := &t.slots[t.found]; s.key == key && s.state.at != free {
			return &s.state
		}
	}
	if t.full() {
		t.grow()
	}
	s := &t.slots[t.find(key)]
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
	if i := t.find(key); t.slots[i].state.at != free {
		t.clear(i)
	}
}

// clear frees a slot and moves up those behind it that had to go round it.
func (t *table) clear(i int) {
	t.n--
	for j := t.after(i); t.slots[j].state.at != free; j = t.after(j) {
		// It may move to i unless its home lies behind i, on the way to j.
		if t.way(home(t.slots[j].key, len(t.slots)), j) >= t.way(i, j) {
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = slot{state: state{at: free}}
}

// way is how many slots it is from one on to the other.
func (t *table) way(from, to int) int {
	if to < from {
		to += len(t.slots)
	}
	return to - from
}

// sweep looks at some slots further on and forgets those whose state is as good as
// new. A table that has become too large for what is in it shrinks.
func (t *table) sweep(slots int, a algorithm, now int64) {
	for ; slots > 0 && len(t.slots) > 0; slots-- {
		if t.next >= len(t.slots) {
			t.next = 0
			if size := len(t.slots); size > minSlots && 8*t.n < size {
				t.resize(max(minSlots, size/2))
			}
		}
		if s := &t.slots[t.next]; s.state.at != free && a.forget(&s.state, now) {
			t.clear(t.next) // another may stand here now
			continue
		}
		t.next++
	}
}

// grow makes room: much where that is cheap and looks are the shorter for it, and no more
// than a half where it would take many megabytes.
func (t *table) grow() {
	size := len(t.slots)
	if size < farSlots {
		size *= 2
	} else {
		size += size / 2
	}
	t.resize(max(minSlots, size))
}

func (t *table) resize(size int) {
	before := t.slots
	t.slots, t.next = make([]slot, size), 0
	t.far.Store(nil)
	if slots := t.slots; size >= farSlots {
		t.far.Store(&slots)
	}
	for i := range t.slots {
		t.slots[i].state.at = free
	}
	for i := range before {
		if s := &before[i]; s.state.at != free {
			t.slots[t.find(s.key)] = *s
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
