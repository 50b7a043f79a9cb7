package localdc

import (
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"
)

// loginTokenLife is how long a login token is good for: about 30 s at Telegram
// (https://core.telegram.org/api/qr-login).
const loginTokenLife = 30 * time.Second

// loginToken is a login by QR code on its way.
type loginToken struct {
	key      [8]byte // of the client that showed it
	expires  time.Time
	accepted bool
}

// AcceptLogin accepts a login token as the phone does that scans the QR code. token is
// what the code's URL carries: base64, as qrlogin.Token.String returns it. The client is
// logged in when it calls auth.exportLoginToken the next time; it gets no
// updateLoginToken. A token that is not known, or that is over, is an error.
func (c *Cloud) AcceptLogin(token string) error {
	raw, err := base64.URLEncoding.DecodeString(token)
	if err != nil {
		return fmt.Errorf("localdc: login token is not base64: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.auth.tokens[string(raw)]
	if t == nil || !c.opts.Clock.Now().Before(t.expires) {
		return errors.New("localdc: login token is not known or has expired: want one that auth.exportLoginToken returned in the last 30 s")
	}
	t.accepted = true
	return nil
}

func (c *call) exportLoginToken(*tg.AuthExportLoginTokenRequest) (bin.Encoder, error) {
	for token, t := range c.auth.tokens {
		if !c.now.Before(t.expires) {
			delete(c.auth.tokens, token)
			continue
		}
		if t.key != c.key || !t.accepted {
			continue
		}
		if c.dc.id != c.opts.Home {
			return &tg.AuthLoginTokenMigrateTo{DCID: c.opts.Home, Token: []byte(token)}, nil
		}
		return c.loggedInBy(token), nil
	}
	token := randomBytes(32)
	expires := c.now.Add(loginTokenLife)
	c.auth.tokens[string(token)] = &loginToken{key: c.key, expires: expires}
	return &tg.AuthLoginToken{Expires: int(expires.Unix()), Token: token}, nil
}

func (c *call) importLoginToken(r *tg.AuthImportLoginTokenRequest) (bin.Encoder, error) {
	t := c.auth.tokens[string(r.Token)]
	switch {
	case t == nil || !t.accepted || c.dc.id != c.opts.Home:
		return nil, tgerr.New(400, "AUTH_TOKEN_INVALID")
	case !c.now.Before(t.expires):
		return nil, tgerr.New(400, "AUTH_TOKEN_EXPIRED")
	}
	return c.loggedInBy(string(r.Token)), nil
}

func (c *call) loggedInBy(token string) *tg.AuthLoginTokenSuccess {
	delete(c.auth.tokens, token)
	c.auth.logins[c.key] = c.key
	return &tg.AuthLoginTokenSuccess{Authorization: &tg.AuthAuthorization{User: c.chats.self.tg()}}
}
