package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/gotd/td/telegram"

	"github.com/weirtg/weir/client"
	"github.com/weirtg/weir/config"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/metrics"
)

type runCommand struct {
	Config   given `name:"config" placeholder:"FILE" help:"Read the account, limits and more from a file in YAML. Without an account, the demonstration runs under its limits."`
	HTTP     given `name:"http" placeholder:"HOST:PORT" help:"Serve /metrics for Prometheus and /healthz, for example on 127.0.0.1:9090, this machine alone."`
	JSON     bool  `name:"json" help:"Print the report as one JSON object; all else goes to standard error."`
	LogLevel given `placeholder:"LEVEL" help:"Log debug, info, warn or error to standard error. Unless it is given here or in the file, warn for the demonstration and info for an account."`
}

// report is what a run has to tell in the end. It is also what --json prints.
type report interface{ text(io.Writer) }

// Run runs the bot where its account is.
func (r runCommand) Run(ctx context.Context, p process) error {
	cfg, err := config.Load(string(r.Config), p.getenv)
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
	var result report
	if cfg.HasAccount() {
		result, err = account{settings: s, cfg: cfg}.run(ctx)
	} else {
		result, err = newDemo(s, cfg).run(ctx)
	}
	if result == nil {
		return err
	}
	return errors.Join(r.print(p, result), err)
}

func (r runCommand) print(p process, result report) error {
	if r.JSON {
		return json.NewEncoder(p.stdout).Encode(result)
	}
	var text bytes.Buffer
	result.text(&text)
	_, err := text.WriteTo(p.stdout)
	return err // a report that nobody gets is a failure
}

// settings are what the demonstration and an account have in common.
type settings struct {
	limits  invoke.Options
	client  client.Options
	metrics *metrics.Metrics
	tally   *tally
	http    string    // where to serve metrics, "" for nowhere
	out     io.Writer // for people
}

// settings puts flags and configuration together. The error names all that is wrong
// with them.
func (r runCommand) settings(cfg config.Config, p process) (settings, error) {
	s := settings{metrics: metrics.New("examplebot"), tally: &tally{}, http: cfg.HTTP, out: p.stdout}
	if r.JSON {
		s.out = p.stderr
	}
	var errs []error
	if r.HTTP != "" {
		s.http = string(r.HTTP)
		errs = append(errs, checkAddr(s.http))
	}
	level := cmp.Or(string(r.LogLevel), cfg.LogLevel)
	switch {
	case level != "":
	case cfg.HasAccount():
		level = "info"
	default:
		level = "warn"
	}
	logger, err := newLogger(p.stderr, level)
	errs = append(errs, err)
	limits, err := rateLimits(cfg.RateLimits)
	errs = append(errs, err)
	chats, err := chatLimits(cfg.Chats)
	errs = append(errs, err)
	observer := invoke.Observers(s.metrics, s.tally)
	s.limits = invoke.Options{
		RateLimits: limits,
		Chats:      chats,
		MaxWaiters: cfg.MaxWaiters,
		Observer:   observer,
	}
	if cfg.Learning != nil && !*cfg.Learning {
		s.limits.Learning = invoke.Off
	}
	s.client = client.Options{
		Options: invoke.Options{
			SleepThreshold: sleepThreshold(cfg.SleepThreshold),
			Observer:       observer,
			Logger:         logger,
		},
	}
	return s, errors.Join(errs...)
}

// start makes the bot on what it keeps and serves its metrics, before anything is sent.
// stop ends both, and closes what is kept.
func (s settings) start(appID int, appHash string, t telegram.Options, k keep) (*bot, func() error, error) {
	var ends []func() error // in reverse
	stop := func() (err error) {
		for _, end := range slices.Backward(ends) {
			err = errors.Join(err, end())
		}
		return err
	}
	ends = append(ends, k.close, k.awards.Close)
	limiter, err := invoke.NewLimiter(k.limits)
	if err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	ends = append(ends, func() error { limiter.Close(); return nil })
	opts := s.client
	opts.Telegram, opts.Limiter, opts.Keyed = t, limiter, k.awards
	b, err := newBot(appID, appHash, opts)
	if err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	s.metrics.Watch(limiter)
	if s.http == "" {
		return b, stop, nil
	}
	srv, err := serve(s.http, s.metrics, b.online)
	if err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	ends = append(ends, srv.close)
	fmt.Fprintf(s.out, "Metrics on http://%v/metrics\n", srv.addr)
	return b, stop, nil
}
