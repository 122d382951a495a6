package soak

import (
	"context"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// A proxy stands between clients and a server, keeps what passes, and breaks
// connections when it is told to.
type proxy struct {
	w    *world
	name string
	dial func() (net.Conn, error)
	ln   net.Listener
	bad  byte // put in the place of a byte when a connection is corrupted
	tape *os.File

	next atomic.Pointer[string] // the fault the next piece of any connection meets
	mu   sync.Mutex             // guards rnd and tape
	rnd  *rand.Rand
}

// proxyFaults are the ways in which a connection breaks.
var proxyFaults = []string{"drop", "half-open", "corrupt", "slow"}

func (w *world) startProxy(name, network, addr string, bad byte, dial func() (net.Conn, error)) (*proxy, error) {
	ln, err := net.Listen(network, addr)
	if err != nil {
		return nil, err
	}
	tape, err := os.Create(w.path(name + ".tape"))
	if err != nil {
		return nil, err
	}
	p := &proxy{w: w, name: name, dial: dial, ln: ln, bad: bad, tape: tape, rnd: w.random("proxy " + name)}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return p, nil
}

func (p *proxy) serve(c net.Conn) {
	defer c.Close()
	s, err := p.dial()
	if err != nil {
		return
	}
	defer s.Close()
	ctx, hangUp := context.WithCancel(context.Background())
	defer hangUp()
	go p.pass(ctx, hangUp, c, s)
	go p.pass(ctx, hangUp, s, c)
	<-ctx.Done()
}

// pass carries one direction, piece by piece.
func (p *proxy) pass(ctx context.Context, hangUp func(), from, to net.Conn) {
	defer hangUp()
	buf := make([]byte, 32<<10)
	slow := 0
	for {
		n, err := from.Read(buf)
		if n > 0 {
			piece := buf[:n]
			if f := p.next.Swap(nil); f != nil {
				p.w.fault(p.name+" "+*f, "%d bytes from %s", n, from.LocalAddr())
				switch *f {
				case "drop":
					return
				case "half-open":
					rest(ctx, p.some(time.Second, 6*time.Second))
					return
				case "corrupt":
					p.mu.Lock()
					piece[p.rnd.IntN(n)] = p.bad
					p.mu.Unlock()
				case "slow":
					slow = 40
				}
			}
			p.mu.Lock()
			p.tape.Write(piece)
			p.mu.Unlock()
			for slow > 0 && len(piece) > 64 { // the rest of it dribbles
				if _, err := to.Write(piece[:64]); err != nil {
					return
				}
				piece, slow = piece[64:], slow-1
				rest(ctx, 20*time.Millisecond)
			}
			if _, err := to.Write(piece); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *proxy) some(least, most time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return least + time.Duration(p.rnd.Int64N(int64(most-least)))
}
