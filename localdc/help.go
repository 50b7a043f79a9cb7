package localdc

import (
	"time"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/tg"
)

// What help.getConfig tells about messages; the server keeps to it too.
const (
	messageLengthMax = 4096
	captionLengthMax = 1024
	forwardCountMax  = 100
	albumCountMax    = 10
)

func (c *call) getConfig(*tg.HelpGetConfigRequest) (bin.Encoder, error) {
	return &tg.Config{
		Date:              c.date(),
		Expires:           int(c.now.Add(time.Hour).Unix()),
		ThisDC:            c.dc.id,
		DCOptions:         c.dcOptions(),
		DCTxtDomainName:   "localhost",
		ChatSizeMax:       200,
		MegagroupSizeMax:  200000,
		ForwardedCountMax: forwardCountMax,
		EditTimeLimit:     int((48 * time.Hour).Seconds()),
		CaptionLengthMax:  captionLengthMax,
		MessageLengthMax:  messageLengthMax,
		WebfileDCID:       c.opts.Home,
		MeURLPrefix:       "http://localhost/",
	}, nil
}

func (c *call) getNearestDC(*tg.HelpGetNearestDCRequest) (bin.Encoder, error) {
	return &tg.NearestDC{Country: "ZZ", ThisDC: c.dc.id, NearestDC: c.opts.Home}, nil
}
