package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// server serves metrics and health beside the bot.
type server struct {
	http   *http.Server
	addr   net.Addr
	served chan error
}

// serve listens on addr and serves until close. The registry is the program's own:
// nothing that a library registers elsewhere gets in.
func serve(addr string, metrics prometheus.Collector, healthy func() bool) (*server, error) {
	registry := prometheus.NewRegistry()
	if err := registry.Register(metrics); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("serve metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if !healthy() {
			http.Error(w, "not connected or not logged in", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok\n") // a prober that hung up needs no answer
	})
	s := &server{
		http:   &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second},
		addr:   listener.Addr(),
		served: make(chan error, 1),
	}
	go func() { s.served <- s.http.Serve(listener) }()
	return s, nil
}

// checkAddr refuses an address without a host: to listen on every network is for
// people to ask for.
func checkAddr(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	switch {
	case err != nil:
		return fmt.Errorf("--http: %q is not host:port, with a port up to 65535: write for example 127.0.0.1:9090", addr)
	case host == "":
		return fmt.Errorf("--http: %q names no host: write 127.0.0.1:%s for this machine alone", addr, port)
	}
	return nil
}

// close lets answers under way finish, for a second, and returns when nothing is
// served any more.
func (s *server) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = s.http.Close()
	}
	if e := <-s.served; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}
