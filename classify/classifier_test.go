package classify

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/mt"
	"github.com/gotd/td/tg"
)

// strange is a request of nobody's layer.
type strange struct{ name string }

func (strange) Encode(*bin.Buffer) error { return nil }
func (s strange) TypeName() string       { return s.name }

// mute is a request that tells nothing of itself.
type mute struct{}

func (mute) Encode(*bin.Buffer) error { return nil }

func TestRequestsOutsideTheLayer(t *testing.T) {
	c, err := New(Options{Methods: map[string]Category{"messages.sendMessage": Bulk}})
	require.NoError(t, err)
	require.Equal(t, Call{Method: "messages.sendHologramVideo", Category: Media}, c.Call(strange{"messages.sendHologramVideo"}))
	require.Equal(t, Call{Method: "ping", Category: Bulk}, c.Call(&mt.PingRequest{}))
	require.Equal(t, Call{Method: "ping_delay_disconnect", Category: Bulk}, c.Call(&mt.PingDelayDisconnectRequest{}))
	require.Equal(t, Call{Method: "messages.sendMessage", Category: Bulk}, c.Call(strange{"messages.sendMessage"}),
		"another layer's function of the same name")
	require.Equal(t, Call{Category: Message}, c.Call(mute{}))
	require.Equal(t, Call{Category: Message}, c.Call(nil))
}

// own is how a program adds something to one of gotd's requests.
type own struct{ *tg.MessagesSendMediaRequest }

func TestEmbeddedRequest(t *testing.T) {
	c, err := New(Options{})
	require.NoError(t, err)
	req := own{&tg.MessagesSendMediaRequest{Peer: &tg.InputPeerUser{UserID: 5}}}
	require.Equal(t, Call{Method: "messages.sendMedia", Category: Media, Peer: 5}, c.Call(req))
}

func TestPart(t *testing.T) {
	c, err := New(Options{})
	require.NoError(t, err)
	for _, tt := range []struct {
		req  bin.Encoder
		part bool
	}{
		{&tg.UploadSaveFilePartRequest{FilePart: 0}, false},
		{&tg.UploadSaveFilePartRequest{FilePart: 1}, true},
		{&tg.UploadSaveBigFilePartRequest{FilePart: 0, FileTotalParts: 4000}, false},
		{&tg.UploadSaveBigFilePartRequest{FilePart: 3999}, true},
		{&tg.UploadGetFileRequest{Offset: 0}, false},
		{&tg.UploadGetFileRequest{Offset: 1 << 40}, true},
		{&tg.UploadGetCDNFileRequest{Offset: 0}, true}, // upload.getFile has paid
		{&tg.UploadReuploadCDNFileRequest{}, true},
		{&tg.UploadGetWebFileRequest{Offset: 0}, false},
		{&tg.UploadGetWebFileRequest{Offset: 4096}, true},
		{(*tg.UploadGetFileRequest)(nil), false},
	} {
		call := c.Call(tt.req)
		require.Equal(t, tt.part, call.Part, "%v", tt.req)
		require.Equal(t, Media, call.Category)
	}
	// Offsets of other things are not parts of a file.
	require.False(t, c.Call(&tg.PhotosGetUserPhotosRequest{Offset: 10}).Part)
	require.False(t, c.Call(&tg.UploadGetFileHashesRequest{Offset: 0}).Part)
}

func TestMethods(t *testing.T) {
	methods := map[string]Category{"messages.getHistory": Bulk, "messages.sendMessage": Admin}
	c, err := New(Options{Methods: methods})
	require.NoError(t, err)
	methods["messages.search"] = Bulk // too late

	require.Equal(t, Bulk, c.Call(&tg.MessagesGetHistoryRequest{}).Category)
	require.Equal(t, Bulk, c.Name("messages.getHistory"))
	require.Equal(t, Admin, c.Call(&tg.InvokeWithLayerRequest{Query: &tg.MessagesSendMessageRequest{}}).Category)
	require.Equal(t, Query, c.Name("messages.search"))

	other, err := New(Options{})
	require.NoError(t, err)
	require.Equal(t, Query, other.Name("messages.getHistory"), "an override is its own classifier's")
}

func TestMethodsThatAreWrong(t *testing.T) {
	_, err := New(Options{Methods: map[string]Category{
		"message.sendMessage": Message,
		"getHistry":           Query,
		"messages.chats":      Query,
		"invokeWithLayer":     Query,
		"messages.search":     Global,
		"messages.getHistory": 0,
		"messages.sendMedia":  77,
		"channels.editTitle":  Admin, // right
	}})
	require.EqualError(t, err, `override of "getHistry": no such TL function, did you mean "messages.getHistory"?
override of "invokeWithLayer": it wraps another function, name that one
override of "message.sendMessage": no such TL function, did you mean "messages.sendMessage"?
override of "messages.chats": no such TL function, did you mean "messages.getChats"?
override of "messages.getHistory": category none can't be that of a call, want one of [message media query admin bulk account]
override of "messages.search": category global can't be that of a call, want one of [message media query admin bulk account]
override of "messages.sendMedia": category Category(77) can't be that of a call, want one of [message media query admin bulk account]`)
}

func TestFunc(t *testing.T) {
	inner := &tg.MessagesEditMessageRequest{Media: &tg.InputMediaUploadedPhoto{}}
	var asked []bin.Encoder
	c, err := New(Options{
		Methods: map[string]Category{"messages.editMessage": Bulk},
		Func: func(req bin.Encoder) (Category, bool) {
			asked = append(asked, req)
			edit, ok := req.(*tg.MessagesEditMessageRequest)
			return Media, ok && edit.Media != nil
		},
	})
	require.NoError(t, err)
	require.Equal(t, Media, c.Call(&tg.InvokeWithoutUpdatesRequest{Query: inner}).Category, "Func goes before Methods")
	require.Equal(t, []bin.Encoder{inner}, asked, "asked once, with the innermost function")
	require.Equal(t, Bulk, c.Call(&tg.MessagesEditMessageRequest{}).Category, "no opinion: Methods")
	require.Equal(t, Query, c.Call(&tg.HelpGetConfigRequest{}).Category, "no opinion: the rules")

	c.Call(nil)
	require.NotContains(t, asked, nil)
}

func TestFuncWithACategoryThatNoCallHas(t *testing.T) {
	for _, wrong := range []Category{0, Global, 77} {
		c, err := New(Options{Func: func(bin.Encoder) (Category, bool) { return wrong, true }})
		require.NoError(t, err)
		require.Equal(t, Query, c.Call(&tg.HelpGetConfigRequest{}).Category)
	}
}

func TestFuncThatPanics(t *testing.T) {
	c, err := New(Options{Func: func(bin.Encoder) (Category, bool) { panic("mine") }})
	require.NoError(t, err)
	require.PanicsWithValue(t, "mine", func() { c.Call(&tg.HelpGetConfigRequest{}) })
}

func TestNearest(t *testing.T) {
	for method, want := range map[string]string{
		"messages.sendmessage":   "messages.sendMessage",
		"sendMessage":            "messages.sendMessage",
		"channel.editTitle":      "channels.editTitle",
		"upload.saveFilePart":    "upload.saveFilePart",
		"messages.forwardMesage": "messages.forwardMessages",
	} {
		require.Equal(t, want, Nearest(method), method)
	}
	require.True(t, Known(Nearest("")))
}
