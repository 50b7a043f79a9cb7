package localdc

import (
	"crypto/md5" //nolint:gosec // the protocol's checksum, no protection
	"encoding/hex"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"
)

func (f *file) document(date int, mime string, attributes []tg.DocumentAttributeClass) *tg.Document {
	return &tg.Document{
		ID: f.id, AccessHash: f.hash, FileReference: f.reference, Date: date,
		MimeType: mime, Size: int64(len(f.data)), DCID: f.dc, Attributes: attributes,
	}
}

// photo makes no claim about width and height: the server does not look inside.
func (f *file) photo(date int) *tg.Photo {
	return &tg.Photo{
		ID: f.id, AccessHash: f.hash, FileReference: f.reference, Date: date, DCID: f.dc,
		Sizes: []tg.PhotoSizeClass{&tg.PhotoSize{Type: "x", W: 1, H: 1, Size: len(f.data)}},
	}
}

// uploaded turns an uploaded file into a file.
func (c *call) uploaded(in tg.InputFileClass) (*file, string, error) {
	switch in := in.(type) {
	case *tg.InputFile:
		f, err := c.files.assemble(in.ID, in.Parts)
		if err != nil {
			return nil, "", err
		}
		if sum := md5.Sum(f.data); in.MD5Checksum != "" && in.MD5Checksum != hex.EncodeToString(sum[:]) {
			return nil, "", tgerr.New(400, "MD5_CHECKSUM_INVALID")
		}
		return f, in.Name, nil
	case *tg.InputFileBig:
		f, err := c.files.assemble(in.ID, in.Parts)
		return f, in.Name, err
	default:
		return nil, "", tgerr.New(400, "MEDIA_INVALID")
	}
}

// media turns what a request carries into what a message carries.
func (c *call) media(in tg.InputMediaClass) (tg.MessageMediaClass, error) {
	switch in := in.(type) {
	case *tg.InputMediaUploadedPhoto:
		f, _, err := c.uploaded(in.File)
		if err != nil {
			return nil, err
		}
		f.media = f.photo(c.date())
		return f.carried()
	case *tg.InputMediaUploadedDocument:
		f, name, err := c.uploaded(in.File)
		if err != nil {
			return nil, err
		}
		attributes := in.Attributes
		if len(attributes) == 0 {
			attributes = []tg.DocumentAttributeClass{&tg.DocumentAttributeFilename{FileName: name}}
		}
		f.media = f.document(c.date(), in.MimeType, attributes)
		return f.carried()
	case *tg.InputMediaPhoto:
		if id, ok := in.ID.(*tg.InputPhoto); ok {
			return c.files.find(id.ID, id.AccessHash).carried()
		}
	case *tg.InputMediaDocument:
		if id, ok := in.ID.(*tg.InputDocument); ok {
			return c.files.find(id.ID, id.AccessHash).carried()
		}
	}
	return nil, tgerr.New(400, "MEDIA_INVALID")
}

// carried is the file as a message carries it; f may be nil.
func (f *file) carried() (tg.MessageMediaClass, error) {
	if f != nil {
		switch m := f.media.(type) {
		case *tg.Photo:
			return &tg.MessageMediaPhoto{Photo: m}, nil
		case *tg.Document:
			return &tg.MessageMediaDocument{Document: m}, nil
		}
	}
	return nil, tgerr.New(400, "MEDIA_INVALID")
}

func (c *call) uploadMedia(r *tg.MessagesUploadMediaRequest) (bin.Encoder, error) {
	if _, err := c.chats.peer(r.Peer); err != nil {
		return nil, err
	}
	return c.media(r.Media)
}

func (c *call) sendMedia(r *tg.MessagesSendMediaRequest) (bin.Encoder, error) {
	chat, err := c.chats.peer(r.Peer)
	if err != nil {
		return nil, err
	}
	if err := checkText(r.Message, captionLengthMax, "MEDIA_CAPTION_TOO_LONG"); err != nil {
		return nil, err
	}
	media, err := c.media(r.Media)
	if err != nil {
		return nil, err
	}
	return c.post(chat, draft{
		randomID: r.RandomID, text: r.Message, entities: r.Entities, markup: r.ReplyMarkup, replyTo: r.ReplyTo,
		media: media, silent: r.Silent,
	})
}

func (c *call) sendMultiMedia(r *tg.MessagesSendMultiMediaRequest) (bin.Encoder, error) {
	chat, err := c.chats.peer(r.Peer)
	if err != nil {
		return nil, err
	}
	if len(r.MultiMedia) == 0 || len(r.MultiMedia) > albumCountMax {
		return nil, tgerr.New(400, "MULTI_MEDIA_TOO_LONG")
	}
	group := randomInt64()
	drafts := make([]draft, len(r.MultiMedia))
	for i, single := range r.MultiMedia {
		if err := checkText(single.Message, captionLengthMax, "MEDIA_CAPTION_TOO_LONG"); err != nil {
			return nil, err
		}
		media, err := c.media(single.Media)
		if err != nil {
			return nil, err
		}
		drafts[i] = draft{
			randomID: single.RandomID, text: single.Message, entities: single.Entities, replyTo: r.ReplyTo,
			media: media, group: group, silent: r.Silent,
		}
	}
	return c.post(chat, drafts...)
}
