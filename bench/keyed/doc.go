// Package keyed holds the benchmarks of weir's keyed windows in memory beside what bots
// use in their place: a map of fixed windows under a mutex, and a sync.Map of x/time
// limiters.
//
// Each benchmark has a sub-benchmark for each library, named lib=…, so that one run
// has all sides on the same machine in the same minute. Keys are texts of some 25
// bytes, made beforehand and in no order, as users come.
package keyed
