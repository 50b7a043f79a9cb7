package keyed

import "math"

// table is a hash table of states with open addressing, in place of a map, for three
// reasons: key and state lie in one piece of memory, which is found with one hash; it
// can be swept a little at each charge, without a pause; and it shrinks.
//
// A slot is good until the next call of insert, remove or sweep.
type table struct {
	slots []slot // a power of two, or none
	n     int    // those in use
	next  int    // where the sweep goes on
}

// slot is free if it has no record.
type slot struct {
	record  []byte // the key's length in two bytes, the key, the state
	hash    uint32
	expires uint32 // the second in which the state has expired, so that a sweep need not look at it
}

const minSlots = 16

func (s *slot) is(hash uint32, key string, k Kind) bool {
	if s.hash != hash || int(le.Uint16(s.record)) != len(key) {
		return false
	}
	rest := s.record[2:]
	return string(rest[:len(key)]) == key && rest[len(key)] == byte(k)
}

func (s *slot) state() State { return State(s.record[2+int(le.Uint16(s.record)):]) }

// set puts a new state in place of what Decide has made it of.
func (s *slot) set(next State) {
	start := 2 + int(le.Uint16(s.record))
	if start+len(next) <= cap(s.record) {
		s.record = s.record[:start+len(next)] // Decide has worked in place
	} else {
		s.record = append(s.record[:start:start], next...)
	}
	s.expires = uint32(min(math.MaxUint32, next.expires()/1e6+1))
}

func (t *table) find(hash uint32, key string, k Kind) *slot {
	if t.n == 0 {
		return nil
	}
	mask := len(t.slots) - 1
	for i := int(hash) & mask; t.slots[i].record != nil; i = (i + 1) & mask {
		if t.slots[i].is(hash, key, k) {
			return &t.slots[i]
		}
	}
	return nil
}

// insert makes a slot for a key that has none, with room for a state of a size.
func (t *table) insert(hash uint32, key string, size int) *slot {
	if 4*(t.n+1) > 3*len(t.slots) {
		t.resize(max(minSlots, 2*len(t.slots)))
	}
	t.n++
	record := make([]byte, 0, 2+len(key)+size)
	record = append(le.AppendUint16(record, uint16(len(key))), key...)
	return t.put(slot{record: record, hash: hash})
}

func (t *table) put(s slot) *slot {
	mask := len(t.slots) - 1
	i := int(s.hash) & mask
	for t.slots[i].record != nil {
		i = (i + 1) & mask
	}
	t.slots[i] = s
	return &t.slots[i]
}

// remove forgets a key. It reports whether it was there.
func (t *table) remove(hash uint32, key string, k Kind) bool {
	if t.n == 0 {
		return false
	}
	mask := len(t.slots) - 1
	for i := int(hash) & mask; t.slots[i].record != nil; i = (i + 1) & mask {
		if t.slots[i].is(hash, key, k) {
			t.clear(i)
			return true
		}
	}
	return false
}

// clear frees a slot and moves up those behind it that had to go round it.
func (t *table) clear(i int) {
	t.n--
	mask := len(t.slots) - 1
	for j := (i + 1) & mask; t.slots[j].record != nil; j = (j + 1) & mask {
		// It may move to i unless its home lies behind i, on the way to j.
		if home := int(t.slots[j].hash) & mask; (j-home)&mask >= (j-i)&mask {
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = slot{}
}

// sweep looks at some slots further on and forgets those that have expired. A table
// that has become too large for what is in it shrinks. It returns how many it forgot.
func (t *table) sweep(slots int, second uint32) (forgot int) {
	for ; slots > 0 && len(t.slots) > 0; slots-- {
		if t.next >= len(t.slots) {
			t.next = 0
			if size := len(t.slots); size > minSlots && 8*t.n < size {
				t.resize(size / 2)
			}
		}
		if s := &t.slots[t.next]; s.record != nil && s.expires <= second {
			t.clear(t.next) // another may stand here now
			forgot++
			continue
		}
		t.next++
	}
	return forgot
}

func (t *table) resize(size int) {
	before := t.slots
	t.slots, t.next = make([]slot, size), 0
	for i := range before {
		if before[i].record != nil {
			t.put(before[i])
		}
	}
}
