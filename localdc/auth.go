package localdc

import (
	"crypto/subtle"
	"fmt"
	"slices"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"
)

// auth knows which keys are logged in.
type auth struct {
	// logins maps a key to the key that logged in with the token: itself, or the
	// one whose login was carried over from another data centre.
	logins  map[[8]byte][8]byte
	exports map[string]export
	tokens  map[string]*loginToken
	missed  map[[8]byte]bool // keys that updates did not reach
}

// export is a login on its way to another data centre.
type export struct {
	root [8]byte
	dc   int
}

func newAuth() auth {
	return auth{logins: map[[8]byte][8]byte{}, exports: map[string]export{}, tokens: map[string]*loginToken{}, missed: map[[8]byte]bool{}}
}

func errUnregistered() error { return tgerr.New(401, "AUTH_KEY_UNREGISTERED") }

// admissible tells whether the key of a call may make it here.
func (c *Cloud) admissible(call *call, m method, known bool) error {
	switch {
	case call.dc.cdn && !m.cdn:
		return tgerr.New(400, "CDN_METHOD_INVALID")
	case m.cdn && !call.dc.cdn:
		return tgerr.New(400, "METHOD_INVALID")
	}
	if known && m.open {
		return nil
	}
	if _, ok := c.auth.logins[call.key]; !ok {
		return errUnregistered()
	}
	if known && !m.anywhere && call.dc.id != c.opts.Home {
		return c.migrate("USER")
	}
	return nil
}

// migrate sends the client to the home data centre.
func (c *Cloud) migrate(what string) error {
	return tgerr.New(303, fmt.Sprintf("%s_MIGRATE_%d", what, c.opts.Home))
}

func (c *call) importBotAuthorization(r *tg.AuthImportBotAuthorizationRequest) (bin.Encoder, error) {
	if c.dc.id != c.opts.Home {
		return nil, c.migrate("USER")
	}
	if subtle.ConstantTimeCompare([]byte(r.BotAuthToken), []byte(c.opts.BotToken)) == 0 {
		return nil, tgerr.New(400, "ACCESS_TOKEN_INVALID")
	}
	c.auth.logins[c.key] = c.key
	return &tg.AuthAuthorization{User: c.chats.self.tg()}, nil
}

func (c *call) exportAuthorization(r *tg.AuthExportAuthorizationRequest) (bin.Encoder, error) {
	if r.DCID == c.dc.id || !c.has(r.DCID) {
		return nil, tgerr.New(400, "DC_ID_INVALID")
	}
	token := randomBytes(32)
	c.auth.exports[string(token)] = export{root: c.auth.logins[c.key], dc: r.DCID}
	return &tg.AuthExportedAuthorization{ID: c.chats.self.id, Bytes: token}, nil
}

func (c *call) importAuthorization(r *tg.AuthImportAuthorizationRequest) (bin.Encoder, error) {
	e, ok := c.auth.exports[string(r.Bytes)]
	if !ok || e.dc != c.dc.id || r.ID != c.chats.self.id {
		return nil, tgerr.New(400, "AUTH_BYTES_INVALID")
	}
	delete(c.auth.exports, string(r.Bytes))
	c.auth.logins[c.key] = e.root
	return &tg.AuthAuthorization{User: c.chats.self.tg()}, nil
}

// logOut ends the login of the key, and with it those that were carried over
// from it.
func (c *call) logOut(*tg.AuthLogOutRequest) (bin.Encoder, error) {
	root := c.auth.logins[c.key]
	for key, r := range c.auth.logins {
		if r == root {
			delete(c.auth.logins, key)
		}
	}
	return &tg.AuthLoggedOut{}, nil
}

func (c *Cloud) has(dc int) bool { return slices.Contains(c.opts.DCs, dc) }
