package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatIsNoNameIsNoMember(t *testing.T) {
	for text, name := range map[string]string{
		"/award": "", "/award ": "", "/award @": "", "/award " + strings.Repeat("x", 4000): "",
		"/award @Bob": "bob", "/award\nbob": "bob", "/award \t bob the builder": "bob", "/award bob:\\": `bob:\`,
	} {
		require.Equal(t, name, member(text), text)
	}
}
