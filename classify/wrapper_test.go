package classify

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/tg"
)

// wrappers has each of the layer's wrappers, around what it is given.
func wrappers() map[string]func(bin.Object) bin.Object {
	return map[string]func(bin.Object) bin.Object{
		"invokeWithLayer":               func(q bin.Object) bin.Object { return &tg.InvokeWithLayerRequest{Layer: tg.Layer, Query: q} },
		"initConnection":                func(q bin.Object) bin.Object { return &tg.InitConnectionRequest{Query: q} },
		"invokeWithoutUpdates":          func(q bin.Object) bin.Object { return &tg.InvokeWithoutUpdatesRequest{Query: q} },
		"invokeWithTakeout":             func(q bin.Object) bin.Object { return &tg.InvokeWithTakeoutRequest{Query: q} },
		"invokeWithMessagesRange":       func(q bin.Object) bin.Object { return &tg.InvokeWithMessagesRangeRequest{Query: q} },
		"invokeWithBusinessConnection":  func(q bin.Object) bin.Object { return &tg.InvokeWithBusinessConnectionRequest{Query: q} },
		"invokeAfterMsg":                func(q bin.Object) bin.Object { return &tg.InvokeAfterMsgRequest{Query: q} },
		"invokeAfterMsgs":               func(q bin.Object) bin.Object { return &tg.InvokeAfterMsgsRequest{Query: q} },
		"invokeWithApnsSecret":          func(q bin.Object) bin.Object { return &tg.InvokeWithApnsSecretRequest{Query: q} },
		"invokeWithGooglePlayIntegrity": func(q bin.Object) bin.Object { return &tg.InvokeWithGooglePlayIntegrityRequest{Query: q} },
		"invokeWithReCaptcha":           func(q bin.Object) bin.Object { return &tg.InvokeWithReCaptchaRequest{Query: q} },
	}
}

func TestWrappersAreAllOfTheLayer(t *testing.T) {
	have := wrappers()
	for _, name := range Names() {
		if isWrapper(name) {
			require.Contains(t, have, name)
			delete(have, name)
		}
	}
	require.Empty(t, have)
}

// Every wrapper as the outermost, the middle and the innermost of three.
func TestCallThroughWrappers(t *testing.T) {
	c, err := New(Options{})
	require.NoError(t, err)
	calls := map[string]struct {
		req  bin.Object
		want Call
	}{
		"pin": {
			&tg.MessagesUpdatePinnedMessageRequest{Peer: &tg.InputPeerChannel{ChannelID: 5}},
			Call{Method: "messages.updatePinnedMessage", Category: Admin, Peer: -1000000000005},
		},
		"part": {
			&tg.UploadSaveFilePartRequest{FilePart: 3},
			Call{Method: "upload.saveFilePart", Category: Media, Part: true},
		},
	}
	for name, call := range calls {
		for outer, wrapOuter := range wrappers() {
			for middle, wrapMiddle := range wrappers() {
				for inner, wrapInner := range wrappers() {
					req := wrapOuter(wrapMiddle(wrapInner(call.req)))
					require.Equal(t, call.want, c.Call(req), "%s in %s in %s in %s", name, inner, middle, outer)
					require.Same(t, call.req, Unwrap(req))
					require.Equal(t, call.want.Peer, PeerOf(req))
				}
			}
		}
	}
}

func TestWrapperAroundNothing(t *testing.T) {
	c, err := New(Options{})
	require.NoError(t, err)
	for name, wrap := range wrappers() {
		empty := wrap(nil)
		require.Equal(t, Call{Method: name, Category: Query}, c.Call(empty))
		require.Equal(t, Call{Method: name, Category: Query}, c.Call(wrappers()["initConnection"](empty)))
	}
	require.Equal(t, "invokeWithLayer", c.Call((*tg.InvokeWithLayerRequest)(nil)).Method)
	require.Nil(t, Unwrap(nil))
}

func TestWrapperAroundItself(t *testing.T) {
	c, err := New(Options{})
	require.NoError(t, err)
	one := &tg.InvokeWithLayerRequest{}
	two := &tg.InvokeWithoutUpdatesRequest{Query: one}
	one.Query = two
	require.True(t, ofCall(c.Call(one).Category))
	require.Zero(t, PeerOf(two))
}
