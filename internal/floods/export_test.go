package floods

// Len returns the number of records in memory, those over and not yet dropped
// included.
func (t *Tracker) Len() int { return int(t.size.Load()) }

// Waiters returns the number of calls blocked in Wait.
func (t *Tracker) Waiters() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waiters.Len()
}

// Pending returns the number of changes that nobody has asked for.
func (t *Tracker) Pending() int { return int(t.journal.pending.Load()) }

// Looked returns how many records were looked at one by one so far.
func (t *Tracker) Looked() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.looked
}

// Share holds the lock of the tracker as a reader does, while f runs.
func Share(t *Tracker, f func()) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	f()
}
