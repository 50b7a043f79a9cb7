// Package limiter holds the benchmarks of weir's ratelimit package beside its peers.
//
// Each benchmark has a sub-benchmark for each library, named lib=…, so that one run
// has both sides on the same machine in the same minute, and
//
//	benchstat -col /lib
//
// prints the ratios. A peer is called in the way that its own documentation
// recommends for the purpose. Where it lacks a feature, such as chats, it is given
// the next best thing and the benchmark's comment says so.
//
// The figures and what they mean are in BENCHMARKS.md at the root of the repository.
package limiter
