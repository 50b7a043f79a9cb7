// Package classify tells what a raw Telegram call is: the function that it
// calls, the category of work that the function belongs to, the chat that it
// acts on, and whether it merely continues a file transfer.
//
// # Model
//
// A call is judged by its innermost function. invokeWithLayer, initConnection,
// invokeWithoutUpdates and their kin only carry another function, so they are
// opened first, to any depth that a program can mean ([Unwrap]).
//
// There are six categories ([Category]). Which one a function belongs to
// follows from its TL name, and from whole words of it: messages.getStickerSet
// is the namespace "messages", the verb "get" and the words "sticker" and
// "set". The verb decides first, so getStickerSet sets nothing and
// getPinnedDialogs pins nothing. The rules, one a line and in order, are in
// rules.go. A function that Telegram adds after this was written is classified
// by the same rules; none has to be listed.
//
// [Options] lets a program disagree, by name or by looking at the request.
//
// # What it promises
//
// Every request gets a valid category, also a nil one, one that gotd does not
// know, and one that wraps itself. Judging a request of gotd's layer allocates
// nothing. It takes some tens of nanoseconds for the functions that a program
// calls all the time, and some hundreds for one that it hardly ever calls: Go's
// runtime remembers only slowly which getters a type has. A [Classifier] does
// not change after [New] and serves any number of goroutines.
//
// # What it does not do
//
// It knows nothing of time, rates or errors, and it never changes a request. It
// goes by names and peers, not by content: messages.editMessage is a message
// even when the edit replaces the photo. Options.Func is for those who need
// more.
package classify
