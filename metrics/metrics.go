package metrics

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gotd/td/tgerr"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/ratelimit"
	"github.com/weirtg/weir/store"
)

// Metrics counts the calls of one client and shows the state of its limiter. Make
// one with [New]. It is safe for concurrent use and never blocks a call.
type Metrics struct {
	limiter atomic.Pointer[invoke.Limiter]

	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	wait     *prometheus.HistogramVec
	floods   *prometheus.CounterVec
	givenUp  *prometheus.CounterVec
	lowered  *prometheus.CounterVec
	outages  prometheus.Counter
	store    *prometheus.GaugeVec // of one, that is not there before the limiter tells of its store

	tokens     *prometheus.Desc
	rate       *prometheus.Desc
	burst      *prometheus.Desc
	pending    *prometheus.Desc
	waiters    *prometheus.Desc
	oldest     *prometheus.Desc
	congestion *prometheus.Desc
	standing   *prometheus.Desc
	learned    *prometheus.Desc
	stopped    *prometheus.Desc
	keyedLive  *prometheus.Desc
	keyedPend  *prometheus.Desc
	keyedWait  *prometheus.Desc
	keyedOld   *prometheus.Desc
}

var (
	_ invoke.Observer      = (*Metrics)(nil)
	_ prometheus.Collector = (*Metrics)(nil)
)

// New returns metrics for the client of that name. Two with the same name cannot be
// registered in one registry.
func New(client string) *Metrics {
	labels := prometheus.Labels{"client": client}
	counter := func(name, help string, names ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels}, names)
	}
	histogram := func(name, help string, buckets []float64, names ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets, ConstLabels: labels}, names)
	}
	desc := func(name, help string, names ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, names, labels)
	}
	return &Metrics{
		requests: counter("weir_requests_total", "Requests that were sent.", "method", "category", "result"),
		duration: histogram("weir_request_duration_seconds", "Time from sending a request to its answer.",
			prometheus.DefBuckets, "category"),
		// From a wait that nobody notices to one that a user would complain about.
		wait: histogram("weir_wait_seconds", "Time that a call waited before it was sent.",
			[]float64{0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}, "bucket"),
		floods:  counter("weir_floods_total", "Floods that Telegram answered with.", "method", "kind", "scope"),
		givenUp: counter("weir_given_up_total", "Calls that were not sent, or not sent again.", "category", "reason"),

		lowered: counter("weir_limits_lowered_total", "Floods that lowered a limit.", "category"),
		outages: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_store_outages_total", Help: "Times that the store became unavailable.", ConstLabels: labels}),
		store: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "weir_store_available", Help: "0 while the store is lost, 1 when it is back; not shown before it was lost once.", ConstLabels: labels}, nil),

		tokens:     desc("weir_bucket_tokens", "Tokens that could be taken now.", "bucket"),
		rate:       desc("weir_bucket_rate", "Limit in tokens a second.", "bucket"),
		burst:      desc("weir_bucket_burst", "Limit in tokens at once.", "bucket"),
		pending:    desc("weir_bucket_pending", "Tokens of calls that are not answered yet.", "bucket"),
		waiters:    desc("weir_bucket_waiters", "Calls that wait for tokens.", "bucket"),
		oldest:     desc("weir_bucket_oldest_wait_seconds", "How long the first of the waiting calls has waited.", "bucket"),
		congestion: desc("weir_congestion_ratio", "Congestion of the worst bucket, from 0 (idle) to 1 (saturated)."),
		keyedLive:  desc("weir_keyed_gates", "Gates of chats, and of the program's own (client.Options.Gates), that are in use.", "gate"),
		keyedPend:  desc("weir_keyed_pending", "Tokens of calls through such gates that are not answered yet.", "gate"),
		keyedWait:  desc("weir_keyed_waiters", "Calls that wait at such gates.", "gate"),
		keyedOld:   desc("weir_keyed_oldest_wait_seconds", "How long the first of those calls has waited.", "gate"),
		standing:   desc("weir_standing_floods", "Floods that are known to stand.", "scope"),
		learned:    desc("weir_learned_limits", "Limits that floods have lowered.", "of"),
		stopped:    desc("weir_stopped_kinds", "Kinds of calls that are not sent, as the server refused too many.", "kind"),
	}
}

// Watch shows the state of a limiter from now on, in place of any other. Before it,
// only what [Metrics.Observe] counts is shown.
func (m *Metrics) Watch(l *invoke.Limiter) { m.limiter.Store(l) }

// Observe implements invoke.Observer.
func (m *Metrics) Observe(e invoke.Event) {
	category := e.Category.String()
	switch e.Kind {
	case invoke.Admitted:
		bucket := e.Gate
		if bucket == "" {
			bucket = category
		}
		m.wait.WithLabelValues(bucket).Observe(e.Wait.Seconds())
	case invoke.Sent:
		m.requests.WithLabelValues(e.Method, category, result(e.Err)).Inc()
		m.duration.WithLabelValues(category).Observe(e.Took.Seconds())
	case invoke.Flooded:
		m.floods.WithLabelValues(e.Method, e.Notice.Kind.String(), e.Flood.Scope.String()).Inc()
	case invoke.GivenUp:
		m.givenUp.WithLabelValues(category, reason(e.Err)).Inc()
	case invoke.Learned:
		if e.Chat != 0 {
			category = "chat"
		}
		m.lowered.WithLabelValues(category).Inc()
	case invoke.StoreLost:
		m.outages.Inc()
		m.store.WithLabelValues().Set(0)
	case invoke.StoreBack:
		m.store.WithLabelValues().Set(1)
	}
}

func result(err error) string {
	if err == nil {
		return "ok"
	}
	if notice, ok := flood.FromError(err); ok && notice.Waitable() {
		return "flood"
	}
	if _, ok := tgerr.As(err); ok {
		return "rpc_error"
	}
	return reason(err)
}

func reason(err error) string {
	switch {
	case errors.Is(err, flood.ErrGivenUp):
		return "flood"
	case errors.Is(err, flood.ErrPermanent):
		return "permanent"
	case errors.Is(err, store.ErrUnavailable):
		return "store"
	case errors.Is(err, invoke.ErrClosed):
		return "closed"
	case errors.Is(err, ratelimit.ErrRejected), errors.Is(err, ratelimit.ErrDeferred), errors.Is(err, ratelimit.ErrImpossible), errors.Is(err, ratelimit.ErrQueueFull):
		return "refused"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "cancelled"
	default:
		return "error"
	}
}

func (m *Metrics) vecs() []prometheus.Collector {
	return []prometheus.Collector{m.requests, m.duration, m.wait, m.floods, m.givenUp, m.lowered, m.outages, m.store}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, v := range m.vecs() {
		v.Describe(ch)
	}
	for _, d := range []*prometheus.Desc{m.tokens, m.rate, m.burst, m.pending, m.waiters, m.oldest, m.congestion, m.standing, m.learned, m.stopped, m.keyedLive, m.keyedPend, m.keyedWait, m.keyedOld} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	for _, v := range m.vecs() {
		v.Collect(ch)
	}
	limiter := m.limiter.Load()
	if limiter == nil {
		return
	}
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	stats, worst := limiter.Stats(), 0.0
	for _, category := range classify.Categories() {
		s, bucket := stats[category], category.String()
		gauge(m.tokens, s.Tokens, bucket)
		gauge(m.rate, s.Limit.Rate, bucket)
		gauge(m.burst, float64(s.Limit.Burst), bucket)
		gauge(m.pending, float64(s.Pending), bucket)
		gauge(m.waiters, float64(s.Waiters), bucket)
		gauge(m.oldest, s.OldestWait.Seconds(), bucket)
		worst = max(worst, s.Congestion())
	}
	gauge(m.congestion, worst)
	for name, s := range limiter.GateStats() {
		gauge(m.keyedLive, float64(s.Live), name)
		gauge(m.keyedPend, float64(s.Pending), name)
		gauge(m.keyedWait, float64(s.Waiters), name)
		gauge(m.keyedOld, s.OldestWait.Seconds(), name)
	}
	standing := map[flood.Scope]int{flood.Chat: 0, flood.Method: 0, flood.Account: 0}
	for _, record := range limiter.Floods() {
		standing[record.Scope]++
	}
	for scope, n := range standing {
		gauge(m.standing, float64(n), scope.String())
	}
	learned := map[string]int{"category": 0, "chat": 0}
	for _, rate := range limiter.Learned() {
		if rate.Chat != 0 {
			learned["chat"]++
		} else {
			learned["category"]++
		}
	}
	for of, n := range learned {
		gauge(m.learned, float64(n), of)
	}
	stopped := map[flood.RefusalKind]int{flood.SpamLimited: 0, flood.AccountFrozen: 0, flood.AccountBanned: 0, flood.AuthGone: 0}
	for _, refusal := range limiter.Refusals() {
		if !refusal.Tripped.IsZero() {
			stopped[refusal.Kind]++
		}
	}
	for kind, n := range stopped {
		gauge(m.stopped, float64(n), kind.String())
	}
}
