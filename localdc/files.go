package localdc

import (
	"crypto/sha256"
	"fmt"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"
)

// What Telegram says about parts: https://core.telegram.org/api/files
const (
	maxParts      = 4000
	maxPartSize   = 512 << 10
	partAlignment = 1 << 10
	maxChunk      = 1 << 20
	hashPartSize  = 128 << 10
)

// file is a whole file that can be had by upload.getFile.
type file struct {
	id, hash  int64
	reference []byte
	dc        int // where it lives
	data      []byte
	media     bin.Object // the photo or document that was made of it
	cdn       *cdnFile   // nil until a client is sent to the CDN for it
}

// upload is a file that is still coming in, or has come.
type upload struct {
	dc    int // where its first part arrived
	parts map[int][]byte
	done  *file // once a message refers to it
}

type files struct {
	byID    map[int64]*file
	byToken map[string]*cdnFile
	uploads map[int64]*upload
}

func newFiles() files {
	return files{byID: map[int64]*file{}, byToken: map[string]*cdnFile{}, uploads: map[int64]*upload{}}
}

func (f *files) add(dc int, data []byte) *file {
	out := &file{id: randomInt64(), hash: randomInt64(), reference: fmt.Appendf(nil, "reference-%d", len(f.byID)), dc: dc, data: data}
	f.byID[out.id] = out
	return out
}

// find returns a file, nil when there is none or the hash is wrong.
func (f *files) find(id, hash int64) *file {
	if known, ok := f.byID[id]; ok && known.hash == hash {
		return known
	}
	return nil
}

func (c *call) saveFilePart(r *tg.UploadSaveFilePartRequest) (bin.Encoder, error) {
	return c.savePart(r.FileID, r.FilePart, r.Bytes)
}

func (c *call) saveBigFilePart(r *tg.UploadSaveBigFilePartRequest) (bin.Encoder, error) {
	// A stream of unknown length says -1 until its last part.
	if r.FileTotalParts == 0 || r.FileTotalParts < -1 || r.FileTotalParts > maxParts {
		return nil, tgerr.New(400, "FILE_PARTS_INVALID")
	}
	return c.savePart(r.FileID, r.FilePart, r.Bytes)
}

func (c *call) savePart(id int64, part int, data []byte) (bin.Encoder, error) {
	switch {
	case part < 0 || part >= maxParts:
		return nil, tgerr.New(400, "FILE_PART_INVALID")
	case len(data) == 0:
		return nil, tgerr.New(400, "FILE_PART_EMPTY")
	case len(data) > maxPartSize:
		return nil, tgerr.New(400, "FILE_PART_TOO_BIG")
	}
	u := c.files.uploads[id]
	if u == nil {
		u = &upload{dc: c.dc.id, parts: map[int][]byte{}}
		c.files.uploads[id] = u
	}
	if u.done == nil {
		u.parts[part] = data
	}
	return &tg.BoolTrue{}, nil
}

// assemble makes a file of the parts that came in.
func (f *files) assemble(id int64, parts int) (*file, error) {
	u := f.uploads[id]
	if u == nil || parts < 1 || parts > maxParts {
		return nil, tgerr.New(400, "FILE_PARTS_INVALID")
	}
	if u.done != nil {
		return u.done, nil
	}
	size := 0
	for i := range parts {
		data, ok := u.parts[i]
		if !ok {
			return nil, tgerr.New(400, fmt.Sprintf("FILE_PART_%d_MISSING", i))
		}
		if first := len(u.parts[0]); i < parts-1 && (len(data) != first || first%partAlignment != 0 || maxPartSize%first != 0) || len(data) > first {
			return nil, tgerr.New(400, "FILE_PART_SIZE_INVALID")
		}
		size += len(data)
	}
	whole := make([]byte, 0, size)
	for i := range parts {
		whole = append(whole, u.parts[i]...)
	}
	u.done = f.add(u.dc, whole)
	u.parts = nil
	return u.done, nil
}

// locate finds what a location means in this data centre.
func (c *call) locate(l tg.InputFileLocationClass) (*file, error) {
	var id, hash int64
	var reference []byte
	switch l := l.(type) {
	case *tg.InputDocumentFileLocation:
		id, hash, reference = l.ID, l.AccessHash, l.FileReference
	case *tg.InputPhotoFileLocation:
		id, hash, reference = l.ID, l.AccessHash, l.FileReference
	}
	f := c.files.find(id, hash)
	switch {
	case f == nil:
		return nil, tgerr.New(400, "LOCATION_INVALID")
	case string(f.reference) != string(reference):
		return nil, tgerr.New(400, "FILE_REFERENCE_INVALID")
	case f.dc != c.dc.id:
		return nil, tgerr.New(303, fmt.Sprintf("FILE_MIGRATE_%d", f.dc))
	}
	return f, nil
}

func (c *call) getFile(r *tg.UploadGetFileRequest) (bin.Encoder, error) {
	f, err := c.locate(r.Location)
	if err != nil {
		return nil, err
	}
	switch {
	case r.Offset < 0 || r.Offset%partAlignment != 0:
		return nil, tgerr.New(400, "OFFSET_INVALID")
	case r.Limit <= 0 || r.Limit > maxChunk || r.Limit%partAlignment != 0:
		return nil, tgerr.New(400, "LIMIT_INVALID")
	}
	if r.CDNSupported && c.opts.CDN != 0 {
		return c.redirect(f), nil
	}
	return &tg.UploadFile{Type: &tg.StorageFilePartial{}, Mtime: c.date(), Bytes: slice(f.data, r.Offset, int64(r.Limit))}, nil
}

// slice is what there is of data in a range.
func slice(data []byte, offset, limit int64) []byte {
	from := min(offset, int64(len(data)))
	return data[from:min(from+limit, int64(len(data)))]
}

func (c *call) getFileHashes(r *tg.UploadGetFileHashesRequest) (bin.Encoder, error) {
	f, err := c.locate(r.Location)
	if err != nil {
		return nil, err
	}
	if r.Offset < 0 {
		return nil, tgerr.New(400, "OFFSET_INVALID")
	}
	return f.hashes(r.Offset), nil
}

// hashes are those of all pieces from the one that has the offset.
func (f *file) hashes(offset int64) *tg.FileHashVector {
	out := &tg.FileHashVector{}
	for from := offset / hashPartSize * hashPartSize; from < int64(len(f.data)); from += hashPartSize {
		sum := sha256.Sum256(slice(f.data, from, hashPartSize))
		out.Elems = append(out.Elems, tg.FileHash{Offset: from, Limit: hashPartSize, Hash: sum[:]})
	}
	return out
}
