package redisstore

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"
)

// advice is what to do about an error that stays until somebody changes the configuration
// of the server or of the program, "" for one that may pass.
func (s *Store) advice(err error) string {
	if err == nil {
		return ""
	}
	if errors.As(err, new(tls.RecordHeaderError)) {
		return "the server does not speak TLS: use a redis:// URL, or the server's TLS port"
	}
	if errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(x509.UnknownAuthorityError)) {
		return "the server's certificate is not trusted: install its authority, or name the host that it was issued for"
	}
	said := err.Error()
	has := func(parts ...string) bool {
		for _, part := range parts {
			if !strings.Contains(said, part) {
				return false
			}
		}
		return true
	}
	switch {
	case has("WRONGPASS"), has("ERR AUTH "), has("ERR invalid password"):
		return "the server does not accept the user name or the password: correct them in the URL, redis://user:password@host:6379/0"
	case has("NOAUTH"), has("unauthenticated"): // the latter for a question of many words
		return "the server asks for a password and none was given: put it into the URL, redis://user:password@host:6379/0"
	case has("NOPERM", "channel"), has("ACL failure", "channel"), has("can't publish to the channel"):
		return "the user may not use the channel " + s.newsChannel() + ": allow it with ACL SETUSER <user> &" + s.newsChannel()
	case has("NOPERM", "key"), has("ACL failure", "key"), has("can't access at least one of the keys"):
		return "the user may not use the keys " + s.prefix + "*: allow them with ACL SETUSER <user> ~" + s.prefix + "*"
	case has("NOPERM"), has("ACL failure"), has("can't run this command"):
		return "the user may not run a command that is needed: allow it with ACL SETUSER <user> +<command>"
	case has("DENIED", "protected mode"):
		return "the server is in protected mode: set requirepass or bind, or turn protected-mode off"
	case has("READONLY"):
		return "the server is a read-only replica: connect to its master, or use a client of Sentinel with New"
	case has("DB index is out of range"), has("invalid DB index"):
		return "the server has no database of that number: use a lower one in the URL, or raise its setting databases"
	case has("SELECT is not allowed in cluster mode"):
		return "the server is part of a cluster, which has database 0 only: use /0, and a *redis.ClusterClient with New"
	case strings.HasPrefix(said, "MOVED "), strings.HasPrefix(said, "ASK "):
		return "the server is part of a cluster, and another node keeps this account's keys: use a *redis.ClusterClient with New"
	case has("unknown command"), has("nknown Redis command"):
		return "the server lacks a command that is needed: use Redis 5 or later, and do not rename its commands"
	case has("not allowed after non deterministic commands"):
		return "the server is too old: use Redis 5 or later"
	}
	return ""
}
