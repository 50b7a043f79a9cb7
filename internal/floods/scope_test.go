package floods_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/internal/floods"
)

func TestTwoChatsFloodedWithNothingThroughAreTheMethods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		flooded(t, b, send(1), "FLOOD_WAIT_30")
		require.False(t, flooded(t, b, send(0), "SLOWMODE_WAIT_30").Widened, "another kind is no evidence")
		time.Sleep(time.Second)
		r := flooded(t, b, send(2), "FLOOD_WAIT_20")
		require.Equal(t, flood.Method, r.Scope)
		require.True(t, r.Widened && r.Inferred)
		require.Equal(t, 2, r.Hits)
		require.Equal(t, 20*time.Second, time.Until(r.Until), "the shorter deadline")

		require.Equal(t, flood.Method, held(t, b, send(3)).Scope)
		sent(t, b, floods.Call{Method: "messages.editMessage", Chat: 1})
		sent(t, b, floods.Call{DC: 2, Method: "messages.sendMessage", Chat: 1})
	})
}

func TestWhatKeepsAFloodNarrow(t *testing.T) {
	for name, between := range map[string]func(t *testing.T, b *floods.Tracker, before floods.Pass){
		"a call of the method came through": func(t *testing.T, b *floods.Tracker, _ floods.Pass) { through(t, b, send(3)) },
		"the first deadline is over":        func(t *testing.T, b *floods.Tracker, _ floods.Pass) { time.Sleep(30 * time.Second) },
		"a call let go early but sent late came through": func(t *testing.T, b *floods.Tracker, before floods.Pass) {
			b.Start(&before)
			b.Passed(before)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := floods.New(floods.Options{})
				before := sent(t, b, send(3))
				flooded(t, b, send(1), "FLOOD_WAIT_30")
				between(t, b, before)
				require.Equal(t, flood.Chat, flooded(t, b, send(2), "FLOOD_WAIT_30").Scope)
				sent(t, b, send(3))
			})
		})
	}
}

func TestACallThatWasOnTheWireWhenTheFloodCameProvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		before := sent(t, b, send(3))
		b.Start(&before)
		flooded(t, b, send(1), "FLOOD_WAIT_30")
		b.Passed(before)
		r := flooded(t, b, send(2), "FLOOD_WAIT_30")
		require.Equal(t, flood.Method, r.Scope)
		held(t, b, send(3))
	})
}

func TestAnotherMethodSaysNothingAboutThisOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		flooded(t, b, send(1), "FLOOD_WAIT_30")
		through(t, b, floods.Call{Method: "messages.editMessage", Chat: 3})
		require.Equal(t, flood.Method, flooded(t, b, send(2), "FLOOD_WAIT_30").Scope)
	})
}

func TestASuccessThatComesALittleLateTakesTheWideningBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		noisy, other := sent(t, b, send(1)), sent(t, b, send(2))
		b.Flooded(noisy, notice(t, "FLOOD_WAIT_30"))
		quiet := sent(t, b, send(3)) // between the two floods
		require.Equal(t, flood.Method, b.Flooded(other, notice(t, "FLOOD_WAIT_30")).Scope)
		held(t, b, send(4))
		b.Passed(quiet)
		sent(t, b, send(4))
		held(t, b, send(1))
		held(t, b, send(2))
	})
}

func TestAWiderFloodThatTurnsOutToBeTheMethodsOwnNeedsNoReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		chatless := sent(t, b, send(0))
		flooded(t, b, send(1), "FLOOD_WAIT_30")
		require.NotEmpty(t, flooded(t, b, send(2), "FLOOD_WAIT_30").Why)
		require.Empty(t, b.Flooded(chatless, notice(t, "FLOOD_WAIT_30")).Why)
	})
}

func TestACallWithoutAChatIsFloodedAsAMethod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		call := floods.Call{Method: "contacts.resolveUsername", Reads: true}
		r := flooded(t, b, call, "FLOOD_WAIT_30")
		require.Equal(t, flood.Method, r.Scope)
		require.False(t, r.Widened)
		held(t, b, call)
		sent(t, b, floods.Call{Method: "users.getUsers", Reads: true})
	})
}

func TestTwoMethodsFloodedAreTheAccountsButReadsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		edit := func(chat int64) floods.Call { return floods.Call{Method: "messages.editMessage", Chat: chat} }
		read := func(method string) floods.Call { return floods.Call{Method: method, Reads: true} }

		flooded(t, b, send(1), "FLOOD_WAIT_30")
		require.Equal(t, flood.Chat, flooded(t, b, edit(1), "FLOOD_WAIT_5").Scope, "a chat's flood is no method's")
		flooded(t, b, send(2), "FLOOD_WAIT_30")
		require.Equal(t, flood.Chat, flooded(t, b, floods.Call{DC: 2, Method: "x.y", Chat: 1}, "FLOOD_WAIT_5").Scope, "another DC")
		require.Zero(t, b.AccountUntil(0, false))

		r := flooded(t, b, edit(7), "FLOOD_WAIT_60")
		require.Equal(t, flood.Account, r.Scope)
		require.True(t, r.Widened)
		require.Equal(t, "messages.sendMessage and messages.editMessage were both flooded", r.Why)
		require.Equal(t, 30*time.Second, time.Until(r.Until))
		require.Equal(t, time.Minute, time.Until(r.Again), "its own chat")
		require.Equal(t, 5*time.Second, time.Until(b.AccountUntil(0, false)), "then one may look")
		require.Zero(t, b.AccountUntil(0, true))
		require.Zero(t, b.AccountUntil(2, false))
		held(t, b, floods.Call{Method: "messages.deleteMessages", Chat: 9})

		// Until reads are flooded too.
		require.Equal(t, flood.Method, flooded(t, b, read("users.getUsers"), "FLOOD_WAIT_30").Scope)
		through(t, b, read("messages.getHistory"))
		require.Equal(t, flood.Method, flooded(t, b, read("help.getConfig"), "FLOOD_WAIT_30").Scope)
		require.Equal(t, flood.Account, flooded(t, b, read("messages.getDialogs"), "FLOOD_WAIT_30").Scope)
		held(t, b, read("messages.getHistory"))

		time.Sleep(time.Minute)
		require.Zero(t, b.AccountUntil(0, false))
		require.Empty(t, b.Snapshot())
	})
}

func TestAnAccountFloodedAgainByTheCallThatGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		flooded(t, b, floods.Call{Method: "a.one"}, "FLOOD_WAIT_10")
		require.Equal(t, flood.Account, flooded(t, b, floods.Call{Method: "a.two"}, "FLOOD_WAIT_10").Scope)
		gone := make(chan floods.Pass, 2)
		for _, method := range []string{"a.three", "a.four"} {
			go func() { gone <- enter(t, b, floods.Call{Method: method}) }()
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Len(t, gone, 1)
		r := b.Flooded(<-gone, notice(t, "FLOOD_WAIT_9"))
		require.Equal(t, flood.Account, r.Scope)
		require.False(t, r.Widened)
		require.True(t, r.News)

		time.Sleep(10 * time.Second) // 9 s, and one for the repeat
		synctest.Wait()
		require.Len(t, gone, 1)
		b.Passed(<-gone)
		sent(t, b, floods.Call{Method: "a.five"})
	})
}

func TestAnAccountFloodedAgainRightAfterItsDeadlineIsKnownAtOnce(t *testing.T) {
	for name, test := range map[string]struct {
		inside func(*floods.Tracker) *floods.Tracker // before the deadline
		after  func(*floods.Tracker)
		scope  flood.Scope
	}{
		"at once":                {nil, nil, flood.Account},
		"soon":                   {nil, func(*floods.Tracker) { time.Sleep(29 * time.Second) }, flood.Account},
		"later":                  {nil, func(*floods.Tracker) { time.Sleep(30 * time.Second) }, flood.Chat},
		"a read came through":    {nil, func(b *floods.Tracker) { through(t, b, floods.Call{Method: "a.read", Reads: true}) }, flood.Account},
		"something came through": {nil, func(b *floods.Tracker) { through(t, b, send(7)) }, flood.Chat},
		"it was cleared":         {func(b *floods.Tracker) *floods.Tracker { b.Clear(nil); return b }, nil, flood.Chat},
		"it was told":            {func(b *floods.Tracker) *floods.Tracker { return restart(t, floods.Options{}, b) }, nil, flood.Chat},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := floods.New(floods.Options{})
				flooded(t, b, floods.Call{Method: "a.one"}, "FLOOD_WAIT_30")
				require.Equal(t, flood.Account, flooded(t, b, floods.Call{Method: "a.two"}, "FLOOD_WAIT_30").Scope)
				if test.inside != nil {
					b = test.inside(b)
				}
				time.Sleep(30 * time.Second)
				require.Empty(t, b.Snapshot())
				if test.after != nil {
					test.after(b)
				}
				for range 5 { // and again
					r := flooded(t, b, floods.Call{Method: "a.next", Chat: 1}, "FLOOD_WAIT_30")
					require.Equal(t, test.scope, r.Scope)
					require.False(t, r.Widened)
					require.True(t, r.News)
					if test.scope == flood.Account {
						held(t, b, send(9))
						held(t, b, floods.Call{Method: "a.one"})
					}
					time.Sleep(30 * time.Second)
				}
				time.Sleep(time.Hour)
				sent(t, b, send(1))
				require.Zero(t, b.Len())
			})
		})
	}
}

func TestACallSentBeforeTheAccountsFloodDoesNotBringItBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		old := sent(t, b, send(1))
		flooded(t, b, floods.Call{Method: "a.one"}, "FLOOD_WAIT_30")
		require.Equal(t, flood.Account, flooded(t, b, floods.Call{Method: "a.two"}, "FLOOD_WAIT_30").Scope)
		time.Sleep(30 * time.Second)
		require.Equal(t, flood.Chat, b.Flooded(old, notice(t, "FLOOD_WAIT_30")).Scope)
	})
}

func TestAPremiumWaitHoldsOneMethodOfOneDataCentre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		part := func(dc int, method string) floods.Call { return floods.Call{DC: dc, Method: method, Reads: true} }
		flooded(t, b, part(2, "upload.getFile"), "FLOOD_PREMIUM_WAIT_9")
		r := flooded(t, b, part(2, "upload.getFileHashes"), "FLOOD_PREMIUM_WAIT_9")
		require.Equal(t, flood.Method, r.Scope)
		require.Equal(t, flood.PremiumWait, held(t, b, part(2, "upload.getFile")).Kind)
		sent(t, b, part(4, "upload.getFile"))
		sent(t, b, part(2, "upload.getWebFile"))
	})
}

func TestABusyWorkerIsNotTheMethodsFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		for chat := range int64(5) {
			n, ok := flood.Parse(500, "WORKER_BUSY_TOO_LONG_RETRY")
			require.True(t, ok)
			r := b.Flooded(sent(t, b, send(chat+1)), n)
			require.Equal(t, flood.Chat, r.Scope)
		}
		sent(t, b, send(6))

		// Nor is it evidence for a flood that comes after.
		require.Equal(t, flood.Chat, flooded(t, b, send(6), "FLOOD_WAIT_30").Scope)
	})
}

func TestAFloodOfTheMethodItselfIsNotTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		racing, inFlight := sent(t, b, send(1)), sent(t, b, send(2))
		flooded(t, b, send(0), "FLOOD_WAIT_30")
		r := b.Flooded(inFlight, notice(t, "FLOOD_WAIT_40"))
		require.Equal(t, flood.Method, r.Scope)
		require.False(t, r.Widened)
		b.Start(&racing) // past the last look, before the flood was known
		b.Passed(racing)
		require.Equal(t, 30*time.Second, held(t, b, send(0)).Wait, "as it was told")
		require.Equal(t, 40*time.Second, held(t, b, send(2)).Wait)
	})
}

// Whatever led to it.
func TestTheAccountWaitsNoLongerThanTheShortestThatProvesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		edit := func(chat int64) floods.Call { return floods.Call{Method: "messages.editMessage", Chat: chat} }
		var air []floods.Pass
		for _, c := range []floods.Call{send(1), edit(1), edit(2), send(2)} {
			air = append(air, sent(t, b, c))
		}
		for i, wait := range []string{"FLOOD_WAIT_60", "FLOOD_WAIT_20", "FLOOD_WAIT_30", "FLOOD_WAIT_40"} {
			b.Flooded(air[i], notice(t, wait))
		}
		require.Equal(t, flood.Account, held(t, b, floods.Call{Method: "messages.sendMedia", Chat: 7}).Scope)
		require.Equal(t, 20*time.Second, time.Until(b.Snapshot()[0].Until))
	})
}
