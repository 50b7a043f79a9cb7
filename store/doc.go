// Package store says what the stores of Weir have in common: what an account's
// limiter remembers beyond the life of a process, and what is to be done when a store
// does not answer.
//
// Package boltstore keeps it in a file, for one process; package redisstore on a
// Redis server, for all processes of an account.
package store
