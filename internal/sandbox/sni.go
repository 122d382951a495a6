package sandbox

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"time"
)

// tlsHandshake is the first byte of a TLS connection.
const tlsHandshake = 0x16

// errPeeked stops the handshake once the name is known.
var errPeeked = errors.New("enough seen")

// serverName reads the name a TLS client asks for, and returns all bytes it
// took from r to find it. A connection that is not TLS has no name.
//
// The name matters because one address may serve many: a tunnel to an allowed
// host could otherwise be used to speak to its neighbour.
func serverName(r *bufio.Reader) (name string, taken []byte, err error) {
	first, err := r.Peek(1)
	if err != nil || first[0] != tlsHandshake {
		return "", nil, err
	}
	var seen bytes.Buffer
	c := tls.Server(mute{io.TeeReader(r, &seen)}, &tls.Config{
		GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			name = h.ServerName
			return nil, errPeeked
		},
	})
	if err := c.Handshake(); !errors.Is(err, errPeeked) {
		return "", seen.Bytes(), err
	}
	return name, seen.Bytes(), nil
}

// mute is a connection that can only be listened to.
type mute struct{ io.Reader }

func (mute) Write(p []byte) (int, error)      { return len(p), nil }
func (mute) Close() error                     { return nil }
func (mute) LocalAddr() net.Addr              { return nil }
func (mute) RemoteAddr() net.Addr             { return nil }
func (mute) SetDeadline(time.Time) error      { return nil }
func (mute) SetReadDeadline(time.Time) error  { return nil }
func (mute) SetWriteDeadline(time.Time) error { return nil }
