// Package faults runs the limiters that a Telegram client in Go could use instead of
// weir, and shows what they get wrong. Each test is named after a fault; it provokes
// it in the peer, does the same to weir, and prints both figures:
//
//	go test -v ./faults
//
// So the tests keep two promises: that weir does not have the fault, and that what its
// documentation says of others is true of the versions in go.mod. A test that fails
// because a peer has got better is good news: the claim is to be withdrawn.
//
// Where a fault does not need real threads, the tests run in a testing/synctest
// bubble. There time passes by itself when everybody waits, in the peers too, so the
// figures are those of full scale (a minute is a minute) and exact.
//
// Faults of limiters in other languages are not here: pauses that are kept as locks or
// events (discord.py, python-telegram-bot), and floods known by method only, without
// limits for chats or a memory that outlives the process (mtcute, Telethon, Pyrogram,
// TDLib). Weir's own tests for these stand in its packages flood and invoke.
package faults
