package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "redis:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("no measurement is named: want share or decision")
	}
	flags := flag.NewFlagSet("redis "+args[0], flag.ContinueOnError)
	addr := flags.String("addr", os.Getenv("REDIS_ADDR"), "host:port of a Redis server")
	duration := flags.Duration("duration", 0, "of each measurement (default 1m for share, 3s for decision)")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if *addr == "" {
		return fmt.Errorf("there is no server: want -addr or REDIS_ADDR, such as 127.0.0.1:6379")
	}
	switch args[0] {
	case "share":
		return share(ctx, *addr, *duration, out)
	case "decision":
		return decision(ctx, *addr, *duration, out)
	case "worker": // one of their processes
		return work(ctx, in, out)
	default:
		return fmt.Errorf("measurement is %q: want share or decision", args[0])
	}
}
