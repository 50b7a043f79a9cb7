package main

import (
	"fmt"
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newLogger logs for people, to w.
func newLogger(w io.Writer, level string) (*zap.Logger, error) {
	at, err := zapcore.ParseLevel(level)
	if err != nil || at > zapcore.ErrorLevel {
		return nil, fmt.Errorf("--log-level: %q is no level: want debug, info, warn or error", level)
	}
	encoding := zap.NewDevelopmentEncoderConfig()
	encoding.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
	core := zapcore.NewCore(zapcore.NewConsoleEncoder(encoding), zapcore.Lock(zapcore.AddSync(w)), at)
	return zap.New(briefErrors{core}), nil
}

// briefErrors logs an error as its text. gotd's errors have a stack as well, which zap
// would add: a page for a connection that broke.
type briefErrors struct{ zapcore.Core }

func (c briefErrors) With(fields []zapcore.Field) zapcore.Core {
	return briefErrors{c.Core.With(brief(fields))}
}

func (c briefErrors) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return to.AddCore(e, c)
	}
	return to
}

func (c briefErrors) Write(e zapcore.Entry, fields []zapcore.Field) error {
	return c.Core.Write(e, brief(fields))
}

func brief(fields []zapcore.Field) []zapcore.Field {
	out := make([]zapcore.Field, len(fields))
	for i, f := range fields {
		if err, ok := f.Interface.(error); ok && f.Type == zapcore.ErrorType {
			f = zap.String(f.Key, err.Error())
		}
		out[i] = f
	}
	return out
}
