// Package store says what the stores of Weir have in common: what an account's
// limiter remembers beyond the life of a process, and what is to be done when a store
// does not answer.
//
// [Health] is the state of a store for one of its users: there or lost, and when to try it
// again. [Reporter] tells the program.
//
// Package boltstore keeps facts in a file, for one process; package redisstore on a
// Redis server, for all processes of an account.
package store
