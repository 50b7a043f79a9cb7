// Package weir is the root of Weir, a Telegram MTProto client on
// [github.com/gotd/td] that does not flood.
//
// The root holds no code. Start with one of these:
//
//   - package client: a Telegram client with the limiter built in;
//   - package invoke: the same limiter as a middleware for a program that
//     already uses gotd;
//   - package dispatch: update handlers that may wait, for such a program;
//   - package quota: limits on what a bot lets its users do;
//   - package localdc: a Telegram data centre on loopback that enforces limits,
//     for testing a bot without an account.
//
// README.md has an example of each. ARCHITECTURE.md explains how the packages fit
// together and why.
package weir
