package act_test

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"passepartout/internal/act"
)

// names resolves from a table.
type names map[string]string

func (n names) LookupNetIP(_ context.Context, _, name string) ([]netip.Addr, error) {
	a, ok := n[name]
	if !ok {
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	return []netip.Addr{netip.MustParseAddr(a)}, nil
}

// site serves a few pages over TLS as example.com, which resolves to 127.0.0.1.
func site(t *testing.T) (web act.Web, base string) {
	t.Helper()
	mux := http.NewServeMux()
	srv := httptest.NewUnstartedServer(mux)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	u := must1(url.Parse(srv.URL))
	base = "https://example.com:" + u.Port()
	page := func(path, kind, body string) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			fmt.Fprint(w, body)
		})
	}
	page("/page", "text/html; charset=utf-8", `<html><head><title>A page</title><style>p{}</style></head><body><h1>Beans</h1><p>Sow in <b>May</b>.</p><script>alert("no")</script></body></html>`)
	page("/data", "application/json", `{"beans": 3}`)
	page("/image", "image/png", "\x89PNG\xff")
	page("/long", "text/plain", strings.Repeat("long ", 1<<20))
	mux.HandleFunc("GET /near", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/data", http.StatusFound) })
	mux.HandleFunc("GET /away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, srv.URL+"/data", http.StatusFound) // the same server by its bare address
	})
	mux.HandleFunc("GET /plain", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+r.Host+"/data", http.StatusFound)
	})
	mux.HandleFunc("GET /gone", func(w http.ResponseWriter, r *http.Request) { http.Error(w, "gone", http.StatusGone) })
	mux.HandleFunc("GET /echo", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "cookies %d, authorization %q, referer %q", len(r.Cookies()), r.Header.Get("Authorization"), r.Referer())
	})
	roots := x509.NewCertPool()
	roots.AddCert(must1(x509.ParseCertificate(srv.TLS.Certificates[0].Certificate[0])))
	return act.Web{Roots: roots, Resolver: names{"example.com": "127.0.0.1"}, Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, base
}

func TestPagesOfPermittedHostsComeAsUntrustedText(t *testing.T) {
	web, base := site(t)
	s := open(t, web)
	for path, want := range map[string]string{
		"/page": "(HTTP 200)\n\nA page\n\n* Beans\nSow in May.",
		"/data": `{"beans": 3}`,
		"/near": `{"beans": 3}`,
		"/echo": `cookies 0, authorization "", referer ""`,
	} {
		if o := s.succeeds("web-fetch", ":URL %q", base+path); !strings.HasSuffix(o.Text, want) || !o.Taint.Untrusted {
			t.Errorf("%s: %v, got\n%s", path, o.Taint, o.Text)
		}
	}
	if o := s.succeeds("web-fetch", ":URL %q", base+"/long"); !o.Truncated || len(o.Text) > act.MaxOutput+100 {
		t.Errorf("a long page: truncated %t, %d bytes", o.Truncated, len(o.Text))
	}
	s.fails("want text", "web-fetch", ":URL %q", base+"/image")
	s.fails("HTTP 410", "web-fetch", ":URL %q", base+"/gone")
}

func TestAPageCannotSendTheReaderElsewhere(t *testing.T) {
	web, base := site(t)
	s := open(t, web)
	for _, path := range []string{"/away", "/plain"} {
		o := s.do("web-fetch", ":URL %q", base+path)
		if o.OK || !strings.Contains(o.Text, "was not followed") || strings.Contains(o.Text, "beans") {
			t.Errorf("%s: ok %t: %s", path, o.OK, o.Text)
		}
	}
}

func TestANameThatTurnsOutToBeThisMachineIsRefused(t *testing.T) {
	web, base := site(t)
	web.Private = nil
	s := open(t, web)
	s.fails("which is this machine", "web-fetch", ":URL %q", base+"/data")
	web.Resolver = names{"example.com": "10.1.2.3"}
	s = open(t, web)
	s.fails("which is a private address", "web-fetch", ":URL %q", base+"/data")
	s.fails("no such host", "web-fetch", ":URL %q", "https://other.example/x")
}

func TestAServerWithoutACertificateIsNotBelieved(t *testing.T) {
	web, base := site(t)
	web.Roots = x509.NewCertPool()
	s := open(t, web)
	s.fails("certificate", "web-fetch", ":URL %q", base+"/data")
}

// TestAHostIsShownWhatTheSettingsSayAndNobodyElseIs: the value goes to that host, over
// TLS, is taken out of what comes back, and its name is on record.
func TestAHostIsShownWhatTheSettingsSayAndNobodyElseIs(t *testing.T) {
	const value = "s3cret-of-the-weather"
	web, base := site(t)
	kept := map[string]string{"WEATHER": value}
	web.Value = func(name string) (string, bool) { v, ok := kept[name]; return v, ok }
	web.Mask = func(s string) string { return strings.ReplaceAll(s, value, "[redacted]") }
	web.Credentials = []act.Credential{must1(act.ParseCredential(strings.TrimPrefix(base, "https://") + "=WEATHER"))}
	s := open(t, web)
	o := s.succeeds("web-fetch", ":URL %q", base+"/echo")
	if !strings.Contains(o.Text, `authorization "Bearer [redacted]"`) || o.Detail.Text("CREDENTIAL") != "vault:WEATHER" {
		t.Errorf("%s, %s", o.Text, o.Detail)
	}
	if o := s.do("web-fetch", ":URL %q", base+"/away"); o.OK || strings.Contains(o.Text, value) {
		t.Errorf("sent elsewhere: %s", o.Text)
	}
	delete(kept, "WEATHER")
	s.fails("vault has no such entry now", "web-fetch", ":URL %q", base+"/echo")
	kept["WEATHER"] = "another" // live: what the vault holds now
	if o := s.succeeds("web-fetch", ":URL %q", base+"/echo"); !strings.Contains(o.Text, `"Bearer another"`) {
		t.Errorf("%s", o.Text)
	}

	web.Credentials = []act.Credential{must1(act.ParseCredential("example.com=X-Key:WEATHER"))} // another port
	s = open(t, web)
	if o := s.succeeds("web-fetch", ":URL %q", base+"/echo"); !strings.Contains(o.Text, `authorization ""`) || o.Detail.Len() > 0 {
		t.Errorf("another port of the host: %s, %s", o.Text, o.Detail)
	}
}

func TestACredentialNamesOneHostAndOneEntry(t *testing.T) {
	for text, want := range map[string]act.Credential{
		"api.example.org=TOKEN":            {Host: "api.example.org", Name: "TOKEN"},
		"API.example.org=X-Api-Key:my.key": {Host: "api.example.org", Header: "X-Api-Key", Name: "my.key"},
		"localhost.example:8443=T":         {Host: "localhost.example:8443", Name: "T"},
	} {
		if got, err := act.ParseCredential(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "host", "=T", "host=", "*.example.org=T", "a.example/path=T", "u@a.example=T", "a.example=X Y:T", "a.example=:T", "a.example=H:bad name", "a.example=H:../x"} {
		if got, err := act.ParseCredential(bad); err == nil {
			t.Errorf("%q is read as %+v", bad, got)
		}
	}
}
