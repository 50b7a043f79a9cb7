package storetest

import (
	"testing"
	"time"

	"github.com/weirtg/weir/quota"
)

// Clock is the clock that a store under test goes by.
type Clock struct {
	// Now is the time of the next decision, if it is made at once.
	Now func() time.Time
	// Advance lets time pass: whole microseconds.
	Advance func(time.Duration)
	// SetBack sets the clock back, as its owner would. Nil leaves out what needs it.
	SetBack func(time.Duration)
}

// QuotaHarness is an empty quota store under test.
type QuotaHarness struct {
	Clock
	Store quota.Store
	// Hung is a store whose disk or server does not answer. Nil if a store never blocks.
	Hung quota.Store
	// Other is another process's store of the same data. Nil if there can be none.
	Other quota.Store
	// Reopen closes Store and opens its data anew, if that is to outlive it.
	Reopen func() quota.Store
	// Kept counts the keys for which the store uses room. Nil if it cannot be told.
	Kept func() int
}

// Quota tests a store. It calls start for each test, and start closes what it opens
// with t.Cleanup.
func Quota(t *testing.T, start func(t *testing.T) QuotaHarness) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, QuotaHarness)
	}{
		{"ThreeADay", threeADay},
		{"AlignedEndsAtMidnight", alignedEndsAtMidnight},
		{"FirstHitEndsAPeriodAfterTheFirst", firstHit},
		{"BucketRefillsEvenly", bucketRefills},
		{"PeekRecordsNothing", peekRecordsNothing},
		{"CostIsAllOrNone", costIsAllOrNone},
		{"ResetForgetsAllKinds", resetForgets},
		{"KindsAreApart", kindsAreApart},
		{"AChangedLimitKeepsWhatCounts", changedLimit},
		{"LargestWindow", largestWindow},
		{"KeysDoNotMeet", keysDoNotMeet},
		{"TheLastSlotIsTakenOnce", lastSlotOnce},
		{"DecidesAsTheModelDoes", decidesAsTheModel},
		{"IdleKeysAreForgotten", idleForgotten},
		{"ClockSetBackLocksNothing", clockSetBack},
		{"OutlivesItsProcess", outlives},
		{"ADoneContextChargesNothing", doneContext},
		{"AHungStoreReturnsSoonAfterItsContextIsDone", hungStore},
		{"AClosedStoreFails", closedFails},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, start(t)) })
	}
}
