package floods

// Call returns the call that the pass is for.
func (p Pass) Call() Call { return p.call }

// Len returns the number of records in memory, those over and not yet dropped
// included.
func (b *Tracker) Len() int { return int(b.size.Load()) }

// Waiters returns the number of calls blocked in Enter.
func (b *Tracker) Waiters() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waiters.Len()
}

// Pending returns the number of changes that nobody has asked for.
func (b *Tracker) Pending() int { return int(b.journal.pending.Load()) }

// Share holds the lock of the book as one who only looks does, while f runs.
func Share(b *Tracker, f func()) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	f()
}
