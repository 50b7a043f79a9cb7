package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A short life; the command has longer ones.
func TestABotLosesNothingOnABadLine(t *testing.T) {
	s := soak{people: 10, groups: 1, trouble: 20 * time.Second, calm: 3 * time.Minute, seed: 7}
	r, err := s.run(t.Context(), t.Logf)
	t.Logf("%+v", r)
	require.NoError(t, err)
	require.NotEmpty(t, r.Trouble)
}
