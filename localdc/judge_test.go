package localdc

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func rateCharge(n int) []charge { return []charge{{key: gateKey{kind: gateAccount}, cost: n}} }

func groupCharge(chat int64, n int) []charge {
	return []charge{{key: gateKey{kind: gateGroup, id: chat}, cost: n}}
}

// try admits and pays, and returns what is told: 0 for a call that passes.
func try(j *judge, now time.Duration, charges []charge) int64 {
	f, ok := j.admit(now, subject{}, charges)
	if ok {
		j.take(now, charges)
		return 0
	}
	return f.seconds
}

const ms = time.Millisecond

func TestBucketLetsTheBurstThroughAndThenKeepsTheRate(t *testing.T) {
	j := newJudge(Limits{Account: Rate{PerSecond: 2, Burst: 3}})
	for range 3 {
		require.Zero(t, try(&j, 0, rateCharge(1)))
	}
	// Room for the next comes at 500 ms: that is told as a whole second.
	require.EqualValues(t, 1, try(&j, 0, rateCharge(1)))
	require.Zero(t, try(&j, time.Second, rateCharge(1)), "the refused call cost nothing")
	require.Zero(t, try(&j, time.Second, rateCharge(1)))
	require.EqualValues(t, 1, try(&j, 1400*ms, rateCharge(1)))
}

func TestCallerAtExactlyTheRateIsNeverRefused(t *testing.T) {
	for _, perSecond := range []float64{30, 7, 1.0 / 3, 1000} {
		j := newJudge(Limits{Account: Rate{PerSecond: perSecond, Burst: 1}})
		for i := range 10000 {
			at := time.Duration(float64(i) * float64(time.Second) / perSecond)
			require.Zero(t, try(&j, at, rateCharge(1)), "call %d at %v/s", i, perSecond)
		}
	}
}

func TestWindowIsExact(t *testing.T) {
	j := newJudge(Limits{Group: Window{Limit: 20, Period: time.Minute}})
	for i := range 20 {
		require.Zero(t, try(&j, time.Duration(i)*time.Second, groupCharge(-1, 1)))
	}
	// The first message leaves the window at 60 s, not before.
	require.EqualValues(t, 1, try(&j, time.Minute-1, groupCharge(-1, 1)))
	require.Zero(t, try(&j, 2*time.Minute, groupCharge(-1, 1)))
	require.Zero(t, try(&j, 30*time.Second, groupCharge(-2, 1)), "another group has its own window")

	j = newJudge(Limits{Group: Window{Limit: 2, Period: time.Minute}})
	require.Zero(t, try(&j, 0, groupCharge(-1, 1)))
	require.Zero(t, try(&j, 10*time.Second, groupCharge(-1, 1)))
	require.Zero(t, try(&j, time.Minute, groupCharge(-1, 1)), "room at exactly 60 s")
	require.EqualValues(t, 9, try(&j, time.Minute+1500*ms, groupCharge(-1, 1)), "8.5 s are told as 9")
}

func TestFloodStandsAsToldAndGrowsWhenItIsIgnored(t *testing.T) {
	j := newJudge(Limits{Account: Rate{PerSecond: 10, Burst: 1}, Lengthen: 2 * time.Second})
	require.Zero(t, try(&j, 0, rateCharge(1)))
	require.EqualValues(t, 1, try(&j, 0, rateCharge(1)), "room in 100 ms: one second is told")
	require.EqualValues(t, 3, try(&j, 500*ms, rateCharge(1)), "0.5 s are left, and 2 s come on top")
	require.EqualValues(t, 3, try(&j, 2999*ms, rateCharge(1)), "1 ms is left, and 2 s come on top")
	require.Zero(t, try(&j, 5*time.Second, rateCharge(1)), "over at the told time, to the nanosecond")

	j = newJudge(Limits{Account: Rate{PerSecond: 1, Burst: 1}, Lengthen: -1})
	require.Zero(t, try(&j, 0, rateCharge(1)))
	for range 5 {
		require.EqualValues(t, 1, try(&j, 0, rateCharge(1)), "nothing is added")
	}
}

func TestSlackForgivesTheNetworkButDoesNotAddUp(t *testing.T) {
	j := newJudge(Limits{Account: Rate{PerSecond: 10, Burst: 1}, Slack: 5 * ms})
	require.Zero(t, try(&j, 0, rateCharge(1)))
	require.Zero(t, try(&j, 95*ms, rateCharge(1)), "5 ms early")
	require.Zero(t, try(&j, 195*ms, rateCharge(1)), "early again, not earlier")
	require.EqualValues(t, 1, try(&j, 294*ms, rateCharge(1)), "6 ms early")

	j = newJudge(Limits{Group: Window{Limit: 1, Period: time.Second}, Slack: 5 * ms})
	require.Zero(t, try(&j, 0, groupCharge(-1, 1)))
	require.Zero(t, try(&j, 995*ms, groupCharge(-1, 1)))
	require.EqualValues(t, 1, try(&j, 1989*ms, groupCharge(-1, 1)))
}

func TestFloodBelongsToItsLimit(t *testing.T) {
	j := newJudge(Limits{
		Chat:    Rate{PerSecond: 1, Burst: 1},
		Methods: map[string]Rate{"messages.sendMessage": {PerSecond: 0.1, Burst: 5}},
	})
	send := func(chat int64) []charge {
		return []charge{
			{key: gateKey{kind: gateMethod, method: "messages.sendMessage"}, cost: 1},
			{key: gateKey{kind: gateChat, id: chat}, cost: 1},
		}
	}
	require.Zero(t, try(&j, 0, send(1)))
	require.EqualValues(t, 1, try(&j, 0, send(1)), "the chat's")
	for chat := range int64(4) {
		require.Zero(t, try(&j, 0, send(chat+2)), "other chats go on")
	}
	require.EqualValues(t, 10, try(&j, 0, send(7)), "the method's")
	require.EqualValues(t, 11, try(&j, 0, send(8)), "and it is every chat's")
	require.Zero(t, try(&j, 0, []charge{{key: gateKey{kind: gateMethod, method: "help.getConfig"}, cost: 1}}))
}

func TestFloodsHaveTheirNames(t *testing.T) {
	j := newJudge(Limits{Parts: Rate{PerSecond: 1, Burst: 1}})
	j.slow[-5] = 30 * time.Second
	parts := []charge{{key: gateKey{kind: gateParts, id: 2}, cost: 1}}
	slow := []charge{{key: gateKey{kind: gateSlow, id: -5}, cost: 1}}
	for _, charges := range [][]charge{parts, slow} {
		require.Zero(t, try(&j, 0, charges))
	}
	f, _ := j.admit(0, subject{}, parts)
	require.Equal(t, "FLOOD_PREMIUM_WAIT_1", f.rpc().Message)
	f, _ = j.admit(1500*ms, subject{}, slow)
	require.Equal(t, "SLOWMODE_WAIT_29", f.rpc().Message)
	require.Equal(t, 420, f.rpc().Code)
}

func TestWhatIsLargerThanALimitPassesAloneAndIsCharged(t *testing.T) {
	j := newJudge(Limits{Account: Rate{PerSecond: 1, Burst: 3}})
	require.Zero(t, try(&j, 0, rateCharge(10)), "an album of ten with a full bucket of three")
	require.EqualValues(t, 8, try(&j, 0, rateCharge(1)), "three were there, seven are owed, one is to come")

	j = newJudge(Limits{Group: Window{Limit: 3, Period: time.Minute}})
	require.Zero(t, try(&j, 0, groupCharge(-1, 10)))
	require.EqualValues(t, 60, try(&j, 0, groupCharge(-1, 1)))
}

func TestNewLimitsCarryTokensOver(t *testing.T) {
	j := newJudge(Limits{Account: Rate{PerSecond: 1, Burst: 10}})
	require.Zero(t, try(&j, 0, rateCharge(8)))
	change := func(r Rate) { j.limits.Account = r; j.retune(0) }

	change(Rate{PerSecond: 1, Burst: 100})
	require.Zero(t, try(&j, 0, rateCharge(2)), "two were left")
	require.EqualValues(t, 1, try(&j, 0, rateCharge(1)), "and no fresh burst is granted")

	change(Rate{})
	require.Zero(t, try(&j, 0, rateCharge(1)), "a limit that is gone takes its flood along")
	change(Rate{PerSecond: 1, Burst: 1})
	require.Zero(t, try(&j, 0, rateCharge(1)))
	change(Rate{PerSecond: 1000, Burst: 1})
	require.EqualValues(t, 1, try(&j, 0, rateCharge(1)))
}

// Over any stretch of time no more passes than the limit allows, and what is
// refused passes when its told wait is over if nothing else was let in.
func TestLimitsHoldOverAnySchedule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		burst := rapid.IntRange(1, 5).Draw(t, "burst")
		perSecond := rapid.SampledFrom([]float64{0.5, 1, 3, 30}).Draw(t, "rate")
		win := Window{Limit: rapid.IntRange(1, 5).Draw(t, "limit"), Period: 10 * time.Second}
		j := newJudge(Limits{Account: Rate{PerSecond: perSecond, Burst: burst}, Group: win})
		charges := []charge{
			{key: gateKey{kind: gateAccount}, cost: 1},
			{key: gateKey{kind: gateGroup, id: -1}, cost: 1},
		}
		var now time.Duration
		var passed []time.Duration
		for range 200 {
			now += time.Duration(rapid.Int64Range(0, int64(3*time.Second)).Draw(t, "gap"))
			told := try(&j, now, charges)
			if told == 0 {
				passed = append(passed, now)
				continue
			}
			now += time.Duration(told) * time.Second
			if try(&j, now, charges) != 0 {
				t.Fatalf("refused at %v, when the told wait of %d s was over", now, told)
			}
			passed = append(passed, now)
		}
		for i := range passed {
			for k := i; k < len(passed); k++ {
				n, span := k-i+1, passed[k]-passed[i]
				if span < win.Period && n > win.Limit {
					t.Fatalf("%d in %v, window %+v", n, span, win)
				}
				if float64(n) > float64(burst)+perSecond*span.Seconds()+1e-6 {
					t.Fatalf("%d in %v, rate %v burst %d", n, span, perSecond, burst)
				}
			}
		}
	})
}

func BenchmarkAdmit(b *testing.B) {
	j := newJudge(Published())
	charges := []charge{
		{key: gateKey{kind: gateMethod, method: "messages.sendMessage"}, cost: 1},
		{key: gateKey{kind: gateAccount}, cost: 1},
		{key: gateKey{kind: gateChat, id: 1}, cost: 1},
		{key: gateKey{kind: gateSlow, id: 1}, cost: 1},
	}
	var now time.Duration
	for b.Loop() {
		now += time.Second
		try(&j, now, charges)
	}
}
