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
	dial  *dialer

	named    bool // what logs is a connection:
	conn, dc int
}

// mainConn is the number that gotd gives to the client's main connection. Those of pools have
// others.
const mainConn = 0

// Messages of gotd's log.
const (
	retryingInit = "Retrying connection initialization" // in telegram/internal/manager
	selfFailed   = "Got error on self"                  // in telegram
)

// Log implements log.Logger.
func (t *tap) Log(ctx context.Context, level log.Level, msg string, attrs ...log.Attr) {
	switch msg {
	case retryingInit:
		if err := errorOf(attrs); err != nil && t.named {
			t.dial.flooded(ctx, t.dc, t.conn == mainConn, err)
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
			next.conn, next.named = int(a.Value.Int64()), true
		case a.Key == "dc_id":
			next.dc = int(a.Value.Int64())
		}
	}
	if next.named && next.conn == mainConn && next.dc != 0 {
		t.dial.home.Store(int64(next.dc))
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
