package client

import (
	"context"
	"errors"

	"github.com/gotd/log"
)

// tap is the logger that gotd gets. gotd repeats the first request of a connection
// (help.getConfig in initConnection) below its middlewares, and tells nobody of the floods that
// it gets but its log, so that is where they are read.
type tap struct {
	log.Logger
	muted bool // drop what package client says better
	told  func(ctx context.Context, conn, dc int, err error)

	conn, dc int // of the connection that logs
}

// Messages of gotd's log.
const (
	retryingInit = "Retrying connection initialization" // in telegram/internal/manager
	selfFailed   = "Got error on self"                  // in telegram
)

// Log implements log.Logger.
func (t *tap) Log(ctx context.Context, level log.Level, msg string, attrs ...log.Attr) {
	switch msg {
	case retryingInit:
		if err := errorOf(attrs); err != nil && t.told != nil {
			t.told(ctx, t.conn, t.dc, err)
		}
	case selfFailed:
		// The connection ended, for a reason that is logged where it is known.
		if err := errorOf(attrs); t.muted && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
			return
		}
	}
	t.Logger.Log(ctx, level, msg, attrs...)
}

func errorOf(attrs []log.Attr) error {
	for _, a := range attrs {
		if a.Value.Kind() == log.KindError {
			return a.Value.Error()
		}
	}
	return nil
}

// With implements log.Wither.
func (t *tap) With(attrs ...log.Attr) log.Logger {
	next := *t
	next.Logger = log.With(t.Logger, attrs...)
	for _, a := range attrs {
		switch {
		case a.Value.Kind() != log.KindInt64:
		case a.Key == "conn_id":
			next.conn = int(a.Value.Int64())
		case a.Key == "dc_id":
			next.dc = int(a.Value.Int64())
		}
	}
	return &next
}

// Named implements log.Namer.
func (t *tap) Named(name string) log.Logger {
	next := *t
	next.Logger = log.Named(t.Logger, name)
	return &next
}

// WithCallerSkip implements log.CallerSkipper.
func (t *tap) WithCallerSkip(skip int) log.Logger {
	next := *t
	next.Logger = log.AddCallerSkip(t.Logger, skip)
	return &next
}
