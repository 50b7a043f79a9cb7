package learn_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// A client that is configured for more than the server allows works for ten minutes
// without a pause. After the first minute it has at least 90 % of what the server
// allows, and about one flood a minute at most; after ten minutes there are far fewer.
func TestAnUnknownLimitIsFound(t *testing.T) {
	t.Logf("%27s %9s  %6s  %5s | %16s | %16s | %9s", "configured", "true", "burst", "rtt", "minutes 2 to 10", "floods", "hour")
	for _, c := range []struct {
		ceiling, configured, rate float64
		bursts                    []float64
	}{
		{30, 40, 10, []float64{1, 2, 5, 10, 30, 60}},
		{20, 30, 10, []float64{1, 5, 10, 30}},
		{30, 40, 25, []float64{1, 5, 10, 30}},
		{1, 3, 0.33, []float64{1, 5, 10}},
		{1000, 1000, 300, []float64{1, 5, 10, 30}},
		{1000, 100, 90, []float64{5, 10, 30}},
	} {
		for _, burst := range c.bursts {
			for _, rtt := range []float64{0, 0.1} {
				s := newSim(t, c.ceiling, c.configured, newBucketServer(c.rate, burst), rtt)
				name := fmt.Sprintf("%4v/s burst %4v, %4v/s %6v  %5v", c.ceiling, c.configured, c.rate, burst, rtt)
				checkTenMinutes(t, s, name, c.rate)
			}
		}
	}
	for _, rtt := range []float64{0, 0.1} {
		s := newSim(t, 1, 3, &windowServer{limit: 20, period: 60}, rtt)
		checkTenMinutes(t, s, fmt.Sprintf("   1/s burst    3, 20 in a minute  %5v", rtt), 20.0/60)
	}
}

func checkTenMinutes(t *testing.T, s *sim, name string, limit float64) {
	hour := 3600.0
	if limit > 50 {
		hour = 600 // so many calls take long
	}
	s.work(hour)
	share := float64(between(s.passed, 60, 600)) / (540 * limit)
	floods := between(s.events, 60, 600)
	t.Logf("%-48s | %14.1f %% | %2d, then %d in 9 | %.2f a min", name,
		100*share, between(s.events, 0, 60), floods, 60*float64(between(s.events, 60, hour))/(hour-60))
	require.GreaterOrEqual(t, share, 0.9, name)
	require.LessOrEqual(t, floods, 10, name)
	require.LessOrEqual(t, between(s.events, 600, hour), 50, name)
}

// settled is after how many seconds from the change, at the second from, a stretch of ten
// seconds begins that has at least 90 % of the limit, and, when the limit fell, no
// flood and no more than 110 %.
func (s *sim) settled(from, limit float64, fell bool) float64 {
	for x := 0.0; ; x += 0.25 {
		n := float64(between(s.passed, from+x, from+x+10)) / (10 * limit)
		if n >= 0.9 && !(fell && (n > 1.1 || between(s.events, from+x, from+x+10) > 0)) {
			return x
		}
		if x > 120 {
			return x
		}
	}
}

// The limit halves, and three minutes later it doubles or quadruples, at each phase of
// the minute in which the rate is probed.
func TestAChangedLimitIsFoundWithinAMinute(t *testing.T) {
	t.Logf("%5s %5s | %-34s | %-26s | %s", "burst", "rtt", "10 to 5: worst, floods in a minute", "5 to 10: worst, floods", "5 to 20: worst, floods")
	for _, burst := range []float64{1, 5, 10, 30} {
		for _, rtt := range []float64{0, 0.1} {
			var worst [3]float64
			var floods [3]int
			note := func(i int, s *sim, at, limit float64) {
				s.work(at + 140)
				settled := s.settled(at, limit, i == 0)
				until := settled
				if i == 0 {
					until = 60
				}
				worst[i] = max(worst[i], settled)
				floods[i] = max(floods[i], between(s.events, at, at+until))
			}
			for phase := 0.0; phase < 60; phase++ {
				for i, up := range []float64{10, 20} {
					server := newBucketServer(10, burst)
					s := newSim(t, 30, 40, server, rtt)
					fall := 240 + phase
					s.work(fall)
					server.change(fall, 5)
					note(0, s, fall, 5)
					rise := fall + 180 + phase
					s.work(rise)
					server.change(rise, up)
					note(1+i, s, rise, up)
				}
			}
			t.Logf("%5v %5v | %23.1f s, %8d | %15.1f s, %7d | %13.1f s, %d", burst, rtt,
				worst[0], floods[0], worst[1], floods[1], worst[2], floods[2])
			for i := range worst {
				require.LessOrEqual(t, worst[i], 60.0, "burst %v rtt %v change %d", burst, rtt, i)
				require.LessOrEqual(t, floods[i], 5, "burst %v rtt %v change %d", burst, rtt, i)
			}
		}
	}
}

// What has stood for long is likely to stand: it is probed less and less often, and at once
// more often when it moves, in one direction or the other.
func TestALimitThatStandsIsProbedSeldom(t *testing.T) {
	for _, moved := range []float64{5, 20} {
		server := newBucketServer(10, 5)
		s := newSim(t, 30, 40, server, 0)
		s.work(7200)
		require.LessOrEqual(t, between(s.events, 3600, 7200), 13, "in five minutes one")
		gap := s.events[len(s.events)-1] - s.events[len(s.events)-2]
		require.InDelta(t, 300, gap, 15)
		server.change(7200, moved)
		s.work(7600)
		at := 7200 + s.settled(7200, moved, moved < 10)
		require.LessOrEqual(t, at, 7510.0, "to %v", moved)
		s.work(at + 200)
		require.GreaterOrEqual(t, between(s.events, at, at+200), 3, "to %v: probed each 50 s again", moved)
	}
}

// The two tests above choose their servers. These are drawn: limits from 3 to 25 a
// second, bursts from 1 to 40, up to 200 ms on the way.
func TestServersAtRandom(t *testing.T) {
	const servers = 200
	rnd := rand.New(rand.NewPCG(1, 2))
	draw := func() (burst, rtt float64) { return float64(1 + rnd.IntN(40)), 0.2 * rnd.Float64() }
	share, tens, late := 1.0, 0, 0
	for range servers {
		limit := 3 + 22*rnd.Float64()
		burst, rtt := draw()
		s := newSim(t, 30, 40, newBucketServer(limit, burst), rtt)
		s.work(600)
		share = min(share, float64(between(s.passed, 60, 600))/(540*limit))
		floods := between(s.events, 60, 600)
		require.LessOrEqual(t, floods, 12, "limit %v burst %v rtt %v", limit, burst, rtt)
		if floods > 9 {
			tens++
		}

		burst, rtt = draw()
		server := newBucketServer(10, burst)
		s = newSim(t, 30, 40, server, rtt)
		fall := 240 + 60*rnd.Float64()
		s.work(fall)
		server.change(fall, 5)
		rise := fall + 180 + 60*rnd.Float64()
		s.work(rise)
		server.change(rise, 10+10*float64(rnd.IntN(2)))
		s.work(rise + 140)
		if s.settled(fall, 5, true) > 60 || s.settled(rise, server.rate, false) > 60 {
			late++
		}
	}
	t.Logf("of %d servers: at least %.1f %% of the limit; %d times more than 9 floods in 9 minutes; %d times a change took longer than a minute",
		servers, 100*share, tens, late)
	require.GreaterOrEqual(t, share, 0.9)
	require.LessOrEqual(t, tens, servers/10)
	require.LessOrEqual(t, late, servers/50)
}

// After an hour without work there is no storm, whatever the client has saved up.
func TestWorkAfterAnIdleHour(t *testing.T) {
	for _, burst := range []float64{1, 5, 10, 30} {
		for _, rtt := range []float64{0, 0.1} {
			s := newSim(t, 30, 40, newBucketServer(10, burst), rtt)
			s.work(600)
			learned := s.rate.PerSecond()
			s.rest(600 + 3600)
			require.Equal(t, learned, s.rate.PerSecond(), "an hour without work changes nothing")
			s.work(4200 + 60)
			floods := between(s.events, 4200, 4260)
			share := float64(between(s.passed, 4200, 4260)) / 600
			t.Logf("burst %2v, rtt %v: %d floods in the first minute, %.1f %%", burst, rtt, floods, 100*share)
			require.LessOrEqual(t, floods, 2)
			require.GreaterOrEqual(t, share, 0.9)
		}
	}
}

// A bot with little to do, in bursts, does not unlearn what it knows, and is not
// flooded at each burst.
func TestBurstsOfWork(t *testing.T) {
	for _, burst := range []float64{1, 5, 10, 30} {
		s := newSim(t, 30, 40, newBucketServer(10, burst), 0)
		s.work(300)
		for minute := range 120 {
			at := 300 + 60*float64(minute)
			s.rest(at)
			s.work(at + 3)
		}
		floods := between(s.events, 300, 300+7200)
		t.Logf("burst %2v: %d floods in 120 bursts of 3 s, a minute apart; rate %.1f", burst, floods, s.rate.PerSecond())
		require.LessOrEqual(t, floods, 12)
		require.Greater(t, s.rate.PerSecond(), 6.0)
	}
}
