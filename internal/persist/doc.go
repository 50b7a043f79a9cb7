// Package persist keeps what an account's limiter knows beyond the life of the process, and
// takes in what other processes of the account save.
//
// What there is to keep comes from sources: one for floods, one for learned limits, and so
// on. A source marks in the [Journal] what has changed, and the [Keeper] asks it for the
// [store.Fact] when it writes.
//
//	keeper := persist.New(persist.Options{Facts: file, Health: health, Clock: clock})
//	limits := adapt.New(adapt.Options{Journal: keeper.Journal()})
//	keeper.Add(limits, adapt.Kept)
//	err := keeper.Start(policy) // before the first call
//	…
//	keeper.Remember(ctx) // after what has changed something
//	keeper.Close()
//
// The package knows nothing of what the facts are about. One goroutine writes and one
// watches, so no caller waits for the store longer than its context lasts, and none at all
// while the store is lost.
package persist
