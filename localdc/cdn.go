package localdc

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"slices"
	"sync"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/crypto"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"
)

// cdnAlignment is what offsets and limits of upload.getCdnFile are multiples of:
// https://core.telegram.org/cdn
const cdnAlignment = 4 << 10

// cdnFile is a file as the CDN has it: encrypted with a key that the CDN does
// not know.
type cdnFile struct {
	token, request []byte
	key, iv        []byte
	data           []byte // encrypted; nil until it was uploaded to the CDN
	plain          *file
}

// redirect sends a client to the CDN for a file.
func (c *call) redirect(f *file) *tg.UploadFileCDNRedirect {
	if f.cdn == nil {
		f.cdn = &cdnFile{
			token: randomBytes(32), request: randomBytes(32), key: randomBytes(32), iv: randomBytes(aes.BlockSize), plain: f,
		}
		c.files.byToken[string(f.cdn.token)] = f.cdn
	}
	return &tg.UploadFileCDNRedirect{
		DCID: c.opts.CDN, FileToken: f.cdn.token, EncryptionKey: f.cdn.key, EncryptionIv: f.cdn.iv,
	}
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}

// upload encrypts the file for the CDN: AES-256-CTR, with the number of the
// block in the last four bytes of the IV.
func (f *cdnFile) upload() error {
	block, err := aes.NewCipher(f.key)
	if err != nil {
		return fmt.Errorf("encrypt for the CDN: %w", err)
	}
	iv := slices.Clone(f.iv)
	binary.BigEndian.PutUint32(iv[len(iv)-4:], 0)
	f.data = make([]byte, len(f.plain.data))
	cipher.NewCTR(block, iv).XORKeyStream(f.data, f.plain.data)
	return nil
}

func (c *call) cdnFile(token []byte) (*cdnFile, error) {
	if f := c.files.byToken[string(token)]; f != nil {
		return f, nil
	}
	return nil, tgerr.New(400, "FILE_TOKEN_INVALID")
}

func (c *call) getCDNFile(r *tg.UploadGetCDNFileRequest) (bin.Encoder, error) {
	f, err := c.cdnFile(r.FileToken)
	if err != nil {
		return nil, err
	}
	limit := int64(r.Limit)
	switch {
	case r.Offset < 0 || r.Offset%cdnAlignment != 0:
		return nil, tgerr.New(400, "OFFSET_INVALID")
	case limit <= 0 || limit%cdnAlignment != 0 || maxChunk%limit != 0 || r.Offset/maxChunk != (r.Offset+limit-1)/maxChunk:
		return nil, tgerr.New(400, "LIMIT_INVALID")
	case f.data == nil:
		return &tg.UploadCDNFileReuploadNeeded{RequestToken: f.request}, nil
	}
	return &tg.UploadCDNFile{Bytes: slice(f.data, r.Offset, limit)}, nil
}

func (c *call) reuploadCDNFile(r *tg.UploadReuploadCDNFileRequest) (bin.Encoder, error) {
	f, err := c.cdnFile(r.FileToken)
	if err != nil {
		return nil, err
	}
	if string(r.RequestToken) != string(f.request) {
		return nil, tgerr.New(400, "REQUEST_TOKEN_INVALID")
	}
	if err := f.upload(); err != nil {
		return nil, err
	}
	return f.plain.hashes(0), nil
}

func (c *call) getCDNFileHashes(r *tg.UploadGetCDNFileHashesRequest) (bin.Encoder, error) {
	f, err := c.cdnFile(r.FileToken)
	if err != nil {
		return nil, err
	}
	if r.Offset < 0 {
		return nil, tgerr.New(400, "OFFSET_INVALID")
	}
	return f.plain.hashes(r.Offset), nil
}

// getCDNConfig tells the keys by which clients know the CDN.
func (c *call) getCDNConfig(*tg.HelpGetCDNConfigRequest) (bin.Encoder, error) {
	out := &tg.CDNConfig{}
	for _, dc := range c.dcs {
		if dc.cdn {
			public := pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(&dc.key.PublicKey)})
			out.PublicKeys = append(out.PublicKeys, tg.CDNPublicKey{DCID: dc.id, PublicKey: string(public)})
		}
	}
	return out, nil
}

// commonKey is the key of all data centres of the process but CDNs: a suite of tests starts
// many, and most of the time that each takes would be its key's.
var commonKey = sync.OnceValues(generateKey)

func generateKey() (*rsa.PrivateKey, error) {
	key, err := rsa.GenerateKey(rand.Reader, crypto.RSAKeyBits)
	if err != nil {
		return nil, fmt.Errorf("localdc: generate key: %w", err)
	}
	return key, nil
}
