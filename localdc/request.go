package localdc

import (
	"fmt"
	"strings"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/mt"
	"github.com/gotd/td/tg"
)

// schema knows the functions of the layer.
type schema struct {
	create map[uint32]func() bin.Object
	names  map[uint32]string
	ids    map[string]uint32
}

func newSchema() *schema {
	names := tg.TypesMap()
	for id, name := range names {
		name, _, _ = strings.Cut(name, "#")
		names[id] = name
	}
	return &schema{create: tg.TypesConstructorMap(), names: names, ids: tg.NamesMap()}
}

// function tells whether name is the TL name of a function. The layer's map
// mixes functions and constructors; only a function's Go type ends in Request.
func (s *schema) function(name string) bool {
	id, ok := s.ids[name]
	if !ok {
		return false
	}
	create, ok := s.create[id]
	return ok && strings.HasSuffix(fmt.Sprintf("%T", create()), "Request")
}

// request is one call out of its wrappers.
type request struct {
	id        uint32
	name      string
	noUpdates bool // it came inside invokeWithoutUpdates
	body      bin.Object
}

// malformed is what the record calls a request that could not be decoded.
const malformed = "(malformed)"

// hole stands where a wrapper holds its query: it leaves the query in the buffer.
type hole struct{}

func (hole) Decode(*bin.Buffer) error { return nil }
func (hole) Encode(*bin.Buffer) error { return nil }

// maxWrappers bounds the nesting of wrappers; real clients nest three.
const maxWrappers = 16

// decode reads a call. A service message that needs no answer gives a nil
// request; an unknown id gives a request without a body.
func (s *schema) decode(b *bin.Buffer) (*request, error) {
	r := &request{}
	for range maxWrappers {
		id, err := b.PeekID()
		if err != nil {
			return nil, fmt.Errorf("peek id: %w", err)
		}
		wrapper := wrapperOf(id)
		if wrapper == nil {
			return s.decodeInner(r, id, b)
		}
		if id == tg.InvokeWithoutUpdatesRequestTypeID {
			r.noUpdates = true
		}
		if err := wrapper.Decode(b); err != nil {
			return nil, fmt.Errorf("decode wrapper: %w", err)
		}
	}
	return nil, fmt.Errorf("more than %d wrappers", maxWrappers)
}

func (s *schema) decodeInner(r *request, id uint32, b *bin.Buffer) (*request, error) {
	r.id = id
	switch id {
	case mt.MsgsAckTypeID, mt.HTTPWaitRequestTypeID, mt.MsgsStateReqTypeID, mt.MsgResendReqTypeID:
		return nil, nil
	}
	create, ok := s.create[id]
	if !ok {
		r.name = fmt.Sprintf("%#x", id)
		return r, nil
	}
	r.name = s.names[id]
	body := create()
	if err := body.Decode(b); err != nil {
		return nil, fmt.Errorf("decode %s: %w", r.name, err)
	}
	r.body = body
	return r, nil
}

// wrapperOf returns what decodes a wrapper up to its query, nil for what is
// none.
func wrapperOf(id uint32) bin.Decoder {
	switch id {
	case tg.InvokeWithLayerRequestTypeID:
		return &tg.InvokeWithLayerRequest{Query: hole{}}
	case tg.InitConnectionRequestTypeID:
		return &tg.InitConnectionRequest{Query: hole{}}
	case tg.InvokeWithoutUpdatesRequestTypeID:
		return &tg.InvokeWithoutUpdatesRequest{Query: hole{}}
	case tg.InvokeWithTakeoutRequestTypeID:
		return &tg.InvokeWithTakeoutRequest{Query: hole{}}
	case tg.InvokeWithMessagesRangeRequestTypeID:
		return &tg.InvokeWithMessagesRangeRequest{Query: hole{}}
	case tg.InvokeWithBusinessConnectionRequestTypeID:
		return &tg.InvokeWithBusinessConnectionRequest{Query: hole{}}
	case tg.InvokeAfterMsgRequestTypeID:
		return &tg.InvokeAfterMsgRequest{Query: hole{}}
	case tg.InvokeAfterMsgsRequestTypeID:
		return &tg.InvokeAfterMsgsRequest{Query: hole{}}
	case tg.InvokeWithApnsSecretRequestTypeID:
		return &tg.InvokeWithApnsSecretRequest{Query: hole{}}
	case tg.InvokeWithGooglePlayIntegrityRequestTypeID:
		return &tg.InvokeWithGooglePlayIntegrityRequest{Query: hole{}}
	case tg.InvokeWithReCaptchaRequestTypeID:
		return &tg.InvokeWithReCaptchaRequest{Query: hole{}}
	default:
		return nil
	}
}
