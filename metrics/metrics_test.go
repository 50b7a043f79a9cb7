package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/telegram"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"

	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/metrics"
)

// answers makes an invoker that gives one answer after the other.
func answers(errs ...error) telegram.InvokeFunc {
	return func(context.Context, bin.Encoder, bin.Decoder) error {
		err := errs[0]
		errs = errs[1:]
		return err
	}
}

func send(chat int64) *tg.MessagesSendMessageRequest {
	return &tg.MessagesSendMessageRequest{Peer: &tg.InputPeerUser{UserID: chat}, Message: "secret text"}
}

func newWatched(t testing.TB, client string, errs ...error) (*metrics.Metrics, telegram.InvokeFunc) {
	t.Helper()
	m := metrics.New(client)
	choke, err := invoke.New(invoke.Options{Observer: m, SleepThreshold: flood.Never})
	require.NoError(t, err)
	m.Watch(choke.Limiter())
	return m, choke.Handle(answers(errs...))
}

func TestEveryOutcomeIsCounted(t *testing.T) {
	m, call := newWatched(t, "main",
		nil,
		tgerr.New(400, "PEER_ID_INVALID"),
		errors.New("connection cut"), // no RPC error: it must not panic
		context.Canceled,
		tgerr.New(420, "FLOOD_WAIT_60"),
	)
	for range 5 {
		_ = call(t.Context(), send(4242), nil)
	}
	_ = call(t.Context(), send(4242), nil) // known by now: not sent
	_ = call(invoke.WithCost(t.Context(), 1000), send(1), nil)

	require.NoError(t, testutil.CollectAndCompare(m, strings.NewReader(`
# HELP weir_requests_total Requests that were sent.
# TYPE weir_requests_total counter
weir_requests_total{category="message",client="main",method="messages.sendMessage",result="cancelled"} 1
weir_requests_total{category="message",client="main",method="messages.sendMessage",result="error"} 1
weir_requests_total{category="message",client="main",method="messages.sendMessage",result="flood"} 1
weir_requests_total{category="message",client="main",method="messages.sendMessage",result="ok"} 1
weir_requests_total{category="message",client="main",method="messages.sendMessage",result="rpc_error"} 1
# HELP weir_floods_total Floods that Telegram answered with.
# TYPE weir_floods_total counter
weir_floods_total{client="main",kind="flood_wait",method="messages.sendMessage",scope="chat"} 1
# HELP weir_given_up_total Calls that were not sent, or not sent again.
# TYPE weir_given_up_total counter
weir_given_up_total{category="message",client="main",reason="flood"} 2
weir_given_up_total{category="message",client="main",reason="refused"} 1
# HELP weir_standing_floods Floods that are known to stand.
# TYPE weir_standing_floods gauge
weir_standing_floods{client="main",scope="account"} 0
weir_standing_floods{client="main",scope="chat"} 1
weir_standing_floods{client="main",scope="method"} 0
# HELP weir_bucket_burst Limit in tokens at once.
# TYPE weir_bucket_burst gauge
weir_bucket_burst{bucket="account",client="main"} 15
weir_bucket_burst{bucket="admin",client="main"} 20
weir_bucket_burst{bucket="bulk",client="main"} 5
weir_bucket_burst{bucket="global",client="main"} 40
weir_bucket_burst{bucket="media",client="main"} 10
weir_bucket_burst{bucket="message",client="main"} 30
weir_bucket_burst{bucket="query",client="main"} 50
`), "weir_requests_total", "weir_floods_total", "weir_given_up_total", "weir_standing_floods", "weir_bucket_burst"))
}

func TestSeriesKeepPrometheusConventions(t *testing.T) {
	m, call := newWatched(t, "main", nil, tgerr.New(420, "FLOOD_WAIT_60"))
	_ = call(t.Context(), send(4242), nil)
	_ = call(t.Context(), send(4242), nil)
	problems, err := testutil.CollectAndLint(m)
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestNoChatAndNoTextInALabel(t *testing.T) {
	m, call := newWatched(t, "main", nil, tgerr.New(420, "FLOOD_WAIT_60"))
	_ = call(t.Context(), send(4242), nil)
	_ = call(t.Context(), send(4242), nil)
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(m))
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		for _, metric := range family.GetMetric() { // not the values, which may hold any number
			for _, label := range metric.GetLabel() {
				require.NotContains(t, label.String(), "4242")
				require.NotContains(t, label.String(), "secret")
			}
		}
	}
}

func TestTwoClientsInOneRegistry(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	for _, name := range []string{"main", "backup"} {
		m, call := newWatched(t, name, nil)
		require.NoError(t, registry.Register(m))
		require.NoError(t, call(t.Context(), send(1), nil))
	}
	n, err := testutil.GatherAndCount(registry, "weir_requests_total")
	require.NoError(t, err)
	require.Equal(t, 2, n)
}

func TestBeforeWatchOnlyCountsAreShown(t *testing.T) {
	m := metrics.New("main")
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(m))
	_, err := registry.Gather()
	require.NoError(t, err)
}

func Example() {
	m := metrics.New("main")
	choke := invoke.Must(invoke.Options{Observer: m})
	m.Watch(choke.Limiter())

	registry := prometheus.NewRegistry()
	registry.MustRegister(m)

	call := choke.Handle(answers(nil, nil))
	for range 2 {
		if err := call(context.Background(), &tg.HelpGetConfigRequest{}, &tg.Config{}); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(testutil.ToFloat64(counter(registry, "weir_requests_total")))
	// Output: 2
}

// counter picks the one series of that name out of a registry.
func counter(g prometheus.Gatherer, name string) prometheus.Collector {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name})
	families, err := g.Gather()
	if err != nil {
		return c
	}
	for _, f := range families {
		if f.GetName() == name {
			c.Add(f.GetMetric()[0].GetCounter().GetValue())
		}
	}
	return c
}

func TestWhatTheLimiterTellsOfItselfIsShown(t *testing.T) {
	m := metrics.New("main")
	limiter, err := invoke.NewLimiter(invoke.Options{Observer: m, Refusals: invoke.Refusals{Limit: 1}})
	require.NoError(t, err)
	defer limiter.Close()
	choke, err := invoke.New(invoke.Options{Limiter: limiter, Observer: m, SleepThreshold: flood.Never})
	require.NoError(t, err)
	m.Watch(limiter)
	call := choke.Handle(answers(tgerr.New(420, "FLOOD_WAIT_5"), tgerr.New(400, "PEER_FLOOD")))
	_ = call(t.Context(), &tg.ContactsResolveUsernameRequest{Username: "a"}, nil)
	_ = call(t.Context(), send(1), nil)
	_ = call(t.Context(), send(2), nil)
	require.Zero(t, testutil.CollectAndCount(m, "weir_store_available"), "nobody has said so")
	m.Observe(invoke.Event{Kind: invoke.StoreLost, Err: errors.New("lost")})

	require.NoError(t, testutil.CollectAndCompare(m, strings.NewReader(`
# HELP weir_given_up_total Calls that were not sent, or not sent again.
# TYPE weir_given_up_total counter
weir_given_up_total{category="message",client="main",reason="permanent"} 1
weir_given_up_total{category="query",client="main",reason="flood"} 1
# HELP weir_learned_limits Limits that floods have lowered.
# TYPE weir_learned_limits gauge
weir_learned_limits{client="main",of="category"} 1
weir_learned_limits{client="main",of="chat"} 0
# HELP weir_limits_lowered_total Floods that lowered a limit.
# TYPE weir_limits_lowered_total counter
weir_limits_lowered_total{category="query",client="main"} 1
# HELP weir_stopped_kinds Kinds of calls that are not sent, as the server refused too many.
# TYPE weir_stopped_kinds gauge
weir_stopped_kinds{client="main",kind="account_banned"} 0
weir_stopped_kinds{client="main",kind="account_frozen"} 0
weir_stopped_kinds{client="main",kind="auth_gone"} 0
weir_stopped_kinds{client="main",kind="spam_limited"} 1
# HELP weir_store_available 0 while the store is lost, 1 when it is back; not shown before it was lost once.
# TYPE weir_store_available gauge
weir_store_available{client="main"} 0
# HELP weir_store_outages_total Times that the store became unavailable.
# TYPE weir_store_outages_total counter
weir_store_outages_total{client="main"} 1
`), "weir_given_up_total", "weir_learned_limits", "weir_limits_lowered_total", "weir_stopped_kinds", "weir_store_available", "weir_store_outages_total"))
	m.Observe(invoke.Event{Kind: invoke.StoreBack})
	require.NoError(t, testutil.CollectAndCompare(m, strings.NewReader(`
# HELP weir_store_available 0 while the store is lost, 1 when it is back; not shown before it was lost once.
# TYPE weir_store_available gauge
weir_store_available{client="main"} 1
`), "weir_store_available"))
}
