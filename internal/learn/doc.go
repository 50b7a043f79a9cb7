// Package learn finds the rate that a server allows when it does not say it, from
// nothing but its floods: a [Rate] stands at a configured ceiling until there is one,
// and never above it.
//
// # Use
//
// Where a token bucket is refilled at a configured rate, refill it at PerSecond, with
// a burst of Burst. Call Sent for each call that goes out, and Flooded for a call that is
// answered with a flood about how much is sent. After each of the two, Moved says
// whether the bucket has to be told. The package does not wait and does not send: after
// a flood it expects that the bucket is emptied, that nothing goes out until the
// server's deadline, that then one call goes first, and that the others follow at the
// effective rate.
//
// The rate moves only in these calls and never with time, so there is no timer to keep,
// and an idle bot does not climb.
//
// # The curve
//
// It is CUBIC's, in seconds of use in place of time, a second of use being as many calls
// as the rate allows in a second:
//
//		rate                                  ╭ the probe
//		 held ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─╱─ ─
//		        ╭──────── the plateau ───────╯
//		       ╱ the climb
//		      │
//		    flood                            use
//
//	  - A flood leaves at most 0.7 of the rate in force (CUBIC's beta), and less than the
//	    plateau, so that a server that counts what was sent in the last minute has room
//	    again.
//	  - In 3 s, or 6 calls, it climbs back, fast first, to the plateau. A flood costs
//	    little more than the wait itself.
//	  - The plateau lies at 0.97 of the rate that is believed to hold. Less would give
//	    calls away; more would be within what such an estimate can tell, and would be
//	    flooded for a rounding.
//	  - 45 s after a flood the rate is probed: it grows as exp((t/2.4 s)²). Any
//	    probe past a limit that has not changed costs one flood, however gently it goes,
//	    so it goes far: a limit that has doubled is reached in 2 s, and one that is four times
//	    as high in 3 s. The beginning is slow, so that a server without a burst refuses it
//	    close to its limit, where the estimate comes from. Slow rates take 12 calls
//	    where others take 2.4 s, for the same reason.
//	  - A limit that has stood for four minutes of use is probed after 0.4 of the use for
//	    which it has stood, up to 5 minutes. It has moved when the estimate has, by a
//	    quarter. A rate that floods have pressed down and that no probe has confirmed is off
//	    by up to 30 % where the server takes little at once, and waits no longer than
//	    45 s.
//	  - A probe that comes to the ceiling and stays there for a minute of use makes
//	    the floods forgotten. A minute, because a server that takes 30 calls at once and
//	    allows a little less than the ceiling needs so long to refuse.
//	  - A probe whose allowance lies unused for a second, or 4 calls, is over: a rate that
//	    nobody uses proves nothing.
//
// How often to probe is a choice between two aims that exclude each other. To find within a
// minute that a limit has risen takes a probe in each minute; a probe past a limit that
// stands costs a flood. What has just moved is likely to move again, and what has stood
// for an hour is likely to stand. So a rise is found within the minute for four minutes
// after the last change, and after a quarter of an hour of constant work there is a flood in
// five minutes.
//
// # What held
//
// The rate at a flood says little: a server that takes 30 calls at once refuses a probe
// at twice its limit. So the estimate rests on what went out.
//
//   - Between two floods the server let through what its limit gave, or less, since it had
//     nothing left at either. That is exact where it takes much at once, and too low where it
//     takes little, because what its limit gave during the wait was lost.
//   - A probe was refused after so many calls beyond the limit as the server takes at
//     once, its spare. With the spare known, that gives the limit; it is exact where the
//     spare is small. The spare is known from the burst with which work began,
//     and from bursts after that.
//   - What a probe has proven in this way is a bet, since the spare may be larger than was
//     known. If the plateau above it is flooded, there are two things to explain, how
//     far the probe came and how long the plateau lasted, which tell the limit and the
//     spare both.
//   - A probe that came as far as was expected proves little: a higher limit and a smaller
//     spare explain it as well. So it is doubted, by a bet on a smaller spare, until such
//     a bet is lost. That costs a flood after each change, and a wrong estimate does not
//     last.
//   - A flood of a burst that went out beyond the rate in force tells of the spare only.
//   - Otherwise a flood on the plateau means that the limit has fallen: 0.7 of the rate in
//     force, or what went through since the last flood if that is more.
//
// # What it promises
//
// The tests measure it in virtual time, against servers that take 1 to 40 calls at once and
// wait in whole seconds, with up to 200 ms on the way, and a client that always has work:
//
//   - After the first minute a limit that stands is used to at least 90 %, with at most 9
//     floods in the nine minutes after it (up to 12 with one server of twenty), and fewer
//     later: as a rule 20 in the first hour.
//   - A limit that halves is used to 90 % over ten seconds that begin within a minute of
//     the change, at the cost of some 4 floods. So is one that doubles or quadruples, up
//     to four minutes after it has moved. One that rises after it has stood for longer is
//     found by the next probe, 5 minutes later at most.
//   - However many calls are in flight when the first flood comes, they are one event.
//   - An idle hour changes nothing, and does not end in a burst that the server would not take.
//     (Package adapt forgets a Rate after a long rest.)
//
// A server that takes one to three calls at once is the hardest to read. There a change may
// take a minute longer, about once in five hundred, and 72 to 90 % be all that is found
// where the first floods told something wrong.
//
// Four processes that share a limit, one of which leads while the others follow, come to 90
// to 98 % of it, with 8 or 9 floods in those nine minutes (package invoke measures that).
//
// It does not promise that there is no flood, nor that a limit that changes all the
// time is followed. Floods that are not about how much is sent lower the rate for
// nothing; one in a thousand calls costs 10 to 30 % of it. It knows one limit: the
// floods of a chat must not be told to the Rate of a method.
package learn
