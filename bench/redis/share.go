package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/weirtg/weir/ratelimit"
)

// shared is what the processes share: the account's limit.
var shared = ratelimit.Limit{Rate: 30, Burst: 40}

func share(ctx context.Context, addr string, d time.Duration, out io.Writer) error {
	const n = 4
	if d == 0 {
		d = time.Minute
	}
	all, err := processes(ctx, n, job{
		Addr: addr, Account: fmt.Sprint("bench-", time.Now().UnixNano()), Kind: "share", Callers: 32,
		Start: time.Now().Add(time.Second), Duration: d,
	})
	if err != nil {
		return err
	}

	var admitted []admission
	asked, unanswered := 0, 0
	for _, p := range all {
		admitted = append(admitted, p.Admitted...)
		asked, unanswered = asked+p.Asked, unanswered+p.Failed
	}
	slices.SortFunc(admitted, func(a, b admission) int { return a.Answered.Compare(b.Answered) })
	possible := float64(shared.Burst) + shared.Rate*d.Seconds()
	share := float64(len(admitted)) / possible
	fmt.Fprintf(out, "%d processes, %v, %v\n", n, shared, d)
	fmt.Fprintf(out, "admitted         %d of %.0f possible (%.2f %%)\n", len(admitted), possible, 100*share)
	fmt.Fprintf(out, "asked            %.2f times an admission\n", float64(asked)/float64(len(admitted)))

	if unanswered > 0 {
		fmt.Fprintf(out, "unanswered       %d calls failed: the machine is too busy for this\n", unanswered)
	}

	// From the first to the last of any that came one after another, no more than
	// burst + rate × time. The longest that the server can have had for it counts.
	worst := -float64(shared.Burst)
	for i, first := range admitted {
		for j := i; j < len(admitted); j++ {
			took := admitted[j].Answered.Sub(first.Asked).Seconds()
			worst = max(worst, float64(j-i+1)-float64(shared.Burst)-shared.Rate*took)
		}
	}
	fmt.Fprintf(out, "above the limit  %.3f at most, of burst + rate × time\n", worst)

	fair := float64(len(admitted)) / n
	var failed error
	for i, p := range all {
		of := float64(len(p.Admitted)) / fair
		fmt.Fprintf(out, "process %d        %d, %.3f of its fair share\n", i+1, len(p.Admitted), of)
		if of < 0.5 || of > 2 {
			failed = errors.Join(failed, fmt.Errorf("process %d had %.2f of its fair share", i+1, of))
		}
	}
	if share < 0.99 || share > 1.01 {
		failed = errors.Join(failed, fmt.Errorf("%.2f %% of what is possible was admitted", 100*share))
	}
	if worst > 0 {
		failed = errors.Join(failed, fmt.Errorf("%.3f above burst + rate × time were admitted", worst))
	}
	return failed
}
