//go:build !amd64 && !arm64

package ratelimit

func prefetch(*slot) {}
