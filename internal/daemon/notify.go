package daemon

import (
	"context"
	"net"
	"strings"
)

// notify tells the service manager how far we are, where it wants to know: one
// datagram to the socket it named. Nobody answers, and a daemon does not fail
// because its manager does not listen.
func (d *Daemon) notify(ctx context.Context, state string) {
	addr := d.s.NotifySocket
	if addr == "" {
		return
	}
	if name, ok := strings.CutPrefix(addr, "@"); ok {
		addr = "\x00" + name // the abstract namespace
	}
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "unixgram", addr)
	if err == nil {
		_, err = c.Write([]byte(state))
		c.Close()
	}
	if err != nil {
		d.log.Warn("the service manager was not told", "state", state, "error", err)
	}
}
