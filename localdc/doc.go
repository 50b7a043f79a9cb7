// Package localdc is a Telegram of one's own on loopback: data centres that
// speak MTProto, answer what a bot's life needs, enforce limits and keep a
// record. A client under test talks to it as it would to Telegram, with keys,
// encryption, sessions and migrations; what it did is then read off the record.
//
//	cloud, err := localdc.New(localdc.Options{Limits: localdc.Published()})
//	...
//	defer cloud.Close()
//	alice := cloud.AddUser("alice")
//	client := telegram.NewClient(1, "hash", cloud.ClientOptions())
//
// # The model
//
// A [Cloud] has some data centres ([Options].DCs) and one bot account, which
// lives in the home one. A login at another data centre is answered with
// USER_MIGRATE_X, a file that lives at another with FILE_MIGRATE_X; a login is
// carried over with auth.exportAuthorization and auth.importAuthorization. A
// file lives where its first part was saved.
//
// The account's chats are made by the test: [Cloud.AddUser], [Cloud.AddGroup],
// [Cloud.AddBasicGroup], [Cloud.AddChannel]. A scripted [User] writes to the
// bot ([User.Send]), which gets a real update, numbered so that
// updates.getState and updates.getDifference agree with it; [Chat.Await] waits
// for what the bot answers.
//
// With [Options].CDN there is a CDN too, which clients that can deal with it are
// sent to for files, as https://core.telegram.org/cdn has it: parts encrypted with
// AES-CTR, hashes and a first upload to the CDN by way of the file's home.
//
// # Limits
//
// [Limits] says what is enforced: token buckets for the account's messages, for
// all that writes and all that reads, for each private chat, each method, each
// method in a chat and the file parts in each data centre; an exact sliding window
// for each group; slow mode for a supergroup. One chat can have a limit of its own
// ([Chat.SetLimit], [Chat.SetWindow]). All of them can change at any time
// ([Cloud.SetLimits]). A call passes when each limit that it falls under has room,
// and pays all of them in one step.
//
// A call for which one has no room is answered with the error code 420 and, as
// X, the whole seconds until there is room, rounded up: FLOOD_WAIT_X,
// SLOWMODE_WAIT_X, or FLOOD_PREMIUM_WAIT_X for file parts. If several have no
// room, the longest wait is the one told. The call has no effect and costs
// nothing. From then on a flood stands, on that limit alone, for as long as was
// told: a call that falls under the limit is refused, even if there is room by
// now, and lengthens the flood by [Limits].Lengthen. When it is over, a call
// passes at once.
//
// A call that is refused as wrong costs no message; it does pay the limits that
// count calls.
//
// # Scripts
//
// [Cloud.Flood] puts a flood on a [Scope], which is a method, a chat, a data
// centre, a kind of calls or any of these together, without a limit that is to
// blame. [Cloud.Fail] answers calls in a scope with any error, some times or
// [Forever], without a flood that stands. [Cloud.Delay] and [Cloud.Hold] keep
// answers back, [Cloud.Cut] cuts connections.
//
// The [Record] says of each call what it was answered with, and whether it came
// inside a flood of which the client had been told ([Record.Inside]).
//
// # The network
//
// On loopback everything arrives at once and in order, which no client should rely on.
// A [Link] is a network as bad as you like: latency, jitter, a narrow line, connections
// that are cut or left half open, a line that is gone for a time.
//
// # What it promises
//
// Limits are reckoned in whole nanoseconds on an injected clock, and never in a
// client's disfavour: calls that arrive at the pace of a limit are never flooded,
// however long. What leaves a client at that pace arrives with the network's
// jitter, and nothing is forgiven unless [Limits].Slack says so. Every request is
// recorded once, in order of arrival, under the name of the innermost function, out of all wrappers.
// A random_id is honoured for as long as the Cloud lives. Answers that are delayed
// or held hold up no other call. After [Cloud.Close] no goroutine is left.
//
// # What it is not
//
// It is not Telegram. How Telegram counts is not published: the shape of the
// limits is, the figures of [Published] are, and everything else here (a bucket
// rather than something else, what a message costs, how a flood grows) is a
// choice that a client should not rely on. Telegram lengthens nothing by a fixed
// second, and waits there may be hours.
//
// It serves one account, which logs in as a bot does ([Options].Person) or by QR code
// ([Cloud.AcceptLogin]), without secret chats, calls, temporary keys (EnablePFS) or WebSockets. A method that it
// does not serve is answered with 400 METHOD_INVALID, and its name is in the
// record. Rights are not checked: the bot administers every group and channel.
// The CDN has every file that a client may be sent to it for, and never forgets
// one. Everything is kept in memory for as long as the Cloud lives, the record and
// all messages too.
//
// Sockets are real, so a Cloud does not work inside a testing/synctest bubble;
// give it a virtual clock instead.
package localdc
