package proto

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"passepartout/internal/sexp"
)

// Version is the protocol spoken here.
const Version = "1"

// A Greeting is what the daemon says first.
type Greeting struct {
	Version      string
	Nonce        string
	Auth         bool // the client must answer with an HMAC of the nonce
	Capabilities []string
}

// Message is the greeting's frame.
func (g Greeting) Message() Message {
	p := sexp.P(
		sexp.Keyword("ACTION"), sexp.Keyword("HANDSHAKE"), sexp.Keyword("VERSION"), g.Version,
		sexp.Keyword("FRAME"), sexp.Keyword("BYTES"), sexp.Keyword("NONCE"), g.Nonce,
		sexp.Keyword("AUTH"), g.Auth, sexp.Keyword("CAPABILITIES"), g.Capabilities)
	return Message{Kind: Event, Payload: p}
}

// A Hello is the client's answer to the greeting.
type Hello struct {
	Client       string // "cli", "tui", "emacs": becomes the origin's channel
	MAC          string // HMAC-SHA-256 of the nonce under the token, in hex
	Capabilities []string
}

// Message is the answer's frame.
func (h Hello) Message() Message {
	p := sexp.P(
		sexp.Keyword("ACTION"), sexp.Keyword("HANDSHAKE"), sexp.Keyword("VERSION"), Version,
		sexp.Keyword("CLIENT"), h.Client, sexp.Keyword("CAPABILITIES"), h.Capabilities)
	if h.MAC != "" {
		p = p.With("MAC", sexp.String(h.MAC))
	}
	return Message{Kind: Event, Payload: p}
}

// ParseHello reads a client's answer.
func ParseHello(m Message) (Hello, error) {
	if m.Do() != "handshake" {
		return Hello{}, fmt.Errorf("first message is %q: want a handshake", m.Do())
	}
	h := Hello{Client: unfold(m.Payload.Text("CLIENT")), MAC: m.Payload.Text("MAC")}
	if h.Client == "" {
		h.Client = "cli"
	}
	if !plainName(h.Client) {
		return Hello{}, fmt.Errorf("client name %q: want letters, digits and dashes", brief(sexp.String(h.Client)))
	}
	h.Capabilities = texts(m.Payload, "CAPABILITIES")
	return h, nil
}

func plainName(s string) bool {
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return len(s) <= 32
}

func texts(p sexp.Plist, key sexp.Keyword) []string {
	v, _ := p.Get(key)
	l, _ := v.(sexp.List)
	var out []string
	for _, v := range l.Items() {
		if w := word(v); w != "" {
			out = append(out, w)
		}
	}
	return out
}

// Sign is the proof that the holder of token saw nonce.
func Sign(token []byte, nonce string) string {
	h := hmac.New(sha256.New, token)
	h.Write([]byte("passepartout 1 "))
	h.Write([]byte(nonce))
	return hex.EncodeToString(h.Sum(nil))
}

// Signed reports, in constant time, whether mac is [Sign] of nonce under token.
// An empty token signs nothing.
func Signed(token []byte, nonce, mac string) bool {
	return len(token) > 0 && hmac.Equal([]byte(mac), []byte(Sign(token, nonce)))
}

// A Client speaks to the daemon over a stream. Send and Receive may be used from
// two goroutines, one each.
type Client struct {
	rw       io.ReadWriter
	r        *Reader
	out      []byte
	greeting Greeting
}

// ErrVersion is returned when the daemon speaks another protocol; the remedy is
// to restart the older of the two.
var ErrVersion = errors.New("daemon speaks another protocol version")

// Connect greets the daemon as the named client; token is needed only where the
// daemon asks for proof.
func Connect(rw io.ReadWriter, name string, token []byte) (*Client, error) {
	c := &Client{rw: rw, r: NewReader(rw, MaxPayload)}
	m, err := c.Receive()
	if err != nil {
		return nil, fmt.Errorf("greeting: %w", err)
	}
	if m.Do() != "handshake" {
		return nil, fmt.Errorf("greeting: found %q: %s", m.Do(), m.Payload.Text("TEXT"))
	}
	auth, _ := m.Payload.Get("AUTH")
	c.greeting = Greeting{
		Version: m.Payload.Text("VERSION"), Nonce: m.Payload.Text("NONCE"),
		Auth: !sexp.IsNil(auth), Capabilities: texts(m.Payload, "CAPABILITIES"),
	}
	if c.greeting.Version != Version {
		return nil, fmt.Errorf("%w: found %q, want %q", ErrVersion, c.greeting.Version, Version)
	}
	h := Hello{Client: name, Capabilities: []string{"STREAM", "TRACE"}}
	if c.greeting.Auth {
		if len(token) == 0 {
			return nil, errors.New("daemon wants proof and there is no token: pass --token-file")
		}
		h.MAC = Sign(token, c.greeting.Nonce)
	}
	return c, c.Send(h.Message())
}

// Greeting is what the daemon said first.
func (c *Client) Greeting() Greeting { return c.greeting }

// Send writes one message.
func (c *Client) Send(m Message) error {
	out, err := AppendFrame(c.out[:0], m.Value())
	if err != nil {
		return err
	}
	c.out = out
	_, err = c.rw.Write(out)
	return err
}

// Receive reads one message; io.EOF means the daemon has closed the stream.
func (c *Client) Receive() (Message, error) {
	v, err := c.r.Next()
	if err != nil {
		return Message{}, err
	}
	return ParseMessage(v)
}
