package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The proxy's place on the run's own loopback. The port is fixed, because the
// network namespace is new and nobody else can have taken it.
const (
	proxyPort = 47128
	proxyAddr = "127.0.0.1:47128"
)

// Bounds on what one run may ask of the proxy.
const (
	maxTunnels    = 64
	maxRequests   = 1000 // remembered, not allowed
	dialTimeout   = 10 * time.Second
	headerTimeout = 10 * time.Second
	maxHeader     = 64 << 10
)

// Request is one thing the proxy was asked for.
type Request struct {
	// Host and Port are what the command asked for.
	Host string
	Port int
	// Addr is where the connection went; invalid when it was refused.
	Addr netip.AddrPort
	// Refused says why not; empty when allowed.
	Refused string
}

// proxy lets a run reach allowed hosts and nothing else. It decides by name
// and again by address, resolves a name once, and connects to the address it
// judged.
type proxy struct {
	// constant after newProxy
	rules    []hostRule
	private  []netip.Prefix
	own      []netip.Addr // of this machine
	resolver Resolver

	server *http.Server
	cancel context.CancelFunc // ends what the server has in hand
	work   sync.WaitGroup     // the server and every request

	mu     sync.Mutex // guards the rest
	pinned map[string][]netip.Addr
	asked  []Request
	active int
	closed bool
}

// hostRule is one entry of Network.Hosts.
type hostRule struct {
	name  string // lower case, without a trailing dot
	below bool   // "*.name"
	ports []int
}

var errRefused = errors.New("refused")

func newProxy(n Network) (*proxy, error) {
	p := &proxy{
		private: n.Private, resolver: n.Resolver, pinned: map[string][]netip.Addr{},
	}
	if p.resolver == nil {
		p.resolver = net.DefaultResolver
	}
	for _, h := range n.Hosts {
		r, err := parseHostRule(h)
		if err != nil {
			return nil, err
		}
		p.rules = append(p.rules, r)
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("%w: own addresses: %w", ErrUnavailable, err)
	}
	for _, a := range addrs {
		if pre, err := netip.ParsePrefix(a.String()); err == nil {
			p.own = append(p.own, pre.Addr().Unmap())
		}
	}
	return p, nil
}

func parseHostRule(s string) (hostRule, error) {
	host, ports := s, []int{80, 443}
	if h, port, err := net.SplitHostPort(s); err == nil {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return hostRule{}, fmt.Errorf("%w: host %q: bad port", ErrSpec, s)
		}
		host, ports = h, []int{int(n)}
	}
	host, below := strings.CutPrefix(host, "*.")
	name, err := hostName(host)
	if err != nil {
		return hostRule{}, fmt.Errorf("%w: host %q: %w", ErrSpec, s, err)
	}
	if below && !strings.Contains(name, ".") {
		return hostRule{}, fmt.Errorf("%w: host %q would admit a whole top-level domain", ErrSpec, s)
	}
	return hostRule{name: name, below: below, ports: ports}, nil
}

// hostName brings a host to the form in which hosts are compared. Anything
// that is neither an address nor plain letters, digits, dots and hyphens is
// refused, so that no two programs can read one name differently.
func hostName(s string) (string, error) {
	if a, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		if a.Zone() != "" {
			return "", fmt.Errorf("%w: address with a zone", errRefused)
		}
		return a.Unmap().String(), nil
	}
	s = strings.ToLower(strings.TrimSuffix(s, "."))
	if s == "" || len(s) > 253 {
		return "", fmt.Errorf("%w: wanted a host name, got %d bytes", errRefused, len(s))
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 {
			return "", fmt.Errorf("%w: %q is not a host name", errRefused, s)
		}
		for _, c := range []byte(label) {
			if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
				return "", fmt.Errorf("%w: %q is not a host name", errRefused, s)
			}
		}
	}
	return s, nil
}

// admits tells whether the rule covers the name and port.
func (r hostRule) admits(name string, port int) bool {
	if !slices.Contains(r.ports, port) {
		return false
	}
	if r.below {
		return strings.HasSuffix(name, "."+r.name)
	}
	return name == r.name
}

// judge decides about host and port and returns the addresses to try.
func (p *proxy) judge(ctx context.Context, host string, port int) ([]netip.Addr, error) {
	name, err := hostName(host)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(p.rules, func(r hostRule) bool { return r.admits(name, port) }) {
		return nil, fmt.Errorf("%w: %s:%d is not on the list of allowed hosts", errRefused, name, port)
	}
	if a, err := netip.ParseAddr(name); err == nil {
		return []netip.Addr{a}, nil // named on the list by its address, so meant
	}
	addrs, err := p.resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, a := range addrs {
		if why := p.unsuitable(a); why != "" {
			return nil, fmt.Errorf("%w: %s resolves to %s, %s", errRefused, name, a, why)
		}
	}
	return addrs, nil
}

// resolve asks once for each name: a second answer could be another one.
func (p *proxy) resolve(ctx context.Context, name string) ([]netip.Addr, error) {
	p.mu.Lock()
	addrs, ok := p.pinned[name]
	p.mu.Unlock()
	if ok {
		return addrs, nil
	}
	found, err := p.resolver.LookupNetIP(ctx, "ip", name)
	if err != nil {
		return nil, fmt.Errorf("resolving %s: %w", name, err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("resolving %s: no address", name)
	}
	for i, a := range found {
		found[i] = a.Unmap()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if first, ok := p.pinned[name]; ok { // two requests at once: the first stays
		return first, nil
	}
	p.pinned[name] = found
	return found, nil
}

// special are ranges that are not the public internet, beyond those netip
// knows by name. IPv6 forms that wrap an IPv4 address are among them.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("192.88.99.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("100::/64"), netip.MustParsePrefix("2001::/23"), netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("fec0::/10"),
}

// unsuitable says why an allowed name may not lead to a, or nothing.
func (p *proxy) unsuitable(a netip.Addr) string {
	in := func(pre netip.Prefix) bool { return pre.Contains(a) }
	switch {
	case slices.ContainsFunc(p.private, in):
		return ""
	case a.IsLoopback(), slices.Contains(p.own, a):
		return "which is this machine"
	case a.IsPrivate(), a.IsLinkLocalUnicast():
		return "which is a private address"
	case !a.IsGlobalUnicast(), slices.ContainsFunc(special, in):
		return "which is not a public address"
	}
	return ""
}

// dial judges and connects, and remembers both.
func (p *proxy) dial(ctx context.Context, hostport string) (net.Conn, error) {
	host, portText, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, fmt.Errorf("%w: wanted host:port, got %q", errRefused, hostport)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("%w: bad port %q", errRefused, portText)
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	req := Request{Host: host, Port: int(port)}
	addrs, err := p.judge(ctx, host, int(port))
	if err != nil {
		req.Refused = err.Error()
		p.remember(req)
		return nil, err
	}
	var d net.Dialer
	var errs []error
	for _, a := range addrs {
		at := netip.AddrPortFrom(a, uint16(port))
		c, err := d.DialContext(ctx, "tcp", at.String())
		if err == nil {
			req.Addr = at
			p.remember(req)
			return c, nil
		}
		errs = append(errs, err)
	}
	err = errors.Join(errs...)
	req.Refused = err.Error()
	p.remember(req)
	return nil, err
}

func (p *proxy) remember(r Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.asked) < maxRequests {
		p.asked = append(p.asked, r)
	}
}

func (p *proxy) requests() []Request {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

// serve takes over the listener the stage made. It returns at once; close
// ends it.
func (p *proxy) serve(ctx context.Context, fd int) error {
	if p == nil || fd < 0 {
		return errors.New("the stage sent no proxy socket")
	}
	f := os.NewFile(uintptr(fd), "proxy")
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return fmt.Errorf("proxy socket: %w", err)
	}
	ctx, p.cancel = context.WithCancel(ctx)
	p.server = &http.Server{
		Handler:           p.handler(),
		ReadHeaderTimeout: headerTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          log.New(io.Discard, "", 0), // what a command sends is its own affair
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	p.work.Go(func() { _ = p.server.Serve(l) })
	return nil
}

// enter admits a request while the proxy is open and not too busy.
func (p *proxy) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.active >= maxTunnels {
		return false
	}
	p.active++
	p.work.Add(1)
	return true
}

func (p *proxy) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active--
	p.work.Done()
}

// close ends every connection and waits for them. By then the command is
// gone, and with it the other ends.
func (p *proxy) close() {
	if p == nil || p.server == nil {
		return
	}
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	_ = p.server.Close()
	p.work.Wait()
}

func (p *proxy) handler() http.Handler {
	transport := &http.Transport{
		DialContext:           func(ctx context.Context, _, addr string) (net.Conn, error) { return p.dial(ctx, addr) },
		DisableKeepAlives:     true,
		ResponseHeaderTimeout: time.Minute,
	}
	plain := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			// The name that was judged is the name the server hears.
			r.Out.Host = r.Out.URL.Host
		},
		ErrorLog:     log.New(io.Discard, "", 0),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { answer(w, err) },
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !p.enter() {
			http.Error(w, "too many connections", http.StatusServiceUnavailable)
			return
		}
		defer p.leave()
		switch {
		case r.Method == http.MethodConnect:
			p.tunnel(w, r)
		case r.URL.Scheme == "http" && r.URL.Host != "":
			plain.ServeHTTP(w, r)
		default:
			http.Error(w, "this is a proxy: wanted CONNECT or an absolute http URL", http.StatusBadRequest)
		}
	})
}

// answer tells the command why it did not get through.
func answer(w http.ResponseWriter, err error) {
	code := http.StatusBadGateway
	if errors.Is(err, errRefused) {
		code = http.StatusForbidden
	}
	http.Error(w, "sandbox: "+err.Error(), code)
}

// tunnel connects the command to an allowed host and copies until either side
// or the run ends.
func (p *proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	out, err := p.dial(r.Context(), r.Host)
	if err != nil {
		answer(w, err)
		return
	}
	defer out.Close()
	in, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		answer(w, err)
		return
	}
	defer in.Close()
	// A hijacked connection is no longer the server's to close.
	stop := context.AfterFunc(r.Context(), func() { in.Close(); out.Close() })
	defer stop()
	if _, err := io.WriteString(in, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	var up sync.WaitGroup
	up.Go(func() {
		if err := p.forward(out, buf.Reader, r.Host); err != nil {
			in.Close()
			out.Close()
			return
		}
		closeWrite(out)
	})
	_, _ = io.Copy(in, out)
	closeWrite(in)
	up.Wait()
}

// forward copies what the command says. If that is TLS, the name it asks the
// server for must be allowed like the one it asked us for.
func (p *proxy) forward(out io.Writer, in *bufio.Reader, hostport string) error {
	name, taken, err := serverName(in)
	if err != nil && len(taken) == 0 {
		return nil // it said nothing
	}
	if err != nil {
		return fmt.Errorf("reading a TLS greeting: %w", err)
	}
	if name != "" {
		if err := p.judgeServerName(name, hostport); err != nil {
			return err
		}
	}
	if _, err := out.Write(taken); err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return err
}

func (p *proxy) judgeServerName(sni, hostport string) error {
	_, portText, err := net.SplitHostPort(hostport)
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(portText)
	if err != nil {
		return err
	}
	name, err := hostName(sni)
	if err == nil && slices.ContainsFunc(p.rules, func(r hostRule) bool { return r.admits(name, port) }) {
		return nil
	}
	err = fmt.Errorf("%w: a tunnel to %s asks for the server %q", errRefused, hostport, sni)
	p.remember(Request{Host: sni, Port: port, Refused: err.Error()})
	return err
}

func closeWrite(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.CloseWrite()
	}
}
