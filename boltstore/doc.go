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
// What a call has returned from is on the disk: a process that is killed, or a machine
// that loses power, loses nothing of it, as far as the disk keeps its own promises. A
// call whose context was done before it returned may have been recorded or not.
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
// It is as quick as the disk: a charge waits for two fsyncs, 1 ms or 10, and where
// they may take more, quota.Options.Timeout has to be longer than its default. The file
// is for one process; a second one is told so. Pages of the file that are
// damaged in place are found when they are read, and not all damage can be told from
// data. The file does not shrink: what has expired makes room for what comes. A
// sliding window is written as a whole with each charge, 12 bytes for each charge that
// counts, so that one of a hundred thousand is better kept as a bucket.
package boltstore
