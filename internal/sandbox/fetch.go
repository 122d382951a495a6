package sandbox

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"
)

// Fetch is one look at a page in the web, by the rules of the filtering proxy: one
// host, no other name, no private address behind it.
type Fetch struct {
	URL string
	// Private lists ranges the host may resolve to although they are this
	// machine's or its network's.
	Private []netip.Prefix
	// Resolver is asked once; nil is the system's.
	Resolver Resolver
	// Roots are whom to trust for TLS; nil is the system's.
	Roots *x509.CertPool
	// Most is how many bytes of the body are read.
	Most int
	// Header is sent along, to this host and over TLS only.
	Header map[string]string
}

// Page is what a Fetch got.
type Page struct {
	URL    string // after redirects within the host
	Status int
	Type   string // as the server says
	Body   []byte
	Cut    bool // there was more
	// Elsewhere is where the server sent us and we did not go: another host,
	// or the same one without encryption.
	Elsewhere string
}

// Bounds of a fetch besides its context.
const (
	maxRedirects = 5
	fetchHeaders = 30 * time.Second
)

// Get carries out the fetch. Nothing but a GET without cookies is ever sent, and no
// credentials but those in the header it was given.
func (f Fetch) Get(ctx context.Context) (Page, error) {
	u, rule, err := f.target()
	if err != nil {
		return Page{}, err
	}
	if len(f.Header) > 0 && u.Scheme != "https" {
		return Page{}, fmt.Errorf("%w: a credential goes to %s over https only", ErrSpec, u.Hostname())
	}
	p, err := newProxy(Network{Hosts: []string{rule}, Private: f.Private, Resolver: f.Resolver})
	if err != nil {
		return Page{}, err
	}
	var elsewhere string
	transport := &http.Transport{
		DialContext:            func(ctx context.Context, _, addr string) (net.Conn, error) { return p.dial(ctx, addr) },
		TLSClientConfig:        &tls.Config{RootCAs: f.Roots, MinVersion: tls.VersionTLS12},
		DisableKeepAlives:      true,
		ResponseHeaderTimeout:  fetchHeaders,
		MaxResponseHeaderBytes: maxHeader,
	}
	client := &http.Client{Transport: transport, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) >= maxRedirects || r.URL.Host != u.Host || r.URL.Scheme != u.Scheme {
			elsewhere = r.URL.Redacted()
			return http.ErrUseLastResponse
		}
		return nil
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return Page{}, fmt.Errorf("%w: %w", ErrSpec, err)
	}
	req.Header.Set("User-Agent", "passepartout")
	req.Header.Set("Accept", "text/html, text/plain, application/json;q=0.9, */*;q=0.1")
	for name, value := range f.Header {
		req.Header.Set(name, value)
	}
	r, err := client.Do(req)
	if err != nil {
		return Page{}, fmt.Errorf("fetching %s: %w", u.Redacted(), err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(io.LimitReader(r.Body, int64(f.Most)+1))
	if err != nil {
		return Page{}, fmt.Errorf("reading %s: %w", u.Redacted(), err)
	}
	page := Page{URL: r.Request.URL.Redacted(), Status: r.StatusCode, Type: r.Header.Get("Content-Type"), Body: body, Elsewhere: elsewhere}
	if len(body) > f.Most {
		page.Body, page.Cut = body[:f.Most], true
	}
	return page, nil
}

// target reads the address and the rule that admits its host, and no other.
func (f Fetch) target() (*url.URL, string, error) {
	u, err := url.Parse(f.URL)
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrSpec, err)
	}
	ports := map[string]int{"http": 80, "https": 443}
	port, known := ports[u.Scheme]
	if !known || u.Hostname() == "" || u.User != nil || u.Opaque != "" {
		return nil, "", fmt.Errorf("%w: want an http or https address with a host and without a user, found %q", ErrSpec, f.URL)
	}
	if text := u.Port(); text != "" {
		if port, err = strconv.Atoi(text); err != nil {
			return nil, "", fmt.Errorf("%w: port %q", ErrSpec, text)
		}
	}
	return u, net.JoinHostPort(u.Hostname(), strconv.Itoa(port)), nil
}
