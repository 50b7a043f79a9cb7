package invoke

import (
	"os"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/weirtg/weir/store"
)

// standardError is the logger of who has given none.
func standardError() *zap.Logger {
	encoder := zapcore.NewConsoleEncoder(zap.NewProductionEncoderConfig())
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(os.Stderr), zapcore.InfoLevel)).Named("weir")
}

// logStore says that the store is lost, and what happens without it, or that it is back.
func (l *Limiter) logStore(e Event) {
	held, ok := l.logged.first(e.Kind.String(), time.Minute)
	if !ok {
		return
	}
	var fields []zap.Field
	if held > 0 {
		fields = append(fields, zap.Int("times_more", held))
	}
	if e.Kind == StoreBack {
		l.log.Info("The store is back", fields...)
		return
	}
	l.log.Warn("The store is away: "+l.withoutStore(), append(fields, zap.Error(e.Err))...)
}

// withoutStore says what happens while the store is away.
func (l *Limiter) withoutStore() string {
	switch {
	case !l.shares:
		return "new data is written when it is back"
	case l.opts.OnFailure == store.FailOpen:
		return "calls go out without limits until it is back"
	case l.opts.OnFailure == store.FailLocal:
		return "this process keeps to the limits by itself until it is back"
	default:
		return "calls are refused until it is back"
	}
}
