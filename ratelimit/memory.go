package ratelimit

// memory keeps the states of the gates of a set that nobody waits at, by key. A bucket
// takes one word, the time at which it is full.
//
// There are two generations. What is charged goes to the young one. When nothing in the old
// one counts any more, the young one becomes the old one, and the old one is dropped whole:
// so no call ever looks through the memory for gates to forget. A gate is forgotten at the
// latest when it has not been used for twice the longest time that a state counts.
type memory struct{ young, old generation }

// generation is the states that were charged in one stretch of time.
type generation struct {
	full  map[uint64]int64   // buckets
	calls map[uint64][]int64 // windows
	until int64              // when nothing in it counts any more
}

// minYoung is how many gates are remembered before any is forgotten: enough for the chats of
// most bots, so that maps are not made and dropped all the time.
const minYoung = 256

func (m *memory) len() int { return m.young.len() + m.old.len() }

func (m *memory) get(key uint64) (state, bool) {
	s, ok := m.young.get(key)
	if !ok {
		s, ok = m.old.get(key)
	}
	return s, ok
}

// put remembers a state, which counts until some time. It reports whether the young
// generation has grown.
func (m *memory) put(key uint64, s state, until int64) bool {
	before := m.young.len()
	m.young.put(key, s)
	m.young.until = max(m.young.until, until)
	if m.young.len() == before {
		return false
	}
	m.old.remove(key)
	return true
}

func (m *memory) remove(key uint64) {
	m.young.remove(key)
	m.old.remove(key)
}

// age drops the old generation if nothing in it counts any more.
func (m *memory) age(now int64) bool {
	if m.len() == 0 || m.old.until > now {
		return false
	}
	m.old, m.young = m.young, generation{}
	return true
}

// live is how many gates have let something through that counts now.
func (m *memory) live(a algorithm, now int64) (n int) {
	count := func(_ uint64, s state) {
		if a.until(s) > now {
			n++
		}
	}
	m.young.each(count)
	m.old.each(count)
	return n
}

// change replaces every state. until says how long one counts.
func (m *memory) change(next func(state) state, until func(state) int64) {
	for _, g := range [...]*generation{&m.young, &m.old} {
		g.until = 0
		g.each(func(key uint64, s state) {
			s = next(s)
			g.put(key, s)
			g.until = max(g.until, until(s))
		})
	}
}

func (g *generation) len() int { return len(g.full) + len(g.calls) }

func (g *generation) get(key uint64) (s state, ok bool) {
	if g.calls != nil {
		s.calls, ok = g.calls[key]
	} else {
		s.full, ok = g.full[key]
	}
	return s, ok
}

func (g *generation) put(key uint64, s state) {
	switch {
	case s.calls != nil && g.calls == nil:
		g.calls = map[uint64][]int64{key: s.calls}
	case s.calls != nil:
		g.calls[key] = s.calls
	case g.full == nil:
		g.full = map[uint64]int64{key: s.full}
	default:
		g.full[key] = s.full
	}
}

func (g *generation) remove(key uint64) {
	delete(g.full, key)
	delete(g.calls, key)
}

func (g *generation) each(f func(key uint64, s state)) {
	for key, full := range g.full {
		f(key, state{full: full})
	}
	for key, calls := range g.calls {
		f(key, state{calls: calls})
	}
}
