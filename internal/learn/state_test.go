package learn_test

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/internal/learn"
)

func TestARestartDoesNotRelearn(t *testing.T) {
	for _, burst := range []float64{1, 5, 10, 30} {
		s := newSim(t, 30, 40, newBucketServer(10, burst), 0)
		s.work(600)
		for restart := range 20 {
			kept, err := json.Marshal(s.rate.State())
			require.NoError(t, err)
			var state learn.State
			require.NoError(t, json.Unmarshal(kept, &state))
			s.rate = newRate(t, 30)
			require.NoError(t, s.rate.Restore(state, clock(s.now)))
			require.True(t, s.rate.Learned())
			require.LessOrEqual(t, s.rate.PerSecond(), 10.0)
			s.rest(s.now + 5)
			s.work(600 + 30*float64(restart+1))
		}
		floods := between(s.events, 600, 1200)
		t.Logf("burst %2v: %d floods in 10 minutes of a restart each 30 s", burst, floods)
		require.LessOrEqual(t, floods, 15, "learning anew would take 4 each time")
	}
}

func TestStateRoundTrip(t *testing.T) {
	r := newRate(t, 30)
	now := use(r, clock(0), 2)
	r.Flooded(r.Sent(now, 1))
	now = use(r, now, 10)
	state := r.State()
	require.True(t, state.Flooded.After(clock(0)))
	other := newRate(t, 30)
	require.NoError(t, other.Restore(state, now))
	require.True(t, state.Flooded.Equal(other.State().Flooded))
	require.InDelta(t, r.PerSecond(), other.PerSecond(), 1e-9)
	require.Equal(t, state.Stood, other.State().Stood)

	require.NoError(t, other.Restore(learn.State{}, now))
	require.False(t, other.Learned())
	require.Equal(t, 30.0, other.PerSecond())

	require.NoError(t, other.Restore(learn.State{Held: 500}, now))
	require.LessOrEqual(t, other.PerSecond(), 30.0)
	require.NoError(t, other.Restore(learn.State{Held: 1e-9}, now))
	require.GreaterOrEqual(t, other.PerSecond(), 0.3)
}

func TestBadStates(t *testing.T) {
	r := newRate(t, 30)
	now := clock(0)
	for field, state := range map[string]learn.State{
		"held is NaN":   {Held: math.NaN()},
		"held is -1":    {Held: -1},
		"spare is +Inf": {Held: 1, Spare: math.Inf(1)},
		"used is -5":    {Held: 1, Used: -5},
		"stood is -2":   {Held: 1, Stood: -2},
		"flooded is":    {Held: 1, Flooded: now.Add(25 * time.Hour)},
	} {
		require.ErrorContains(t, r.Restore(state, now), field)
		require.False(t, r.Learned())
	}
	require.NoError(t, r.Restore(learn.State{Held: 5, Flooded: now.Add(23 * time.Hour)}, now))
	require.True(t, r.State().Flooded.Equal(now), "a clock that was set back")
}

// FuzzRate restores whatever it is given and lets a program of calls, floods, changes of
// the ceiling and jumps of the clock run on it.
func FuzzRate(f *testing.F) {
	f.Add([]byte(`{"held":10,"spare":5,"used":60,"flooded":"2027-01-15T08:00:00Z"}`), []byte{0, 9, 1, 0, 2, 200, 3, 7, 0, 255})
	f.Add([]byte(`{"held":1e300}`), []byte{1, 0, 1, 0})
	f.Add([]byte(`{"held":10,"used":47,"sent":500,"bet":{"before":5,"base":4,"length":2}}`), []byte{6, 0, 0, 0, 2, 90, 0, 0, 1, 0})
	f.Fuzz(func(t *testing.T, kept, program []byte) {
		r := newRate(t, 30)
		now := clock(0)
		check := func() {
			rate := r.PerSecond()
			require.True(t, rate >= r.Ceiling()/100 && rate <= r.Ceiling(), "rate %v, ceiling %v", rate, r.Ceiling())
			burst := r.Burst(40)
			require.True(t, burst >= 1 && burst <= 40, "burst %v", burst)
		}
		var state learn.State
		if json.Unmarshal(kept, &state) == nil && r.Restore(state, now) == nil {
			require.NoError(t, newRate(t, 30).Restore(r.State(), now))
		} else {
			state = learn.State{}
		}
		check()
		call := learn.Call{}
		for len(program) >= 2 {
			op, arg := program[0], program[1]
			program = program[2:]
			switch op % 7 {
			case 0:
				call = r.Sent(now, 1)
			case 1:
				r.Flooded(call)
			case 2:
				now = now.Add(time.Duration(arg) * 10 * time.Millisecond)
			case 3:
				if r.SetCeiling(float64(arg)/4) != nil {
					require.Zero(t, arg)
				}
			case 4:
				now = use(r, now, min(float64(arg), 1000/r.PerSecond()))
			case 6:
				_ = r.Follow(state, now) // it fails where the clock was set back too far
			case 5:
				if len(program) >= 8 {
					now = now.Add(time.Duration(binary.LittleEndian.Uint64(program)))
				}
			}
			check()
		}
		_, err := json.Marshal(r.State())
		if r.State().Flooded.Year() < 10000 && r.State().Flooded.Year() >= 0 {
			require.NoError(t, err)
		}
		require.NoError(t, newRate(t, 30).Restore(r.State(), r.State().Flooded))
	})
}

// Of two floods the later one counts, whatever the clocks say of those who met them.
func TestAFloodIsLaterThanThoseThatWereKnown(t *testing.T) {
	leader, follower := newRate(t, 30), newRate(t, 30)
	ahead := clock(3600)
	leader.Flooded(leader.Sent(ahead, 1))
	follower.Flooded(follower.Sent(clock(0), 1))
	require.NoError(t, follower.Follow(leader.State(), clock(0)))
	require.True(t, follower.Flooded(follower.Sent(clock(5), 1)))
	require.True(t, follower.State().Flooded.After(leader.State().Flooded))
}

func TestFollowKeepsInStepWithWhoLeads(t *testing.T) {
	leader, follower := newRate(t, 30), newRate(t, 30)
	now := use(leader, clock(0), 2)
	leader.Flooded(leader.Sent(now, 1))
	require.NoError(t, follower.Restore(leader.State(), now))
	for leader.PerSecond() < 25 { // up to a probe, and into it
		now = now.Add(time.Duration(float64(time.Second) / leader.PerSecond()))
		leader.Sent(now, 1)
	}
	require.Less(t, follower.PerSecond(), 25.0)
	require.NoError(t, follower.Follow(leader.State(), now))
	require.InDelta(t, leader.PerSecond(), follower.PerSecond(), 1e-9)
	follows := follower.PerSecond()
	now = use(follower, now, 5)
	require.Equal(t, follows, follower.PerSecond(), "it does not grow by itself")
	follower.Lead()
	now = use(follower, now, 1)
	require.Greater(t, follower.PerSecond(), follows)
	require.True(t, follower.Flooded(follower.Sent(now, 1)), "what it sends now is after that flood")

	before := follower.State()
	require.Error(t, follower.Follow(learn.State{Held: math.NaN()}, now))
	require.Equal(t, before, follower.State(), "it is as it was")
}

// A store may tell of a probe that no Rate ever made.
func TestProbeWithoutEndLeavesAStateThatCanBeKept(t *testing.T) {
	r := newRate(t, 30)
	now := clock(0)
	state := learn.State{Held: 10, Flooded: now, Bet: learn.Bet{Before: 5, Base: 10, Length: math.MaxFloat64}}
	require.NoError(t, r.Follow(state, now))
	require.True(t, r.Flooded(r.Sent(now.Add(time.Second), 1)))
	_, err := json.Marshal(r.State())
	require.NoError(t, err)
}
