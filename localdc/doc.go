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
// # Limits
//
// [Limits] says what is enforced: token buckets for the account, each private
// chat, each method and the file parts in each data centre, an exact sliding
// window for each group, slow mode for a supergroup. A call passes when each
// limit that it falls under has room, and pays all of them in one step.
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
// A call that is refused as wrong costs no message; it does pay the limit of
// its method.
//
// # What it promises
//
// Limits are reckoned in whole nanoseconds on an injected clock, and never in a
// client's disfavour: calls that arrive at the pace of a limit are never flooded,
// however long. What leaves a client at that pace arrives with the network's
// jitter, which is what [Limits].Slack is for. Every
// request is recorded once, in order of arrival, under the name of the innermost
// function, out of all wrappers. A random_id is honoured for as long as the Cloud
// lives. Answers that are delayed or held ([Cloud.Delay], [Cloud.Hold]) hold up
// no other call. After [Cloud.Close] no goroutine is left.
//
// # What it is not
//
// It is not Telegram. How Telegram counts is not published: the shape of the
// limits is, the figures of [Published] are, and everything else here (a bucket
// rather than something else, what a message costs, how a flood grows) is a
// choice that a client should not rely on. Telegram lengthens nothing by a fixed
// second, and waits there may be hours.
//
// It serves one bot, without users' logins, secret chats, calls, a CDN, temporary
// keys (EnablePFS) or WebSockets. A method that it does not serve is answered
// with 400 METHOD_INVALID, and its name is in the record. Rights are not checked:
// the bot administers every group and channel. Everything is kept in memory for
// as long as the Cloud lives, the record and all messages too.
//
// Sockets are real, so a Cloud does not work inside a testing/synctest bubble;
// give it a virtual clock instead.
package localdc
