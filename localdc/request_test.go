package localdc

import (
	"testing"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/tg"
	"github.com/stretchr/testify/require"
)

// Whatever a client sends is decoded or refused, never a panic.
func FuzzDecode(f *testing.F) {
	s := newSchema()
	for _, o := range []bin.Encoder{
		&tg.InvokeWithLayerRequest{Query: &tg.HelpGetConfigRequest{}},
		&tg.InvokeAfterMsgsRequest{MsgIDs: []int64{1}, Query: &tg.HelpGetConfigRequest{}},
		&tg.MessagesSendMessageRequest{Peer: &tg.InputPeerSelf{}, Message: "x"},
	} {
		raw, err := encode(o)
		require.NoError(f, err)
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := s.decode(&bin.Buffer{Buf: data})
		if err == nil && r != nil && r.name == "" {
			t.Fatal("a request without a name")
		}
	})
}

func TestFunctionsAreToldFromConstructors(t *testing.T) {
	s := newSchema()
	for _, name := range []string{"messages.sendMessage", "help.getConfig", "upload.getFile", "initConnection"} {
		require.True(t, s.function(name), name)
	}
	for _, name := range []string{"message", "updates.state", "messages", "", "messages.sendmessage"} {
		require.False(t, s.function(name), name)
	}
}
