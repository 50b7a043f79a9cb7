package redisstore

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/store"
)

var policies = []store.Policy{store.FailClosed, store.FailOpen, store.FailLocal}

// startsNoLimiter wants a limiter on the store to be refused under every policy, with an
// error that says what is missing.
func startsNoLimiter(t *testing.T, s *Store, says ...string) {
	t.Helper()
	for _, policy := range policies {
		limiter, err := invoke.NewLimiter(invoke.Options{Store: s, OnFailure: policy, Logger: zap.NewNop()})
		require.True(t, limiter == nil, "a limiter was started under %v", policy)
		require.ErrorIs(t, err, store.ErrMisconfigured, policy)
		require.ErrorIs(t, err, store.ErrUnavailable, policy)
		for _, text := range says {
			require.ErrorContains(t, err, text)
		}
		require.NotContains(t, err.Error(), secret)
	}
}

func startsALimiter(t *testing.T, s *Store) {
	t.Helper()
	limiter, err := invoke.NewLimiter(invoke.Options{Store: s, Logger: zap.NewNop()})
	require.NoError(t, err)
	permit, err := limiter.TryAcquire(classify.Message)
	require.NoError(t, err)
	permit.Return()
	limiter.Close()
}

func TestLimiterDoesNotStartWithAWrongOrAMissingPassword(t *testing.T) {
	servers := map[string]string{}
	m := miniredis.RunT(t)
	m.RequireAuth("another")
	servers["miniredis"] = m.Addr()
	t.Run("server", func(t *testing.T) { passwords(t, startServer(t, "--requirepass", "another")) })
	t.Run("miniredis", func(t *testing.T) { passwords(t, m.Addr()) })
}

func passwords(t *testing.T, addr string) {
	startsNoLimiter(t, openURL(t, "redis://:"+secret+"@"+addr), "user name or the password", "redis://user:password@")
	startsNoLimiter(t, openURL(t, "redis://"+addr), "asks for a password", "redis://user:password@")
	startsALimiter(t, openURL(t, "redis://:another@"+addr))
}

// rights are those that the package's page names.
const rights = "on >" + secret + " resetkeys ~weir:{a}:* resetchannels &weir:{a}:news " +
	"+@connection +select +eval +evalsha +script|load +time +get +set +del +pexpire +pexpireat " +
	"+rpush +llen +lrange +lindex +lset +ltrim +hset +hgetall +hdel " +
	"+zadd +zrem +zrangebyscore +zrevrange +publish +subscribe +unsubscribe"

func TestLimiterDoesNotStartWithoutARightAndNamesIt(t *testing.T) {
	addr := startServer(t)
	root := admin(t, addr)
	user := func(change string) *Store {
		args := []any{"ACL", "SETUSER", "bot", "reset"}
		for _, rule := range strings.Fields(rights + " " + change) {
			args = append(args, rule)
		}
		require.NoError(t, root.Do(context.Background(), args...).Err())
		return openURL(t, "redis://bot:"+secret+"@"+addr)
	}
	all := user("")
	startsALimiter(t, all)
	allPass(t, all)
	startsNoLimiter(t, user("resetchannels"), "channel weir:{a}:news", "ACL SETUSER")
	startsNoLimiter(t, user("resetkeys ~other:*"), "keys weir:{a}:*", "ACL SETUSER")
	startsNoLimiter(t, user("resetkeys ~weir:{a}:check ~weir:{a}:facts"), "keys weir:{a}:*")
	for _, field := range strings.Fields(rights) {
		command, ok := strings.CutPrefix(field, "+")
		if !ok || command == "@connection" || command == "select" || command == "unsubscribe" {
			continue
		}
		s := user("-" + command)
		t.Log("without", command)
		if command == "script|load" {
			startsALimiter(t, s) // which sends them whole
			continue
		}
		startsNoLimiter(t, s, "command "+strings.ToUpper(command)+":", "+"+command)
	}
}

func TestWatchWithoutTheChannelReturnsAnError(t *testing.T) {
	addr := startServer(t)
	args := []any{"ACL", "SETUSER", "bot"}
	for _, rule := range strings.Fields(rights + " resetchannels") {
		args = append(args, rule)
	}
	require.NoError(t, admin(t, addr).Do(context.Background(), args...).Err())
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := openURL(t, "redis://bot:"+secret+"@"+addr).Watch(ctx, func(store.Fact) {})
	require.ErrorIs(t, err, store.ErrMisconfigured)
	require.ErrorContains(t, err, "channel weir:{a}:news")
}

func TestLimiterDoesNotStartOnAReplica(t *testing.T) {
	master := startServer(t)
	host, port, _ := strings.Cut(master, ":")
	replica := startServer(t, "--replicaof", host+" "+port)
	require.Eventually(t, func() bool {
		return strings.Contains(admin(t, replica).Info(context.Background(), "replication").Val(), "master_link_status:up")
	}, 30*time.Second, 100*time.Millisecond)
	startsNoLimiter(t, openURL(t, "redis://"+replica), "read-only replica", "connect to its master")
}

func TestLimiterDoesNotStartOnADatabaseThatThereIsNot(t *testing.T) {
	startsNoLimiter(t, openURL(t, "redis://"+startServer(t, "--databases", "2")+"/7"), "no database of that number", "databases")
}

func TestLimiterDoesNotStartOnOneNodeOfACluster(t *testing.T) {
	one, two := startServer(t, "--cluster-enabled", "yes"), startServer(t, "--cluster-enabled", "yes")
	ctx := context.Background()
	a, b := admin(t, one), admin(t, two)
	slot := int(a.ClusterKeySlot(ctx, "weir:{a}:clock").Val())
	require.NoError(t, b.ClusterAddSlotsRange(ctx, slot, slot).Err())
	if slot > 0 {
		require.NoError(t, a.ClusterAddSlotsRange(ctx, 0, slot-1).Err())
	}
	require.NoError(t, a.ClusterAddSlotsRange(ctx, slot+1, 16383).Err())
	host, port, _ := strings.Cut(two, ":")
	require.NoError(t, a.ClusterMeet(ctx, host, port).Err())
	require.Eventually(t, func() bool {
		return strings.Contains(a.ClusterInfo(ctx).Val(), "cluster_state:ok") && strings.Contains(a.ClusterInfo(ctx).Val(), "cluster_known_nodes:2")
	}, 30*time.Second, 100*time.Millisecond)
	startsNoLimiter(t, openURL(t, "redis://"+one), "part of a cluster", "ClusterClient")
	startsNoLimiter(t, openURL(t, "redis://"+one+"/1"), "part of a cluster")
}

// What may pass is no mistake of whoever has configured it.
func TestErrorsThatMayPassAreNoMistakeOfTheConfiguration(t *testing.T) {
	m := miniredis.RunT(t)
	s := openURL(t, "redis://"+m.Addr())
	for _, answer := range []string{
		"OOM command not allowed when used memory > 'maxmemory'.", "LOADING Redis is loading the dataset in memory",
		"BUSY Redis is busy running a script.", "MASTERDOWN Link with MASTER is down", "CLUSTERDOWN The cluster is down",
		"ERR max number of clients reached", "TRYAGAIN Multiple keys request during rehashing of slot",
	} {
		m.SetError(answer)
		err := s.Check(context.Background())
		require.ErrorIs(t, err, store.ErrUnavailable, answer)
		require.NotErrorIs(t, err, store.ErrMisconfigured, answer)
		limiter, err := invoke.NewLimiter(invoke.Options{Store: s, OnFailure: store.FailLocal, Logger: zap.NewNop()})
		require.NoError(t, err, answer)
		limiter.Close()
		m.SetError("")
	}
}

// It may pass too, so a limiter starts where the policy lets it, but Check must not call
// the server ready.
func TestServerWithoutMemoryIsNotReady(t *testing.T) {
	s := openURL(t, "redis://"+startServer(t, "--maxmemory", "1"))
	err := s.Check(t.Context())
	require.ErrorContains(t, err, "OOM")
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.NotErrorIs(t, err, store.ErrMisconfigured)
}

func TestSettingsInTheURLThatCannotBeUsedAreNamed(t *testing.T) {
	for query, field := range map[string]string{
		"timeout=soon": "timeout", "timeout=-1s": "timeout", "timeout=1h": "timeout", "timeout=0": "timeout",
		"connect_timeout=": "connect_timeout", "connect_timeout=1ns": "connect_timeout", "connect_timeout=2h": "connect_timeout",
		"pool_size=many": "pool_size", "dial_timeout=x&pool_size=3": "dial_timeout", "pasword=" + secret: "pasword",
		"db=x": "db",
	} {
		_, err := Open("redis://:"+secret+"@localhost:1/?"+query, "a")
		var argument *store.ArgumentError
		require.ErrorAs(t, err, &argument, query)
		require.Equal(t, field, argument.Field, query)
		require.NotContains(t, err.Error(), secret)
	}
	s := openURL(t, "redis://localhost:1/?timeout=2s&connect_timeout=20s&pool_size=3")
	require.Equal(t, "2s 20s", fmt.Sprint(s.timeout, " ", s.connect))
}
