package classify

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/tg"
)

var update = flag.Bool("update", false, "write testdata/methods.golden anew")

const goldenFile = "testdata/methods.golden"

// functions returns an empty request for every function of gotd's layer. gotd
// calls the request of a function after its TL name, with "Request" behind it;
// the type of anything else is just called after its TL name.
func functions() map[string]bin.Object {
	out := make(map[string]bin.Object)
	for _, construct := range tg.TypesConstructorMap() {
		obj := construct()
		name := obj.(interface{ TypeName() string }).TypeName()
		want := strings.NewReplacer(".", "", "_", "").Replace(name) + "Request"
		if strings.EqualFold(reflect.TypeOf(obj).Elem().Name(), want) {
			out[name] = obj
		}
	}
	return out
}

// The golden file says what each function of the layer is. After a change of
// the rules or of gotd, run "go test ./classify -run Golden -update" and read
// the diff. The package embeds the file, so other tests see it on the next run.
func TestGolden(t *testing.T) {
	rules := newRules()
	got := make(map[string]string)
	for name := range functions() {
		got[name] = rules.category(name).String()
	}
	if *update {
		var b strings.Builder
		for _, name := range slices.Sorted(maps.Keys(got)) {
			fmt.Fprintf(&b, "%s\t%s\n", name, got[name])
		}
		require.NoError(t, os.WriteFile(goldenFile, []byte(b.String()), 0o644))
	}

	file, err := os.ReadFile(goldenFile)
	require.NoError(t, err)
	want := make(map[string]string)
	var order []string
	for line := range strings.Lines(string(file)) {
		name, category, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		want[name] = category
		order = append(order, name)
	}
	require.True(t, slices.IsSorted(order), "the file is not sorted by method")

	all := maps.Clone(got)
	maps.Copy(all, want)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if want[name] != got[name] {
			t.Errorf("%s: the file has %q, the rules give %q", name, want[name], got[name])
		}
	}
	if t.Failed() {
		t.Log(`if that is right, run "go test ./classify -run Golden -update" and read the diff`)
	}
}

// The list of functions is checked against another one of gotd's: its client
// has a method for each that is not a wrapper, and two more.
func TestFunctionsAreThoseOfTheClient(t *testing.T) {
	want := make(map[string]bool)
	for m := range reflect.TypeFor[*tg.Client]().Methods() {
		want[strings.ToLower(m.Name)] = true
	}
	delete(want, "invoker")
	delete(want, "invokejson")
	for name := range functions() {
		method := strings.ToLower(strings.ReplaceAll(name, ".", ""))
		if !isWrapper(name) && !want[method] {
			t.Errorf("%s is no method of the client", name)
		}
		delete(want, method)
	}
	require.Empty(t, want, "methods of the client that are no function")
}

func TestNamesAreKnown(t *testing.T) {
	names := Names()
	require.Len(t, names, len(functions()))
	require.True(t, slices.IsSorted(names))
	c, err := New(Options{})
	require.NoError(t, err)
	for name, req := range functions() {
		require.True(t, Known(name), name)
		call := c.Call(req)
		require.Equal(t, name, call.Method)
		require.Equal(t, c.Name(name), call.Category, name)
	}
	for _, name := range []string{"", "messages.chats", "message", "messages.sendmessage", "urlAuthResultRequest", "communityPeerRequest"} {
		require.False(t, Known(name), name)
	}
}
