// Package quota compares Weir's quotas in memory with what bots use in their place: a map
// of fixed windows under a mutex, and a sync.Map of x/time limiters.
//
// Each benchmark has a sub-benchmark for each library, named lib=…, so that one run
// measures all of them on the same machine in the same minute. Keys have some 25 bytes,
// are made beforehand, and come in random order.
package quota
