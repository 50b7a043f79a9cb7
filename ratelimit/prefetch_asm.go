//go:build amd64 || arm64

package ratelimit

// prefetch asks the processor for a slot that will be wanted, and for those behind it, in
// which the search may end. It does not wait, as a load would: the lock waits until all
// loads before it are done. Go has no other way to say so.
//
//go:noescape
func prefetch(s *slot)
