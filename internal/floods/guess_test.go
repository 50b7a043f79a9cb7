package floods_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/internal/floods"
)

func TestAnHourInOneChatAndSecondsInAnotherAreTwoFloods(t *testing.T) {
	for name, test := range map[string]struct {
		one, other string
		scope      flood.Scope
	}{
		"an hour and 5 s":           {"FLOOD_WAIT_3600", "FLOOD_WAIT_5", flood.Chat},
		"5 s and an hour":           {"FLOOD_WAIT_5", "FLOOD_WAIT_3600", flood.Chat},
		"just below half":           {"FLOOD_WAIT_3601", "FLOOD_WAIT_1800", flood.Chat},
		"half":                      {"FLOOD_WAIT_3600", "FLOOD_WAIT_1800", flood.Method},
		"twice":                     {"FLOOD_WAIT_1800", "FLOOD_WAIT_3600", flood.Method},
		"more than twice":           {"FLOOD_WAIT_1800", "FLOOD_WAIT_3601", flood.Chat},
		"1 s and 3 s":               {"FLOOD_WAIT_1", "FLOOD_WAIT_3", flood.Method},
		"1 s and 4 s":               {"FLOOD_WAIT_1", "FLOOD_WAIT_4", flood.Chat},
		"a number, and none at all": {"FLOOD_WAIT_30", "FLOOD_WAIT_0", flood.Method},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := floods.New(floods.Options{})
				flooded(t, b, send(1), test.one)
				require.Equal(t, test.scope, flooded(t, b, send(2), test.other).Scope)
				if test.scope == flood.Chat {
					sent(t, b, send(3))
				} else {
					held(t, b, send(3))
				}
			})
		})
	}
}

func TestTwoReadsFloodedForDifferentTimesSilenceNoUpdates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		read := func(method string) floods.Call { return floods.Call{Method: method, Reads: true} }
		flooded(t, b, read("users.getUsers"), "FLOOD_WAIT_64800")
		require.Equal(t, flood.Method, flooded(t, b, read("contacts.resolveUsername"), "FLOOD_WAIT_600").Scope)
		sent(t, b, read("updates.getDifference"))
		sent(t, b, read("messages.getDialogs"))
	})
}

func TestUpdatesAreHeldByNothingButTheirOwnFlood(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := floods.New(floods.Options{})
			read := func(method string, chat int64) floods.Call {
				return floods.Call{Method: method, Chat: chat, Reads: true}
			}
			flooded(t, b, read("users.getUsers", 0), "FLOOD_WAIT_3600")
			r := flooded(t, b, read("contacts.resolveUsername", 0), "FLOOD_WAIT_3600")
			require.Equal(t, flood.Account, r.Scope)
			require.True(t, r.Inferred)
			if restarted {
				b = restart(t, floods.Options{}, b)
			}
			held(t, b, read("messages.getDialogs", 0))
			var air []floods.Pass
			for _, method := range []string{"updates.getState", "updates.getDifference", "updates.getChannelDifference"} {
				air = append(air, sent(t, b, read(method, 0)))
			}

			// Nor do two channels silence a third.
			difference := func(channel int64) floods.Call { return read("updates.getChannelDifference", channel) }
			air = append(air, sent(t, b, difference(1)), sent(t, b, difference(2)))
			b.Flooded(air[3], notice(t, "FLOOD_WAIT_60"))
			b.Flooded(air[4], notice(t, "FLOOD_WAIT_60"))
			require.Equal(t, time.Minute, held(t, b, difference(1)).Wait)
			sent(t, b, difference(3))

			// Its own flood is another matter.
			b.Flooded(air[1], notice(t, "FLOOD_WAIT_30"))
			require.Equal(t, 30*time.Second, held(t, b, read("updates.getDifference", 0)).Wait)
		})
	}
}

func TestAGuessEndsWithTheShortestOfTheFloodsThatLedToIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		air := []floods.Pass{sent(t, b, send(1)), sent(t, b, send(2)), sent(t, b, send(3))}
		b.Flooded(air[0], notice(t, "FLOOD_WAIT_10"))
		r := b.Flooded(air[1], notice(t, "FLOOD_WAIT_6"))
		require.Equal(t, flood.Method, r.Scope)
		require.Equal(t, 6*time.Second, time.Until(r.Until))

		// An hour in one more chat is that chat's.
		r = b.Flooded(air[2], notice(t, "FLOOD_WAIT_3600"))
		require.Equal(t, flood.Chat, r.Scope)
		time.Sleep(6 * time.Second)
		require.Equal(t, 4*time.Second, held(t, b, send(1)).Wait, "as it was told")
		sent(t, b, send(2))
		sent(t, b, send(4))
		held(t, b, send(3))
	})
}

func TestAFloodOfOneChatMakesThatOfItsMethodNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		air := []floods.Pass{sent(t, b, send(0)), sent(t, b, send(1))}
		b.Flooded(air[0], notice(t, "FLOOD_WAIT_5"))
		b.Flooded(air[1], notice(t, "FLOOD_WAIT_3600"))
		require.Equal(t, 5*time.Second, held(t, b, send(2)).Wait)
		time.Sleep(5 * time.Second)
		sent(t, b, send(2))
		held(t, b, send(1))
	})
}

func TestAGuessDoesNotOutliveTheFloodOfItsOwnThatStandsBesideIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		whole := sent(t, b, send(0))
		flooded(t, b, send(1), "FLOOD_WAIT_3600")
		require.True(t, flooded(t, b, send(2), "FLOOD_WAIT_3600").Inferred)
		b.Flooded(whole, notice(t, "FLOOD_WAIT_60")) // of the method, as told
		time.Sleep(30 * time.Second)
		require.Equal(t, 30*time.Second, held(t, b, send(3)).Wait, "nobody probes what the server said")
		time.Sleep(30 * time.Second)
		through(t, b, send(3)) // but then
		sent(t, b, send(4))
		held(t, b, send(1))
	})
}

// guessOfAnHour is a tracker that takes the floods of two chats for the method's.
func guessOfAnHour(t testing.TB, opts floods.Options) *floods.Tracker {
	b := floods.New(opts)
	flooded(t, b, send(1), "FLOOD_WAIT_3600")
	require.Equal(t, flood.Method, flooded(t, b, send(2), "FLOOD_WAIT_3600").Scope)
	return b
}

func TestALongGuessIsLookedIntoAfterSecondsThenMinutes(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := guessOfAnHour(t, floods.Options{})
			if restarted {
				b = restart(t, floods.Options{}, b)
			}
			start := time.Now()
			var probes []time.Duration
			for chat := int64(10); time.Since(start) < time.Hour-time.Second; chat++ {
				wait := held(t, b, send(chat)).Wait
				require.Positive(t, wait)
				time.Sleep(wait)
				if time.Since(start) < time.Hour {
					held(t, b, send(1)) // what the server said is not probed
					p := sent(t, b, send(chat))
					probes = append(probes, time.Since(start))
					require.Equal(t, flood.FirstTimeout, held(t, b, send(chat+1)).Wait, "one at a time")
					b.Flooded(p, notice(t, "FLOOD_WAIT_60"))
				}
			}
			seconds := []time.Duration{5, 25, 105, 425, 1025, 1625, 2225, 2825, 3425}
			require.Len(t, probes, len(seconds))
			for i := range probes {
				require.Equal(t, seconds[i]*time.Second, probes[i])
			}
			require.Equal(t, time.Hour, time.Since(start))
			sent(t, b, send(3))
		})
	}
}

func TestACallThatLooksAndComesThroughEndsTheGuessEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := guessOfAnHour(t, floods.Options{Journal: true}), floods.New(floods.Options{})
		b.Restore(a.Changes()...)
		held(t, b, send(4))
		gone := make(chan floods.Pass, 9)
		for range cap(gone) {
			go func() {
				p, err := a.Wait(t.Context(), send(3), 10*time.Second)
				require.NoError(t, err)
				gone <- p
			}()
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Len(t, gone, 1)
		p := <-gone
		require.True(t, p.Probe())
		require.Len(t, a.Passed(p), 1)
		synctest.Wait()
		require.Len(t, gone, 8, "none has failed")
		b.Restore(a.Changes()...)
		sent(t, b, send(4))
		for _, tracker := range []*floods.Tracker{a, b} {
			held(t, tracker, send(1))
			held(t, tracker, send(2))
		}
	})
}

func TestAGuessStaysOneInAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := guessOfAnHour(t, floods.Options{})
		flooded(t, b, floods.Call{Method: "a.b"}, "FLOOD_WAIT_3600")
		for _, r := range b.Snapshot() {
			text, err := json.Marshal(r)
			require.NoError(t, err)
			var back flood.Record
			require.NoError(t, json.Unmarshal(text, &back))
			require.Equal(t, r.Method == "messages.sendMessage" && r.Scope == flood.Method || r.Scope == flood.Account, back.Inferred, "%s", text)
		}
	})
}

func TestAFirstCallThatIsNeverAnsweredMakesWayForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		flooded(t, b, send(1), "FLOOD_WAIT_3")
		gone := make(chan floods.Pass, 4)
		start := time.Now()
		for range cap(gone) {
			go func() { gone <- enter(t, b, send(1)) }()
		}
		time.Sleep(3 * time.Second)
		for i := range 3 {
			synctest.Wait()
			require.Len(t, gone, i+1, "after %v", time.Since(start))
			for left := flood.FirstTimeout; left > 0; left -= time.Second {
				e := held(t, b, send(1))
				require.Equal(t, left, e.Wait)
				require.Equal(t, time.Now().Add(left), e.Until)
				require.Equal(t, flood.AnotherFirst, e.Reason)
				require.NotContains(t, e.Error(), " 0s left")
				time.Sleep(time.Second)
			}
		}
		synctest.Wait()
		require.Len(t, gone, 4)

		// Nobody waits any more, and still one goes first.
		time.Sleep(flood.FirstTimeout)
		last := sent(t, b, send(1))
		held(t, b, send(1))
		b.Passed(<-gone) // whichever is answered
		sent(t, b, send(1))
		b.Abandon(last)
		time.Sleep(time.Hour)
		require.Empty(t, b.Snapshot())
	})
}

func TestAFirstCallThatIsNeverAnsweredIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := floods.New(floods.Options{})
		flooded(t, b, send(1), "FLOOD_WAIT_3")
		enter(t, b, send(1))
		time.Sleep(2 * time.Minute)
		sent(t, b, send(9))
		require.Zero(t, b.Len())
	})
}

func TestAWaitBelowAMillisecondIsNotSaidToBeNone(t *testing.T) {
	require.NotContains(t, (&flood.WaitError{Wait: time.Microsecond}).Error(), " 0s left")
}

// A hundred chats, any of which is flooded now and then, by itself, for up to an hour: 144
// floods a day. In a month no call fails that no flood covers, and few wait.
func TestAMonthOfChatsFloodedAtRandomRefusesNothingElse(t *testing.T) {
	const oneIn = 60 // calls, of which there are six a minute
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(1, 2))
		b := floods.New(floods.Options{})
		until := map[int64]time.Time{}
		start := time.Now()
		var calls, met, guesses, guessed int
		for time.Since(start) < 30*24*time.Hour {
			time.Sleep(time.Duration(rnd.ExpFloat64() * float64(10*time.Second)))
			chat := 1 + rnd.Int64N(100)
			p, err := b.Wait(t.Context(), send(chat), flood.DefaultThreshold)
			calls++
			if err != nil {
				require.True(t, until[chat].After(time.Now()), "chat %d is not flooded: %v", chat, err)
				continue
			}
			if p.Waited > 0 && !until[chat].After(time.Now().Add(-p.Waited)) {
				guessed++
				require.LessOrEqual(t, p.Waited, 10*time.Second)
			}
			b.Start(&p)
			time.Sleep(50 * time.Millisecond)
			if rnd.IntN(oneIn) != 0 {
				b.Passed(p)
				continue
			}
			met++
			seconds := []int{1, 5, 30, 300, 3600}[rnd.IntN(5)]
			if b.Flooded(p, flood.Notice{Kind: flood.FloodWait, Wait: time.Duration(seconds) * time.Second}).Widened {
				guesses++
			}
			until[chat] = time.Now().Add(time.Duration(seconds) * time.Second)
		}
		t.Logf("%d calls, %d floods, %d guesses that were wrong; %d calls waited for one", calls, met, guesses, guessed)
		require.Greater(t, met, 3000)
		require.Greater(t, guesses, 3)
		require.LessOrEqual(t, guessed, calls/1000)
	})
}
