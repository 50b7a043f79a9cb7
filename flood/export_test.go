package flood

// Call returns the call that the pass is for.
func (p Pass) Call() Call { return p.call }

// Len returns the number of records in memory, those over and not yet dropped
// included.
func (b *Book) Len() int { return int(b.size.Load()) }
