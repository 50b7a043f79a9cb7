package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// serve serves metrics and health on addr until end is called, which lets answers under
// way finish, for a second. It uses a registry of its own, so that nothing that a library
// registers elsewhere is served.
func serve(addr string, metrics prometheus.Collector, healthy func() bool) (_ net.Addr, end func() error, _ error) {
	registry := prometheus.NewRegistry()
	if err := registry.Register(metrics); err != nil {
		return nil, nil, fmt.Errorf("metrics: %w", err)
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, nil, fmt.Errorf("serve metrics: %w", err)
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
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	return listener.Addr(), func() error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		err := server.Shutdown(ctx)
		if err != nil {
			err = server.Close()
		}
		if e := <-served; !errors.Is(e, http.ErrServerClosed) {
			err = errors.Join(err, e)
		}
		return err
	}, nil
}
