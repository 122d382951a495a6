package act_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"passepartout/internal/act"
)

// turning is a resolver that answers each name with its addresses in turn, and goes
// on with the last: what DNS rebinding does.
type turning struct {
	mu      sync.Mutex // guards answers
	answers map[string][]string
}

func (r *turning) LookupNetIP(_ context.Context, _, name string) ([]netip.Addr, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.answers[name]
	if len(list) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	if len(list) > 1 {
		r.answers[name] = list[1:]
	}
	return []netip.Addr{netip.MustParseAddr(list[0])}, nil
}

// listen serves HTTPS on one loopback address and says the port.
func listen(t *testing.T, addr string, h http.HandlerFunc) string {
	t.Helper()
	l, err := net.Listen("tcp4", addr)
	if err != nil {
		t.Skipf("no listener on %s: %v", addr, err)
	}
	srv := httptest.NewUnstartedServer(h)
	srv.Listener.Close()
	srv.Listener, srv.Config.ErrorLog = l, log.New(io.Discard, "", 0)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	_, port, err := net.SplitHostPort(l.Addr().String())
	must(t, err)
	return port
}

// A person agreed to commands that name one host and one port. What they reach is
// that, however the command came to ask for something else.
func TestACommandReachesTheHostAndPortItNamesAndNothingElse(t *testing.T) {
	sandboxed(t)
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("no curl here")
	}
	var port string
	port = listen(t, "127.0.0.1:0", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/to-name":
			http.Redirect(w, r, "https://other.example:"+port+"/", http.StatusFound)
		case "/to-address":
			http.Redirect(w, r, "https://127.0.0.1:"+port+"/", http.StatusFound)
		default:
			fmt.Fprintf(w, "welcome to %s\n", r.Host)
		}
	})
	listen(t, "127.0.0.2:"+port, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "welcome to the wrong machine") })
	second := listen(t, "127.0.0.1:0", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "welcome to another port") })
	s := open(t, act.Web{
		Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
		Resolver: &turning{answers: map[string][]string{
			"allowed.example": {"127.0.0.1"}, "other.example": {"127.0.0.1"},
			"turned.example": {"127.0.0.2"}, "metadata.example": {"169.254.169.254"},
			"rebind.example": {"127.0.0.1", "127.0.0.2"},
		}},
	})
	get := curl + " -sSk --max-time 20 "
	allowed := get + "https://allowed.example:PORT/"
	for name, c := range map[string]struct {
		cmd, veiled, want, refused string
	}{
		"the allowed host":                    {allowed, "", "welcome to allowed.example:PORT", ""},
		"a redirect to another name":          {get + "-L https://allowed.example:PORT/to-name", "", "", "other.example:PORT is not on the list"},
		"a redirect to the raw address":       {get + "-L --noproxy x https://allowed.example:PORT/to-address", "", "", "127.0.0.1:PORT is not on the list"},
		"a redirect past the proxy":           {get + "-L https://allowed.example:PORT/to-address", "", "", ""},
		"another name, out of a file":         {allowed + "nothing; " + get + `"https://$(tr A-Z a-z < veiled)/"`, "other.example:PORT", "", "other.example:PORT is not on the list"},
		"the raw address, out of a file":      {allowed + "nothing; " + get + `--noproxy x "https://$(tr A-Z a-z < veiled)/"`, "127.0.0.1:PORT", "", "127.0.0.1:PORT is not on the list"},
		"the raw address past the proxy":      {get + `"https://$(tr A-Z a-z < veiled)/"`, "127.0.0.1:PORT", "", ""},
		"another port, out of a file":         {allowed + "nothing; " + get + `"https://$(tr A-Z a-z < veiled)/"`, "allowed.example:SECOND", "", "allowed.example:SECOND is not on the list"},
		"a name that leads to this machine":   {get + "https://turned.example:PORT/", "", "", "which is this machine"},
		"a name for the metadata service":     {get + "https://metadata.example:PORT/", "", "", "which is a private address"},
		"a name that turns between two looks": {get + "https://rebind.example:PORT/ && " + get + "https://rebind.example:PORT/", "", "welcome to rebind.example:PORT\nwelcome to rebind.example:PORT", ""},
	} {
		t.Run(name, func(t *testing.T) {
			fill := strings.NewReplacer("PORT", port, "SECOND", second).Replace
			s.write("memex/veiled", strings.ToUpper(fill(c.veiled))) // what the gates cannot read out of the command
			o := s.do("shell", ":CMD %q", fill(c.cmd))
			record := o.Detail.List().String()
			if c.want != "" {
				if strings.TrimSpace(o.Text) != fill(c.want) {
					t.Errorf("got %s\n%s", o.Text, record)
				}
				return
			}
			got := strings.ReplaceAll(o.Text, fill("welcome to allowed.example:PORT"), "") // the part that was agreed to
			if o.OK || strings.Contains(got, "welcome") || !strings.Contains(record, fill(c.refused)) {
				t.Errorf("ok %t: %s\n%s\nwant a refusal on record: %q", o.OK, o.Text, record, fill(c.refused))
			}
		})
	}
}
