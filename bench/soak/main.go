package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

func main() {
	s := soak{people: 20, groups: 3}
	flag.DurationVar(&s.trouble, "time", time.Minute, "how long there is trouble")
	flag.DurationVar(&s.calm, "calm", 3*time.Minute, "how long the bot may take to catch up afterwards")
	flag.Uint64Var(&s.seed, "seed", 1, "of what happens when")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r, err := s.run(ctx, func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) })
	_ = json.NewEncoder(os.Stdout).Encode(r)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
