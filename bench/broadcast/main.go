package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := bench(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "broadcast:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context, args []string, out, progress io.Writer) error {
	flags := flag.NewFlagSet("broadcast", flag.ContinueOnError)
	flags.SetOutput(progress)
	wanted := flags.String("workload", "", "workloads, separated by commas (default all): even, few, groups, media, interactive")
	against := flags.String("contender", "", "contenders, separated by commas (default all): weir, ratelimit, waiter, waiter+ratelimit, simplewaiter, nothing")
	scale := flags.Int("scale", 1, "make broadcasts so many times shorter, 1 to 10")
	workers := flags.Int("workers", 32, "goroutines that send, 1 or more")
	timeout := flags.Duration("timeout", time.Minute, "bound on each run")
	asJSON := flags.Bool("json", false, "print JSON in place of a table")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *scale < 1 || *scale > 10 {
		return fmt.Errorf("-scale is %d: want 1 to 10", *scale)
	}
	if *workers < 1 {
		return fmt.Errorf("-workers is %d: want 1 or more", *workers)
	}
	loads, err := choose("workload", *wanted, workloads(*scale), func(w workload) string { return w.name })
	if err != nil {
		return err
	}
	rivals, err := choose("contender", *against, contenders(), func(c contender) string { return c.name })
	if err != nil {
		return err
	}

	var results []result
	for _, w := range loads {
		if !*asJSON {
			fmt.Fprintf(out, "\n%s: %s; the least possible is %.2f s\n\n", w.name, w.about, w.least().Seconds())
			header(out, w)
		}
		for _, c := range rivals {
			fmt.Fprintf(progress, "%s: %s …\n", w.name, c.name)
			r, err := run(ctx, w, c, *workers, *timeout)
			if err != nil {
				return err
			}
			if !*asJSON {
				row(out, r)
			}
			results = append(results, r)
		}
	}
	if *asJSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(results)
	}
	return nil
}

// choose picks the named ones, all of them if none is named.
func choose[T any](flag, names string, all []T, name func(T) string) ([]T, error) {
	if names == "" {
		return all, nil
	}
	var chosen []T
	for n := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(t T) bool { return name(t) == n })
		if i < 0 {
			var known []string
			for _, t := range all {
				known = append(known, name(t))
			}
			return nil, fmt.Errorf("-%s is %q: want %s", flag, n, strings.Join(known, ", "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

func header(out io.Writer, w workload) {
	columns := []string{"contender", "time", "over the least", "sent", "lost", "floods"}
	if w.interactive > 0 {
		columns = append(columns, "user's p50", "user's p99", "user answered")
	}
	fmt.Fprintf(out, "| %s |\n|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
}

func row(out io.Writer, r result) {
	took, over := fmt.Sprintf("%.2f s", r.Seconds), fmt.Sprintf("%.3f", r.Seconds/r.Least)
	switch {
	case !r.Done:
		took, over = "not done in "+took, "–"
	case r.Failed > 0: // what was lost took no time
		over = "–"
	}
	cells := []string{r.Contender, took, over, fmt.Sprintf("%d of %d", r.Sent, r.Messages), fmt.Sprint(r.Failed), fmt.Sprint(r.Floods)}
	if i := r.Interactive; i != nil {
		p50, p99 := "–", "–"
		if i.Answered > 0 {
			p50, p99 = fmt.Sprintf("%.0f ms", i.P50), fmt.Sprintf("%.0f ms", i.P99)
		}
		cells = append(cells, p50, p99, fmt.Sprintf("%d of %d", i.Answered, i.Calls))
	}
	fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | "))
}
