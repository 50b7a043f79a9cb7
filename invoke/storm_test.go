package invoke_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/ratelimit"
)

func resolve() *tg.ContactsResolveUsernameRequest {
	return &tg.ContactsResolveUsernameRequest{Username: "somebody"}
}

func edit(chat int64) *tg.MessagesEditMessageRequest {
	return &tg.MessagesEditMessageRequest{Peer: &tg.InputPeerUser{UserID: chat}, Message: "hello"}
}

func history(chat int64) *tg.MessagesGetHistoryRequest {
	return &tg.MessagesGetHistoryRequest{Peer: &tg.InputPeerUser{UserID: chat}}
}

// hundredChats lets chats be written to for ten minutes, each as fast as it goes, and
// returns how many messages came through in each. Ten write to the first chat, if it is
// noisy: it is flooded for 30 s every 5 s.
func hundredChats(t *testing.T, noisy bool, opts invoke.Options) map[int64]int {
	s := &datacenter{latency: 50 * time.Millisecond}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	call := connect(t, opts, s)
	var writers sync.WaitGroup
	write := func(chat int64) {
		for ctx.Err() == nil {
			if call(ctx, to(chat)) != nil {
				time.Sleep(100 * time.Millisecond)
			}
		}
	}
	for chat := int64(2); chat <= 100; chat++ {
		writers.Go(func() { write(chat) })
	}
	if noisy {
		l := standing(0, inChat(1))
		s.put(l)
		writers.Go(func() {
			for ctx.Err() == nil {
				s.mu.Lock()
				l.until = time.Now().Add(30 * time.Second)
				s.mu.Unlock()
				time.Sleep(5 * time.Second)
			}
		})
		for range 10 {
			writers.Go(func() { write(1) })
		}
	}
	writers.Wait()
	sent := map[int64]int{}
	for _, a := range s.all() {
		if a.wait == 0 {
			sent[a.chat]++
		} else {
			sent[-a.chat]++
		}
	}
	return sent
}

func TestNoisyChatCostsTheOtherNinetyNineNothing(t *testing.T) {
	for name, threshold := range map[string]flood.Threshold{"handed back": flood.Default, "sat out": flood.UpTo(time.Minute)} {
		for _, mode := range []invoke.ChatMode{invoke.ChatsNever, invoke.ChatsAlways} {
			t.Run(fmt.Sprintf("%s, mode %v", name, mode), func(t *testing.T) {
				var alone, beside map[int64]int
				for _, run := range []struct {
					noisy bool
					sent  *map[int64]int
				}{{false, &alone}, {true, &beside}} {
					synctest.Test(t, func(t *testing.T) {
						limiter := newLimiter(t, invoke.Options{Chats: invoke.ChatLimits{Mode: mode}})
						*run.sent = hundredChats(t, run.noisy, invoke.Options{Limiter: limiter, SleepThreshold: threshold})
					})
				}
				sum := func(sent map[int64]int) (n int) {
					for chat := int64(2); chat <= 100; chat++ {
						n += sent[chat]
					}
					return n
				}
				t.Logf("the 99 chats got %d messages alone and %d beside it: %.2f %%; it was flooded %d times",
					sum(alone), sum(beside), 100*float64(sum(beside))/float64(sum(alone)), beside[-1])
				require.GreaterOrEqual(t, float64(sum(beside)), 0.99*float64(sum(alone)))
				for chat := int64(2); chat <= 100; chat++ {
					require.GreaterOrEqual(t, float64(beside[chat]), 0.99*float64(alone[chat])-1, "chat %d", chat)
				}
				require.NotZero(t, beside[-1])
				require.LessOrEqual(t, beside[-1], 60, "it is not hammered")
			})
		}
	}
}

func TestFloodOfAnHourIsMetOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &datacenter{latency: 50 * time.Millisecond}
		s.put(standing(time.Hour, ofMethods("contacts.resolveUsername")))
		call := connect(t, invoke.Options{}, s)
		start := time.Now()
		requireWait(t, call(t.Context(), resolve()))
		for time.Since(start) < 59*time.Minute {
			var callers sync.WaitGroup
			began := time.Now()
			for range 1000 {
				callers.Go(func() {
					if wait := requireWait(t, call(t.Context(), resolve())); wait.Reason != flood.KnownFlood {
						t.Errorf("the reason is %v", wait.Reason)
					}
				})
			}
			callers.Wait()
			require.Zero(t, time.Since(began), "at once")
			require.NoError(t, call(t.Context(), history(1)))
			time.Sleep(10 * time.Minute)
		}
		require.Equal(t, 1, s.all().count(func(a arrival) bool { return a.method == "contacts.resolveUsername" }))
	})
}

// A thousand calls are there when the flood arrives. After the deadline the server sees one.
// When that came through the others follow at a pace, which soon is that of the server,
// whose limit is lower than what the client has room for.
func TestAThousandWaitersMakeNoSecondStorm(t *testing.T) {
	sends := ofMethods("messages.sendMessage")
	for name, test := range map[string]struct {
		covers func(arrival) bool
		all    func(i int64) bin.Encoder
	}{
		"method":  {sends, func(i int64) bin.Encoder { return to(i) }},
		"account": {everything, func(i int64) bin.Encoder { return []bin.Encoder{to(i), edit(i)}[i%2] }},
	} {
		for _, burst := range []float64{1, 5, 10} {
			t.Run(fmt.Sprintf("%s, burst %v", name, burst), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &datacenter{latency: 50 * time.Millisecond}
					s.put(bucket(8, burst, test.covers))
					l := s.limits[0]
					l.until = time.Now().Add(30 * time.Second)
					limiter := newLimiter(t, invoke.Options{})
					call := connect(t, invoke.Options{Limiter: limiter, SleepThreshold: flood.Always, MaxRetries: 100}, s)
					start := time.Now()
					waiters := aThousand(t, call, test.all)
					time.Sleep(29 * time.Second)
					before := s.all()
					require.Equal(t, before.refused(), len(before))
					require.LessOrEqual(t, len(before), 34, "what the burst had sent, and two that looked")
					s.mu.Lock()
					stands := l.until.Sub(start)
					s.mu.Unlock()
					waiters.Wait()

					after := s.between(start, 29*time.Second, 24*time.Hour)
					require.GreaterOrEqual(t, after[0].at.Sub(start), stands-4*time.Second, "but for what the last on the wire made longer unheard")
					passed := slices.IndexFunc(after, func(a arrival) bool { return a.wait == 0 })
					require.LessOrEqual(t, passed, map[string]int{"account": 4, "method": 1}[name], "a guess ends with the method that was told the shorter wait")
					after = after[passed:]
					first := after[0]
					require.Equal(t, 1, after.count(func(a arrival) bool { return a.at.Sub(first.at) < s.latency/2 }), "until it is answered")
					took := after[len(after)-1].at.Sub(first.at).Seconds()
					t.Logf("%d met the flood; 1 went first; the others took %.0f s, at 8/s %.0f s at least: %d floods, %d calls refused, %d into a known flood",
						len(before), took, 999/8.0, after.floods(), after.refused(), after.known())
					for _, a := range after {
						if a.wait > 0 {
							storm := after.count(func(b arrival) bool { return b.wait > 0 && a.at.Sub(b.at).Abs() < time.Second })
							require.LessOrEqual(t, storm, 6, "calls refused at a time")
						}
					}
					// That another method is held too has to be seen at each flood anew.
					require.LessOrEqual(t, after.known(), map[string]int{"account": 3 * after.floods(), "method": 2}[name])
					require.LessOrEqual(t, after.floods(), 16)
					require.Less(t, took, 999/8.0*2)
				})
			})
		}
	}
}

// The buckets are full when a deadline comes that a thousand calls have waited for. One goes
// first, and then the others leave at the rate of their category, not as a burst, though the
// server would take it. Nothing is learned from a flood that long, and the bursts are those
// that are configured.
func TestThoseWhoAreLetGoAfterAFloodMakeNoBurst(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8)) // some of them come before the others
	media := func(i int64) bin.Encoder {
		return &tg.MessagesSendMediaRequest{Peer: &tg.InputPeerUser{UserID: i}, Media: &tg.InputMediaEmpty{}}
	}
	for name, test := range map[string]struct {
		all  func(i int64) bin.Encoder
		rate int
	}{
		"method":                  {func(i int64) bin.Encoder { return to(i) }, 20},
		"method without chats":    {func(int64) bin.Encoder { return resolve() }, 30},
		"account":                 {func(i int64) bin.Encoder { return []bin.Encoder{to(i), edit(i)}[i%2] }, 20},
		"account, two categories": {func(i int64) bin.Encoder { return []bin.Encoder{to(i), media(i)}[i%2] }, 25},
	} {
		t.Run(name, func(t *testing.T) {
			for range 3 {
				synctest.Test(t, func(t *testing.T) {
					s := &datacenter{latency: 50 * time.Millisecond}
					s.put(standing(90*time.Second, everything))
					limiter := newLimiter(t, invoke.Options{})
					call := connect(t, invoke.Options{Limiter: limiter, SleepThreshold: flood.Always, MaxRetries: 100}, s)
					start := time.Now()
					waiters := aThousand(t, call, test.all)
					waiters.Wait()
					after := s.between(start, 80*time.Second, 24*time.Hour)
					first := after[slices.IndexFunc(after, func(a arrival) bool { return a.wait == 0 })].at // those before it looked
					within := func(d time.Duration) int {
						return after.count(func(a arrival) bool { return a.wait == 0 && a.at.Sub(first) < d })
					}
					require.Equal(t, 1, within(s.latency))
					require.LessOrEqual(t, within(s.latency+500*time.Millisecond), 1+test.rate/2, "no burst")
					require.GreaterOrEqual(t, within(10*time.Second), 9*test.rate)
				})
			}
		})
	}
}

// Slow mode holds what sends to its chat: other chats, and edits and reads there, go on.
func TestSlowModeNeverLeavesItsChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &datacenter{latency: 50 * time.Millisecond}
		for chat := int64(1); chat <= 3; chat++ { // more than it takes to prove a method's flood
			slow := standing(300*time.Second, func(a arrival) bool { return a.chat == chat && a.method == "messages.sendMessage" })
			slow.message = "SLOWMODE_WAIT_%d"
			s.put(slow)
		}
		limiter := newLimiter(t, invoke.Options{})
		call := connect(t, invoke.Options{Limiter: limiter}, s)
		start := time.Now()
		for chat := int64(1); chat <= 3; chat++ {
			require.Equal(t, flood.Chat, requireWait(t, call(t.Context(), to(chat))).Scope)
			require.Equal(t, flood.KnownFlood, requireWait(t, call(t.Context(), to(chat))).Reason)
			require.NoError(t, call(t.Context(), edit(chat)))
			require.NoError(t, call(t.Context(), history(chat)))
		}
		for chat := int64(4); chat <= 20; chat++ {
			require.NoError(t, call(t.Context(), to(chat)))
		}
		require.Less(t, time.Since(start), 2*time.Second, "nobody waited")
		require.Len(t, limiter.Floods(), 3)
		require.Empty(t, limiter.Learned(), "slow mode says nothing of rates")
		require.Zero(t, s.all().known())
	})
}

func TestAccountWideFloodStopsEverySendAndNoRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &datacenter{latency: 50 * time.Millisecond}
		reads := ofMethods("messages.getHistory", "users.getUsers", "updates.getDifference")
		s.put(standing(10*time.Minute, func(a arrival) bool { return !reads(a) }))
		limiter := newLimiter(t, invoke.Options{})
		call := connect(t, invoke.Options{Limiter: limiter}, s)
		requireWait(t, call(t.Context(), to(1)))
		requireWait(t, call(t.Context(), to(2)))   // and so it is the method's
		requireWait(t, call(t.Context(), edit(1))) // and the account's
		met, looked := len(s.all()), 0
		for _, send := range []bin.Encoder{
			to(3), edit(3), toGroup(4), typing(),
			&tg.MessagesDeleteMessagesRequest{ID: []int{1}},
			&tg.MessagesSendMediaRequest{Peer: &tg.InputPeerUser{UserID: 5}, Media: &tg.InputMediaEmpty{}},
			&tg.AccountUpdateProfileRequest{},
		} {
			wait := requireWait(t, call(t.Context(), send))
			if wait.Reason == flood.OverThreshold {
				looked++
				continue
			}
			require.Equal(t, flood.KnownFlood, wait.Reason, "%v: %v", wait, limiter.Floods())
		}
		floods := limiter.Floods()
		require.True(t, slices.ContainsFunc(floods, func(r flood.Record) bool { return r.Scope == flood.Account }), "%v", floods)
		require.Equal(t, 1, looked, "after 5 s, whether it is the account's")
		require.Len(t, s.all(), met+1, "none of the others was sent")
		start := time.Now()
		for _, read := range []bin.Encoder{history(1), &tg.UsersGetUsersRequest{}, &tg.UpdatesGetDifferenceRequest{}} {
			require.NoError(t, call(t.Context(), read))
		}
		require.Equal(t, 3*s.latency, time.Since(start))
	})
}

// The server floods the whole account again and again. That it is all of it has to be seen
// once; from then on each time costs one request.
func TestAccountWideFloodThatComesBackCostsOneRequest(t *testing.T) {
	for name, threshold := range map[string]flood.Threshold{"handed back": flood.Never, "sat out": flood.UpTo(time.Minute)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var over atomic.Bool
				s := &server{answer: func(int, bin.Encoder) error {
					if over.Load() {
						return nil
					}
					return tgerr.New(420, "FLOOD_WAIT_30")
				}}
				_, call := choke(t, invoke.Options{SleepThreshold: threshold, MaxRetries: 100}, s)
				ctx, cancel := context.WithCancel(t.Context())
				var all sync.WaitGroup
				defer all.Wait()
				defer cancel()
				for i, send := range []bin.Encoder{to(1), edit(2), to(3), toGroup(4), edit(5), &tg.AccountUpdateProfileRequest{}} {
					all.Go(func() {
						time.Sleep(time.Duration(i) * 100 * time.Millisecond)
						for ctx.Err() == nil {
							_ = call(ctx, send, nil)
							time.Sleep(time.Second)
						}
					})
				}
				time.Sleep(20 * time.Second)
				proof := s.count()
				require.LessOrEqual(t, proof, 3+2, "three prove it, and one looks for the method and one for the account")
				time.Sleep(10 * 30 * time.Second)
				require.LessOrEqual(t, s.count()-proof, 10)
				over.Store(true)
				time.Sleep(2 * time.Minute)
				require.Greater(t, s.count()-proof, 20, "it is over")
			})
		})
	}
}

func TestPremiumWaitStaysWithThePartsOfOneDataCentre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := invoke.New(invoke.Options{})
		require.NoError(t, err)
		defer m.Close()
		home, other := &datacenter{}, &datacenter{}
		slow := standing(300*time.Second, ofMethods("upload.getFile"))
		slow.message = "FLOOD_PREMIUM_WAIT_%d"
		other.put(slow)
		part := func(offset int64) bin.Encoder {
			return &tg.UploadGetFileRequest{Location: &tg.InputDocumentFileLocation{ID: 7}, Offset: offset, Limit: 1 << 19}
		}
		there, here := m.HandleDC(4, other), m.HandleDC(0, home)
		require.Equal(t, flood.PremiumWait, requireWait(t, there(t.Context(), part(0), nil)).Kind)
		for i := range int64(20) {
			require.Equal(t, flood.KnownFlood, requireWait(t, there(t.Context(), part(i<<19), nil)).Reason)
			require.NoError(t, here(t.Context(), part(i<<19), nil))
		}
		require.NoError(t, there(t.Context(), &tg.UploadSaveFilePartRequest{FileID: 1, Bytes: []byte{1}}, nil), "another method")
		require.NoError(t, there(t.Context(), history(1), nil))
		require.NoError(t, here(t.Context(), to(1), nil))
		require.Equal(t, 1, other.all().count(func(a arrival) bool { return a.method == "upload.getFile" }))
		require.Empty(t, m.Limiter().Learned())
	})
}

// Updates go on under floods: each is waited for, and the next difference is asked for after
// it, once.
func TestUpdateDifferencesGoOnUnderFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &datacenter{latency: 50 * time.Millisecond}
		s.put(bucket(1.0/60, 1, ofMethods("updates.getDifference")))
		limiter := newLimiter(t, invoke.Options{})
		call := connect(t, invoke.Options{Limiter: limiter}, s)
		start := time.Now()
		for range 60 {
			require.NoError(t, call(t.Context(), &tg.UpdatesGetDifferenceRequest{}))
			require.NoError(t, call(t.Context(), to(1)), "what is sent is not held up")
		}
		t.Logf("60 differences in %v at one a minute, %d calls refused", time.Since(start), s.all().refused())
		require.Less(t, time.Since(start), 75*time.Minute)
		require.LessOrEqual(t, s.all().refused(), 60)
		require.Zero(t, s.all().known())
	})
}

func TestTypingUnderAFloodGivesUpAfterTwoSeconds(t *testing.T) {
	for left, sent := range map[time.Duration]bool{time.Second: true, 2 * time.Second: true, 3 * time.Second: false, time.Hour: false} {
		synctest.Test(t, func(t *testing.T) {
			s := &datacenter{latency: 50 * time.Millisecond}
			s.put(standing(left, ofMethods("messages.setTyping")))
			call := connect(t, invoke.Options{}, s)
			start := time.Now()
			err := call(t.Context(), typing())
			require.Equal(t, sent, err == nil, "%v left: %v", left, err)
			require.LessOrEqual(t, time.Since(start), 2*time.Second+2*s.latency)
			require.NoError(t, call(t.Context(), to(1)), "the message itself is not held up")
		})
	}
}

// How long a call takes that is refused because of a flood that is known, in real time.
func BenchmarkKnownFlood(b *testing.B) {
	m := invoke.Must(invoke.Options{RateLimits: map[classify.Category]ratelimit.Change{classify.Account: ratelimit.Rate(ratelimit.MaxRate)}})
	defer m.Close()
	call := m.Handle(floods(1, "FLOOD_WAIT_86400"))
	if call(b.Context(), resolve(), nil) == nil {
		b.Fatal("no flood")
	}
	b.Run("one caller", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if call(b.Context(), resolve(), nil) == nil {
				b.Fatal("it was sent")
			}
		}
	})
	b.Run("1000 callers", func(b *testing.B) {
		thousand(b, func() {
			if call(b.Context(), resolve(), nil) == nil {
				b.Error("it was sent")
			}
		})
	})
	// What the machine makes of it by itself: as much work without a lock, and a part of it
	// under one.
	work := func(looks int) {
		for range looks {
			_ = time.Now()
		}
	}
	b.Run("1000 callers of nothing", func(b *testing.B) { thousand(b, func() { work(20) }) })
	b.Run("1000 callers of a mutex", func(b *testing.B) {
		var mu sync.Mutex
		thousand(b, func() {
			mu.Lock()
			defer mu.Unlock()
			work(5)
		})
	})
}

// thousand tells how long do takes if a thousand goroutines begin at the same time.
func thousand(b *testing.B, do func()) {
	const callers = 1000
	var all []time.Duration
	for b.Loop() {
		took := make([]time.Duration, callers)
		var ready, done sync.WaitGroup
		begin := make(chan struct{})
		ready.Add(callers)
		for i := range callers {
			done.Go(func() {
				ready.Done()
				<-begin
				start := time.Now()
				do()
				took[i] = time.Since(start)
			})
		}
		ready.Wait()
		close(begin)
		done.Wait()
		all = append(all, took...)
	}
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2]), "p50-ns")
	b.ReportMetric(float64(all[len(all)*99/100]), "p99-ns")
	b.ReportMetric(float64(all[len(all)*999/1000]), "p99.9-ns")
}

// aThousand makes a thousand calls at once, none of which is to fail.
func aThousand(t *testing.T, call func(context.Context, bin.Encoder) error, all func(i int64) bin.Encoder) *sync.WaitGroup {
	var waiters sync.WaitGroup
	for i := range int64(1000) {
		waiters.Go(func() {
			if err := call(t.Context(), all(i+1)); err != nil {
				t.Error(err)
			}
		})
	}
	return &waiters
}
