// Examplebot is a Telegram bot that does not flood.
//
// Without an account it is a demonstration: it starts a Telegram data centre of its
// own on loopback, with the limits that Telegram publishes, and there a bot answers
// people while it sends 300 messages to 100 chats. With an account, from the
// environment or a file, the same bot answers on Telegram. See examplebot --help.
//
// The parts are meant to be copied: bot.go is a bot on package client, broadcast.go a
// long job beside it, serve.go its metrics.
package main
