package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weirtg/weir/ratelimit"
	"github.com/weirtg/weir/redisstore"
	"github.com/weirtg/weir/store"
)

// job is what a process is told to do.
type job struct {
	Addr     string
	Account  string
	Kind     string // "share", or a kind of decision
	Callers  int
	Start    time.Time
	Duration time.Duration
}

// done is what it has done.
type done struct {
	Admitted []admission // share
	Asked    int         // how often the server was asked
	Failed   int         // share: calls that failed, because it did not answer in time
}

// admission is when an admitted call was asked for, and when the answer was there. The
// server decided in between.
type admission struct{ Asked, Answered time.Time }

// processes starts n real processes and returns what each of them did.
func processes(ctx context.Context, n int, j job) ([]done, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	told, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	all := make([]done, n)
	var group errgroup.Group
	for i := range all {
		group.Go(func() error {
			c := exec.CommandContext(ctx, self, "worker", "-addr", j.Addr)
			c.Stderr = os.Stderr
			in, err := c.StdinPipe()
			if err != nil {
				return err
			}
			go func() {
				defer in.Close()
				_, _ = in.Write(told)
			}()
			said, err := c.Output()
			if err != nil {
				return fmt.Errorf("process %d: %w", i, err)
			}
			return json.Unmarshal(said, &all[i])
		})
	}
	return all, group.Wait()
}

// work is what such a process does.
func work(ctx context.Context, in io.Reader, out io.Writer) error {
	var j job
	if err := json.NewDecoder(in).Decode(&j); err != nil {
		return err
	}
	time.Sleep(time.Until(j.Start))
	ctx, cancel := context.WithDeadline(ctx, j.Start.Add(j.Duration))
	defer cancel()
	var d done
	var err error
	if j.Kind == "share" {
		d, err = contend(ctx, j)
	} else {
		d, err = saturate(ctx, j)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(d)
}

// contend makes calls, from many goroutines, that wait for their turn at one limiter.
func contend(ctx context.Context, j job) (done, error) {
	s, err := redisstore.Open("redis://"+j.Addr, j.Account)
	if err != nil {
		return done{}, err
	}
	defer s.Close()
	r := &recorder{Shared: s}
	l := ratelimit.New(ratelimit.Options{Shared: r})
	message, err := l.NewGate("message", ratelimit.Limit{Rate: 100, Burst: 100})
	if err != nil {
		return done{}, err
	}
	global, err := l.NewGate("global", shared)
	if err != nil {
		return done{}, err
	}
	// A context with a deadline would have calls refused that cannot meet it.
	waiting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	var failed atomic.Int64
	var calls errgroup.Group
	for range j.Callers {
		calls.Go(func() error {
			for {
				switch err := l.Acquire(waiting, 1, message, global); {
				case waiting.Err() != nil:
					return nil
				case errors.Is(err, store.ErrUnavailable):
					failed.Add(1)
					if !sleep(waiting, 10*time.Millisecond) {
						return nil
					}
				case err != nil:
					cancel()
					return err
				}
			}
		})
	}
	err = calls.Wait()
	r.done.Failed = int(failed.Load())
	return r.done, err
}

// recorder notes what a limiter asks.
type recorder struct {
	ratelimit.Shared
	mu   sync.Mutex
	done done
}

func (r *recorder) Take(ctx context.Context, charges []ratelimit.Charge) (bool, []ratelimit.Found, error) {
	asked := time.Now()
	admitted, found, err := r.Shared.Take(ctx, charges)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done.Asked++
	if admitted {
		r.done.Admitted = append(r.done.Admitted, admission{asked, time.Now()})
	}
	return admitted, found, err
}

// saturate decides as often as it can.
func saturate(ctx context.Context, j job) (d done, err error) {
	decide, end, err := decider(ctx, j.Kind, j.Addr, j.Account, nil)
	if err != nil {
		return d, err
	}
	defer end()
	var asked atomic.Int64
	var failed error
	var once sync.Once
	var callers sync.WaitGroup
	for i := range j.Callers {
		callers.Go(func() {
			for n := i; ; n += j.Callers {
				if err := decide(ctx, n); err != nil {
					if over(ctx) {
						return
					}
					once.Do(func() { failed = err })
					return
				}
				asked.Add(1)
			}
		})
	}
	callers.Wait()
	d.Asked = int(asked.Load())
	return d, failed
}

// over reports whether the time is up, which a connection may know before its context.
func over(ctx context.Context) bool {
	deadline, _ := ctx.Deadline()
	return ctx.Err() != nil || !time.Now().Before(deadline)
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
