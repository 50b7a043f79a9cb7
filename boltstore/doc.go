// Package boltstore keeps quotas and an account's memory in one file, which a
// single process has open.
//
//	s, err := boltstore.Open("bot.db", boltstore.Options{})
//	…
//	defer s.Close()
//	limits, err := quota.New(quota.Options{Store: s})
//
// # What it promises
//
// When a call has returned, its result is on the disk. A killed process or a power failure
// loses none of it, as far as the disk keeps its own promises. If the context is done before
// the call returns, the call may have been recorded or not.
//
// Calls that come at the same time share one transaction, and thereby its two fsyncs.
// A peek, a refusal and a load write nothing and wait for no one.
//
// Time does not go back. The latest time is kept in the file, so that a clock that is
// set back, while the process runs or between two runs, neither makes room nor locks
// anything: windows go on from where they were.
//
// # What it does not promise
//
// It is only as fast as the disk: a charge waits for two fsyncs, which take 1 ms to 10 ms. If
// they can take longer, set quota.Options.Timeout above its default. Only one process can
// open the file; a second one gets an error that says so. Pages of the file that are
// damaged in place are found when they are read, and not all damage can be told from
// data. The file does not shrink: what has expired makes room for what comes. A
// sliding window is written as a whole with each charge, 12 bytes for each charge that
// counts, so use a bucket for a limit of a hundred thousand.
package boltstore
