package quota

import "github.com/gotd/td/clock"

// Memory is the store of a limiter without Options.Store, for the suite of storetest.
type Memory struct{ *memory }

func NewMemory(c clock.Clock, maxKeys int) Memory { return Memory{newMemory(c, maxKeys)} }

// Len is the number of keys that are kept.
func (m Memory) Len() int { return m.len() }

// Kept is the number of keys that a limiter keeps in memory.
func Kept(l *Limiter) int { return l.memory.len() }

// Global is what stands for an empty part of a key.
const Global = global
