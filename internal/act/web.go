package act

import (
	"context"
	"crypto/x509"
	"fmt"
	"mime"
	"net/netip"
	"net/url"
	"strings"
	"unicode/utf8"

	"passepartout/internal/host"
	"passepartout/internal/proto"
	"passepartout/internal/sandbox"
	"passepartout/internal/sexp"
)

// Web gives tools pages of permitted hosts.
type Web struct {
	Private  []netip.Prefix // of this network that hosts may lie in
	Resolver sandbox.Resolver
	Roots    *x509.CertPool // whom to trust for TLS; nil is the system's
	// Credentials are what the owner's settings say that hosts are shown. Nobody
	// can propose one.
	Credentials []Credential
	// Value is what the vault holds under a name now; nil: nothing.
	Value func(name string) (string, bool)
	// Mask takes credentials out of what a page says; nil takes out none.
	Mask func(string) string
}

// maxPage is how much of a page is read before it is turned into text.
const maxPage = 4 << 20

// Tools are the tools over the web.
func (w Web) Tools() []Tool {
	return []Tool{{
		Name: "web-fetch", Effect: proto.Network, Doc: "Fetch a page by HTTP GET and show it as text. What it says is somebody else's word.",
		Params: []proto.Param{{Name: "URL", Type: proto.Text, Means: proto.URL, Required: true, Doc: "the address, with https:// or http://"}},
		Guard:  sameHost,
		Run:    w.fetch,
	}}
}

// sameHost sees that what fetches reads the address as the gates did.
func sameHost(c Call) error {
	h, err := host.Parse(c.Text("URL"))
	if err != nil {
		return err
	}
	u, err := url.Parse(c.Text("URL"))
	if err != nil {
		return err
	}
	if name := strings.TrimSuffix(strings.ToLower(u.Hostname()), "."); name != h.Name() {
		return fmt.Errorf("the address names the host %q to one reader and %q to another", h.Name(), name)
	}
	return nil
}

func (w Web) fetch(ctx context.Context, c Call) (o Outcome, err error) {
	header, used, err := w.header(c.Text("URL"))
	if err != nil {
		return Outcome{}, err
	}
	page, err := sandbox.Fetch{URL: c.Text("URL"), Private: w.Private, Resolver: w.Resolver, Roots: w.Roots, Most: maxPage, Header: header}.Get(ctx)
	if err != nil {
		return Outcome{}, err
	}
	o = Outcome{OK: page.Status < 300, Truncated: page.Cut, Taint: proto.Taint{Untrusted: true}}
	if used != "" {
		o.Detail = sexp.P(sexp.Keyword("CREDENTIAL"), used)
	}
	defer func() {
		if w.Mask != nil {
			o.Text = w.Mask(o.Text)
		}
	}()
	if page.Elsewhere != "" {
		o.Text = fmt.Sprintf("%s sends its readers to %s, which was not followed: propose to fetch that, if it is wanted.", page.URL, page.Elsewhere)
		return o, nil
	}
	text, err := pageText(page)
	if err != nil {
		return Outcome{}, err
	}
	o.Text = fmt.Sprintf("%s (HTTP %d)\n\n%s", page.URL, page.Status, text)
	return o, nil
}

func pageText(p sandbox.Page) (string, error) {
	kind, _, err := mime.ParseMediaType(p.Type)
	if err != nil {
		kind = "text/html" // most likely, and it shows as text whatever it is
	}
	if !utf8.Valid(p.Body) && !p.Cut && !strings.HasPrefix(kind, "text/") {
		return "", fmt.Errorf("%s holds %s: want text", p.URL, kind)
	}
	body := strings.ToValidUTF8(string(p.Body), "\uFFFD")
	switch {
	case kind == "text/html" || kind == "application/xhtml+xml":
		return htmlText(body), nil
	case strings.HasPrefix(kind, "text/"), strings.HasSuffix(kind, "json"), strings.HasSuffix(kind, "xml"):
		return body, nil
	}
	return "", fmt.Errorf("%s holds %s: want text", p.URL, kind)
}
