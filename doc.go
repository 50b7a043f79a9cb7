// Package weir is the root of Weir, a Telegram MTProto client on
// [github.com/gotd/td] that does not flood.
//
// The root holds no code. Start at one of these:
//
//   - package client: a Telegram client with the limiter built in;
//   - package invoke: the same limiter as one middleware for a program that
//     already uses gotd;
//   - package localdc: a Telegram data centre on loopback that enforces limits,
//     for testing a bot without an account.
//
// README.md shows each of them at work, ARCHITECTURE.md how the packages fit
// together and why.
package weir
