//go:build amd64 || arm64

package ratelimit

// prefetch asks the processor for a slot that will be wanted, and does not wait for it.
// The compiler has an instruction for that and keeps it to itself.
//
//go:noescape
func prefetch(s *slot)
