package quota_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/quota"
)

type member struct{ name string }

func (m *member) String() string { return "member " + m.name }

func TestKey(t *testing.T) {
	id := int64(-100123)
	type chat int32
	for want, parts := range map[string][]any{
		"global":              nil,
		"award:-100123:456":   {"award", id, 456},
		"award:7":             {"award", "7"},
		"award:8":             {"award", uint8(8)},
		"award:9":             {"award", chat(9)},
		"award:0":             {"award", 0},
		"award:global":        {"award", ""},
		"global:global":       {nil, []byte{}},
		"p:-100123":           {"p", &id},
		"nil:global:global":   {"nil", (*int64)(nil), (*member)(nil)},
		`award:\global`:       {"award", "global"},
		"globally":            {"globally"},
		`a\:b:c`:              {"a:b", "c"},
		`a:b\:c`:              {"a", "b:c"},
		`a\\:b`:               {`a\`, "b"},
		`a\\\:b`:              {`a\:b`},
		"member x:true:err":   {&member{"x"}, true, errors.New("err")},
		"1.5":                 {1.5},
		"\x00\xff: ":          {"\x00\xff", " "},
		`[1 2]`:               {[]int{1, 2}},
		`\\global`:            {`\global`},
		`\::\:\::\\:global:a`: {":", "::", `\`, "", "a"},
	} {
		require.Equal(t, want, quota.Key(parts...), "%q", parts)
	}
}

// parts splits a key of texts into its parts.
func parts(key string) []string {
	var all []string
	var part strings.Builder
	literal, escaped := false, false
	end := func() {
		text := part.String()
		if text == quota.Global && !escaped {
			text = ""
		}
		all = append(all, text)
		part.Reset()
		escaped = false
	}
	for _, b := range []byte(key) {
		switch {
		case literal:
			part.WriteByte(b)
			literal = false
		case b == '\\':
			literal, escaped = true, true
		case b == ':':
			end()
		default:
			part.WriteByte(b)
		}
	}
	end()
	return all
}

// Different parts make different keys, because a key can be split into its parts again.
func FuzzKey(f *testing.F) {
	f.Add("award", "a:b", `\`)
	f.Add("", "global", `\global`)
	f.Add(":", `\:`, "globa\\l")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		require.Equal(t, []string{a, b, c}, parts(quota.Key(a, b, c)))
	})
}

func BenchmarkKey(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		quota.Key("award", int64(-1001234567890), 123456789)
	}
}
