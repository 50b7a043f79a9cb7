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

	"github.com/weirtg/weir/localdc"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := bench(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "floods:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context, args []string, out, progress io.Writer) error {
	flags := flag.NewFlagSet("floods", flag.ContinueOnError)
	flags.SetOutput(progress)
	only := flags.String("contender", "weir,waiter,simplewaiter", "contenders, separated by commas")
	var w work
	flags.Float64Var(&w.limit, "limit", 20, "messages a second that the data centre takes")
	flags.IntVar(&w.burst, "burst", 10, "messages that it takes at once")
	flags.Float64Var(&w.configured, "configured", 60, "messages a second that weir is configured for")
	flags.DurationVar(&w.length, "for", 90*time.Second, "length of a run")
	flags.DurationVar(&w.settle, "settle", 30*time.Second, "beginning of a run that is told apart")
	asJSON := flags.Bool("json", false, "print JSON in place of a table")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if w.settle <= 0 || w.length <= w.settle {
		return fmt.Errorf("-for is %v and -settle %v: want more than 0, and a longer run than its beginning", w.length, w.settle)
	}
	if w.configured < 1 {
		return fmt.Errorf("-configured is %v: want 1 or more", w.configured)
	}
	w.limits = localdc.Limits{Account: localdc.Rate{PerSecond: w.limit, Burst: w.burst}}
	var results []result
	for name := range strings.SplitSeq(*only, ",") {
		i := slices.IndexFunc(contenders(), func(c contender) bool { return c.name == name })
		if i < 0 {
			return fmt.Errorf("-contender is %q: want weir, waiter or simplewaiter", name)
		}
		fmt.Fprintf(progress, "%s …\n", name)
		r, err := w.run(ctx, contenders()[i])
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		results = append(results, r)
	}
	if *asJSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(results)
	}
	fmt.Fprintf(out, "%v/s burst %d, which no client is told, for %v\n\n", w.limit, w.burst, w.length)
	fmt.Fprintf(out, "| contender | first %v | the rest | floods a minute, first %v | the rest | calls refused | into a known flood |\n|%s\n",
		w.settle, w.settle, strings.Repeat("---|", 7))
	for _, r := range results {
		fmt.Fprintf(out, "| %s | %.1f %% | %.1f %% | %.1f | %.1f | %d of %d | %d |\n", r.Contender,
			100*r.First.Share, 100*r.Rest.Share, r.First.FloodsAMinute, r.Rest.FloodsAMinute, r.Refused, r.Calls, r.Known)
	}
	return nil
}
