package localdc

import (
	"net"
	"testing"

	"github.com/gotd/td/tgtest"
	"github.com/stretchr/testify/require"
)

// gotd starts a new session with each connection; another client may not.
func TestSessionThatMovesToAnotherConnectionStartsAfresh(t *testing.T) {
	cloud, err := New(Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, cloud.Close()) }()
	dc := cloud.dcs[0]
	dial := func() *conn {
		a, b := net.Pipe()
		t.Cleanup(func() { require.NoError(t, b.Close()) })
		c := newConn(dc, a)
		require.True(t, cloud.attach(c))
		return c
	}
	arrive := func(on *conn) (*session, error) {
		cloud.mu.Lock()
		defer cloud.mu.Unlock()
		dc.turn.Lock()
		defer dc.turn.Unlock()
		dc.current = on
		return dc.session(tgtest.Session{ID: 7})
	}

	first, second := dial(), dial()
	s, err := arrive(first)
	require.NoError(t, err)
	require.True(t, s.fresh(1))
	require.False(t, s.fresh(1), "a message that is sent again is served once")
	_, err = arrive(second)
	require.ErrorContains(t, err, "session moved")
	_, err = arrive(first)
	require.ErrorContains(t, err, "connection was cut")
	s, err = arrive(second)
	require.NoError(t, err)
	require.True(t, s.fresh(1))
	for i := range int64(seenLimit) {
		require.True(t, s.fresh(i+2))
	}
	require.Len(t, s.seen, seenLimit)
	require.True(t, s.fresh(1), "long ago")
}
