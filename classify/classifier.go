package classify

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/tg"
)

// Options says where a program disagrees with the rules. The zero value
// changes nothing.
type Options struct {
	// Methods gives functions another category, by the TL name of the innermost
	// function, such as "messages.sendMessage". The names are those of [Names]
	// without the wrappers, the categories any but Global. The map is copied.
	Methods map[string]Category

	// Func, if not nil, is asked first, for every request, with the innermost
	// function, which it must not change or keep. It returns a category and
	// true, or false to leave the request to Methods and the rules. So does a
	// category that no call can have: Global, the zero value, or none of the
	// constants.
	//
	// It runs on the goroutine that makes the call and has to be quick and safe
	// for concurrent use. A panic in it goes through to that goroutine: it is
	// the program's own, and hiding it would only send the call under a
	// category that nobody chose.
	Func func(req bin.Encoder) (Category, bool)
}

// Call is what there is to know about one call before it is sent. Its fields
// stand in this order because it then is small enough to travel in registers.
type Call struct {
	// Method is the TL name of the innermost function, such as
	// "messages.sendMessage", with no #id. It is "" for a request that does not
	// tell it.
	Method string
	// Peer is the chat that the call acts on, 0 if there is none.
	Peer Peer
	// Category is the kind of work, never Global and never zero.
	Category Category
	// Part says that the call moves a later part of a file, that is, with
	// file_part or offset above 0, or one that comes from a CDN. A transfer is one
	// piece of work, and its first part stands for it.
	Part bool
}

// unnamed is the category of a request that tells neither a TL id nor a TL
// name. It is not the most generous of the categories, because nobody knows
// what such a request does, nor so narrow that it would stall.
const unnamed = Message

// Classifier judges requests. It does not change after [New] and is safe for
// concurrent use.
type Classifier struct {
	layer *layer
	byID  *index
	ask   func(bin.Encoder) (Category, bool)
}

// New returns a classifier. It fails when opts.Methods names what is not a
// function, names a wrapper, or gives a category that a call can't have; the
// error tells all of them at once, and for an unknown name the one that is most
// like it.
//
// The first call in a process takes some milliseconds to index the layer;
// later ones take next to nothing.
func New(opts Options) (*Classifier, error) {
	l := loadLayer()
	c := &Classifier{layer: l, byID: l.byID, ask: opts.Func}
	if len(opts.Methods) == 0 {
		return c, nil
	}
	own := *l.byID
	c.byID = &own
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(opts.Methods)) {
		category := opts.Methods[name]
		id, known := l.idByName[name]
		switch {
		case !known:
			errs = append(errs, fmt.Errorf("override of %q: no such TL function, did you mean %q?", name, Nearest(name)))
			continue
		case l.byID.get(id).wrapper:
			errs = append(errs, fmt.Errorf("override of %q: it wraps another function, name that one", name))
			continue
		case !ofCall(category):
			errs = append(errs, fmt.Errorf("override of %q: category %v can't be that of a call, want one of %v",
				name, category, Categories()[:Account]))
			continue
		}
		c.byID.get(id).category = category
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return c, nil
}

// ofCall reports whether a call can have the category c.
func ofCall(c Category) bool {
	return c.Valid() && c != Global
}

// Call judges a request by its innermost function. It does not block, change
// the request or keep it. The category is that of Options.Func, else of
// Options.Methods, else of the rules; for a request that gotd's layer does not
// have, the rules go by its TypeName. A request that is nil, or has no name, is
// a Message with no method.
func (c *Classifier) Call(req bin.Encoder) Call {
	e := c.known(req)
	if e == nil || e.wrapper {
		req = Unwrap(req)
		if e = c.known(req); e == nil {
			e = c.stranger(req)
		}
	}
	call := Call{Method: e.name, Category: e.category, Peer: peerOf(req)}
	if e.transfer {
		call.Part = laterPart(req)
	}
	if c.ask != nil && req != nil {
		if category, ok := c.ask(req); ok && ofCall(category) {
			call.Category = category
		}
	}
	return call
}

// Name returns the category of a function by its TL name: that of
// Options.Methods, else of the rules, which answer for any name, be there such
// a function or not ([Known] tells). Options.Func has no say, for there is no
// request.
func (c *Classifier) Name(method string) Category {
	if id, ok := c.layer.idByName[method]; ok {
		return c.byID.get(id).category
	}
	return c.layer.rules.category(method)
}

// known returns the entry of a request of gotd's layer, nil for any other.
func (c *Classifier) known(req bin.Encoder) *entry {
	r, ok := req.(interface{ TypeID() uint32 })
	if !ok {
		return nil
	}
	return c.byID.get(r.TypeID())
}

// stranger returns an entry for a request of another layer, or the program's
// own.
func (c *Classifier) stranger(req bin.Encoder) *entry {
	r, ok := req.(interface{ TypeName() string })
	if !ok {
		return &entry{category: unnamed}
	}
	e := c.layer.entry(r.TypeName())
	e.category = c.Name(e.name)
	return &e
}

// laterPart reports whether req moves a part of a file that is not its first. What comes
// from a CDN never is: the file was asked for elsewhere, which paid for it.
func laterPart(req bin.Encoder) bool {
	switch r := req.(type) {
	case *tg.UploadGetCDNFileRequest, *tg.UploadReuploadCDNFileRequest:
		return true
	case interface{ GetFilePart() int }:
		return r.GetFilePart() > 0
	case interface{ GetOffset() int64 }:
		return r.GetOffset() > 0
	case interface{ GetOffset() int }: // upload.getWebFile
		return r.GetOffset() > 0
	}
	return false
}
