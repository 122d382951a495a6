package channel

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// A code is short enough to type and good for minutes and a few mistakes; there
// are a million million of them.
const (
	codeFor   = 10 * time.Minute
	codeTries = 5
	codeLen   = 8
)

// Pair makes a code that pairs whoever sends it first, and returns it with the
// time it is good until. An older code is good for nothing then.
func (g *Gateway) Pair(role proto.Role) (string, time.Time, error) {
	if role != proto.RoleOwner && role != proto.RoleGuest {
		return "", time.Time{}, fmt.Errorf("pairing as %s: want owner or guest", role)
	}
	secret := randomID()
	c := code{Digest: g.digest(secret), Role: role, Expires: g.o.Now().Add(codeFor)}
	err := g.store.do(func(*state) []sexp.Plist { return []sexp.Plist{codeRecord(c)} })
	if err != nil {
		return "", time.Time{}, err
	}
	return secret[:codeLen/2] + "-" + secret[codeLen/2:], c.Expires, nil
}

// digest is a code as it is kept: who reads the file cannot use it.
func (g *Gateway) digest(secret string) string {
	sum := sha256.Sum256([]byte("pairing\x00" + g.o.Name + "\x00" + secret))
	return hex.EncodeToString(sum[:])
}

// Unpair forgets somebody. It reports whether they were known.
func (g *Gateway) Unpair(id string) (bool, error) {
	known := false
	err := g.store.do(func(s *state) []sexp.Plist {
		if _, known = s.peers[id]; !known {
			return nil
		}
		return []sexp.Plist{rec(recUnpeer, sexp.Keyword("ID"), id)}
	})
	return known, err
}

// codeIn is the code in a message that is nothing else, "" for none.
func codeIn(text string) string {
	text = strings.TrimPrefix(strings.TrimSpace(text), "/start ")
	text = strings.ToLower(strings.ReplaceAll(strings.TrimSpace(text), "-", ""))
	if len(text) != codeLen || strings.Trim(text, "abcdefghjkmnpqrstuvwxyz023456789") != "" {
		return ""
	}
	return text
}

var errNoPairing = errors.New("nobody is being paired")

// pairing looks whether a message pairs its sender. The records belong to those
// of the message.
func (g *Gateway) pairing(s *state, in Incoming) (out []sexp.Plist, err error) {
	secret := codeIn(in.Text)
	switch {
	case secret == "" || s.code.Digest == "":
		return nil, errNoPairing
	case in.Kind != Message || in.Group || in.Forwarded:
		return nil, errors.New("a pairing code counts only as a message of one's own, to us alone")
	case !g.o.Now().Before(s.code.Expires), s.code.Expires.After(g.o.Now().Add(codeFor)): // the latter: the clock went back
		return nil, errors.New("the pairing code has expired")
	}
	if subtle.ConstantTimeCompare([]byte(g.digest(secret)), []byte(s.code.Digest)) != 1 {
		c := s.code
		if c.Tries++; c.Tries >= codeTries {
			c = code{}
		}
		return []sexp.Plist{codeRecord(c)}, errors.New("the pairing code is wrong")
	}
	p := Peer{ID: in.From.ID, Name: line(in.From.Name, 80), Role: s.code.Role, Chat: in.Chat, Since: g.o.Now()}
	out = append(out, codeRecord(code{}), peerRecord(p))
	return append(out, g.posts(in.Chat, fmt.Sprintf("Paired as %s. %s", p.Role, help))...), nil
}

const help = `Say what you want in plain words.
/approvals  what waits for you
/approve [TOKEN], /deny [TOKEN [REASON]]
/session [NAME]  which conversation this continues
/stop  stop what is being done
/cost, /models`
