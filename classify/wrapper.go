package classify

import (
	"strings"

	"github.com/gotd/td/bin"
)

// maxDepth is how many wrappers are opened. Telegram's clients nest about
// four; a request that nests more than this wraps itself.
const maxDepth = 64

// Unwrap returns the innermost function of a request: what is left when
// invokeWithLayer, initConnection, invokeWithoutUpdates and everything else
// that carries a whole query is opened, to any depth. A request that wraps
// nothing is returned as it is, and so is a wrapper around nil. Of a request
// that wraps itself, some wrapper is returned.
func Unwrap(req bin.Encoder) bin.Encoder {
	for range maxDepth {
		// Only gotd's wrappers have a query that is an object; elsewhere a
		// query is a text.
		wrapper, ok := req.(interface{ GetQuery() bin.Object })
		if !ok {
			break
		}
		query := wrapper.GetQuery()
		if query == nil {
			break
		}
		req = query
	}
	return req
}

// isWrapper reports whether the function of the layer with this name wraps
// another: those, and only those, have no namespace.
func isWrapper(name string) bool {
	return !strings.Contains(name, ".")
}
