package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/gotd/td/telegram"

	"github.com/weirtg/weir/config"
	"github.com/weirtg/weir/invoke"
)

type runCommand struct {
	Config   given `name:"config" placeholder:"FILE" help:"Read the account, limits and more from a file in YAML. Without an account, the demonstration runs under its limits."`
	HTTP     given `name:"http" placeholder:"HOST:PORT" help:"Serve /metrics for Prometheus and /healthz, for example on 127.0.0.1:9090, this machine alone."`
	JSON     bool  `name:"json" help:"Print the report as one JSON object; all else goes to standard error."`
	LogLevel given `placeholder:"LEVEL" help:"Log debug, info, warn or error to standard error. Unless it is given here or in the file, warn for the demonstration and info for an account."`
}

// report is what a run prints at its end, as text or as JSON.
type report interface{ text(io.Writer) }

// Run runs the bot, or the demonstration if there is no account.
func (r runCommand) Run(ctx context.Context, p process) error {
	cfg, err := config.Load(string(r.Config), p.getenv, config.Flags{HTTP: string(r.HTTP), LogLevel: string(r.LogLevel)})
	if err != nil {
		return fmt.Errorf("configuration:\n%w", err)
	}
	for _, warning := range cfg.Warnings {
		fmt.Fprintln(p.stderr, "examplebot: warning:", warning)
	}
	s, err := r.settings(cfg, p)
	if err != nil {
		return usageError{err}
	}
	run := newDemo(s, cfg).run
	if cfg.HasAccount() {
		run = account{settings: s, cfg: cfg}.run
	}
	result, err := run(ctx)
	if result == nil {
		return err
	}
	return errors.Join(r.print(p, result), err)
}

// print returns the error of writing: a report that nobody gets is a failure.
func (r runCommand) print(p process, result report) error {
	if r.JSON {
		return json.NewEncoder(p.stdout).Encode(result)
	}
	var text bytes.Buffer
	result.text(&text)
	_, err := text.WriteTo(p.stdout)
	return err
}

// start opens the store, makes the bot and serves its metrics, before anything is sent.
// The function that it returns ends all of them.
func (s settings) start(ctx context.Context, cfg config.Config, t telegram.Options) (_ *bot, _ func() error, err error) {
	var ends []func() error // in reverse
	stop := func() (err error) {
		for _, end := range slices.Backward(ends) {
			err = errors.Join(err, end())
		}
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, stop())
		}
	}()
	k, err := s.open(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	ends = append(ends, k.close, k.awards.Close)
	limiter, err := invoke.NewLimiter(k.limits)
	if err != nil {
		return nil, nil, err
	}
	ends = append(ends, func() error { limiter.Close(); return nil })
	opts := s.client
	opts.Telegram, opts.Limiter = t, limiter
	b, err := newBot(cfg.AppID, cfg.AppHash.Reveal(), opts, k.awards)
	if err != nil {
		return nil, nil, err
	}
	s.metrics.Watch(limiter)
	if s.http != "" {
		addr, end, err := serve(s.http, s.metrics, b.online)
		if err != nil {
			return nil, nil, err
		}
		ends = append(ends, end)
		fmt.Fprintf(s.out, "Metrics on http://%v/metrics\n", addr)
	}
	return b, stop, nil
}
