// Package dispatch runs update handlers apart from the connection that the updates came
// on, so that a handler may wait: for a rate limit, for a flood, or for anything else.
//
// gotd calls telegram.Options.UpdateHandler on a goroutine of the connection, and waits
// for that goroutine before it reconnects or moves to another data centre. A handler
// that waits then leaves the client without a connection. One line prevents that:
//
//	options := telegram.Options{
//		UpdateHandler: dispatch.New(handler, dispatch.Options{}),
//	}
//
// A [Dispatcher] returns at once and calls the handler on goroutines of its own: in
// order inside a chat, and chats side by side. Updates and goroutines are bounded, see
// [Options]. Package client does this by itself.
//
// # Order
//
// A packet with updates of several chats is split into one part for each chat. Each part
// has all of the packet's users and chats. Updates that belong to no chat, such as those
// of deleted private messages, share one queue. gotd hands over each packet on a
// goroutine of its own, so two that come within microseconds may change places; those
// that still wait are put in the order of their pts. Only an updates.Manager finds gaps.
//
// # In front of an updates.Manager
//
// A Manager gets its packets whole and one at a time. When a flood holds it up, they wait
// in the Dispatcher. Two middlewares go with it: [Dispatcher.Hook] for the answers to
// the program's own calls, and [Dispatcher.Differences], which keeps one channel's
// difference from holding up all the other channels.
//
// # Behind an updates.Manager
//
// The Manager calls its handler for one update after the other. To let chats go side by
// side there, wrap that handler as well, with [Options].Block:
//
//	handler := dispatch.New(updateDispatcher, dispatch.Options{Block: true})
//	manager := updates.New(updates.Config{Handler: handler})
//
// The Manager then stores an update as handled before its handler has run. If the process
// is killed, the updates that wait are lost.
//
// # What it is not for
//
// It knows no limits and repeats nothing. The error of a handler is logged.
package dispatch
