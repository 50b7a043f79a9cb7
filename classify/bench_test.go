package classify

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/tg"
)

func benchmarkRequests() map[string]bin.Encoder {
	send := &tg.MessagesSendMessageRequest{Peer: &tg.InputPeerChannel{ChannelID: 1234567890}}
	return map[string]bin.Encoder{
		"peer":    send,
		"channel": &tg.ChannelsEditBannedRequest{Channel: &tg.InputChannel{ChannelID: 1234567890}},
		"nopeer":  &tg.HelpGetConfigRequest{},
		"part":    &tg.UploadSaveFilePartRequest{FilePart: 7},
		"wrapped": &tg.InvokeWithLayerRequest{Query: &tg.InitConnectionRequest{Query: &tg.InvokeWithoutUpdatesRequest{Query: send}}},
	}
}

// BenchmarkCall measures the whole judgement of a request: name, category,
// peer, part.
func BenchmarkCall(b *testing.B) {
	c, err := New(Options{})
	require.NoError(b, err)
	for name, req := range benchmarkRequests() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Call(req)
			}
		})
	}
}

// BenchmarkCallOfEveryFunction takes the functions of the layer in turn, so
// that neither the processor nor the runtime's caches of type switches are warm:
// the cost of a function that a program hardly ever calls.
func BenchmarkCallOfEveryFunction(b *testing.B) {
	c, err := New(Options{})
	require.NoError(b, err)
	var reqs []bin.Encoder
	for _, req := range functions() {
		reqs = append(reqs, req)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		c.Call(reqs[i%len(reqs)])
	}
}

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_, _ = New(Options{})
	}
}

func TestCallAllocatesNothing(t *testing.T) {
	c, err := New(Options{Func: func(bin.Encoder) (Category, bool) { return 0, false }})
	require.NoError(t, err)
	for name, req := range benchmarkRequests() {
		require.Zero(t, testing.AllocsPerRun(1000, func() { c.Call(req) }), name)
	}
}
