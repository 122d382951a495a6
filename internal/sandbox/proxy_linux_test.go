package sandbox_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"passepartout/internal/sandbox"
)

// book is a resolver that answers each name with its list of answers in turn,
// and goes on giving the last.
type book struct {
	mu      sync.Mutex // guards asked
	answers map[string][][]string
	asked   map[string]int
}

func (b *book) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := b.answers[host]
	if len(list) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	if b.asked == nil {
		b.asked = map[string]int{}
	}
	n := b.asked[host]
	b.asked[host]++
	var out []netip.Addr
	for _, a := range list[min(n, len(list)-1)] {
		out = append(out, netip.MustParseAddr(a))
	}
	return out, nil
}

// site is an HTTPS or HTTP server on one loopback address.
func site(t *testing.T, addr string, secure bool, h http.HandlerFunc) (port string) {
	t.Helper()
	l, err := net.Listen("tcp4", addr)
	if err != nil {
		t.Skipf("no listener on %s: %v", addr, err)
	}
	s := httptest.NewUnstartedServer(h)
	s.Listener.Close()
	s.Listener = l
	if secure {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	_, port, err = net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func say(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "%s to %s", text, r.Host) }
}

func (b *box) fetch(n *sandbox.Network, url string, more ...string) sandbox.Result {
	b.t.Helper()
	s := b.spec("")
	s.Argv = append([]string{b.self, attemptArg, "fetch", url}, more...)
	s.Network = n
	return b.run(s)
}

func TestTheAllowedHostAndNoOtherIsReached(t *testing.T) {
	onEach(t, func(t *testing.T, b *box) {
		var port, plain string
		port = site(t, "127.0.0.1:0", true, func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/to-name":
				http.Redirect(w, r, "https://bad.test:"+port+"/", http.StatusFound)
			case "/to-address":
				http.Redirect(w, r, "https://127.0.0.1:"+port+"/", http.StatusFound)
			default:
				say("welcome")(w, r)
			}
		})
		plain = site(t, "127.0.0.1:0", false, say("plain welcome"))
		other := site(t, "127.0.0.2:"+port, true, say("wrong machine"))
		names := &book{answers: map[string][][]string{
			"good.test":     {{"127.0.0.1"}},
			"a.wide.test":   {{"127.0.0.1"}},
			"wide.test":     {{"127.0.0.1"}},
			"bad.test":      {{"127.0.0.1"}},
			"rebind.test":   {{"127.0.0.1"}, {"127.0.0.2"}},
			"turned.test":   {{"127.0.0.2"}},
			"mixed.test":    {{"127.0.0.1", "127.0.0.2"}},
			"metadata.test": {{"169.254.169.254"}},
			"mapped.test":   {{"::ffff:127.0.0.2"}},
			"nat64.test":    {{"64:ff9b::7f00:2"}},
			"zero.test":     {{"0.0.0.0"}},
		}}
		network := &sandbox.Network{
			Resolver: names,
			Private:  []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
		}
		for _, h := range []string{"good.test", "*.wide.test", "rebind.test", "turned.test", "mixed.test", "metadata.test", "mapped.test", "nat64.test", "zero.test", "nowhere.test"} {
			network.Hosts = append(network.Hosts, h+":"+port)
		}
		network.Hosts = append(network.Hosts, "good.test:"+plain)
		_ = other
		for _, c := range []struct{ name, url, want string }{
			{"the allowed host", "https://good.test:" + port + "/", "welcome to good.test"},
			{"the allowed host in capitals, with a dot", "https://GOOD.test.:" + port + "/", "welcome to"},
			{"a name below a wildcard", "https://a.wide.test:" + port + "/", "welcome to a.wide.test"},
			{"plain HTTP", "http://good.test:" + plain + "/", "plain welcome to good.test"},
			{"the wildcard's own name", "https://wide.test:" + port + "/", ""},
			{"another name at the same address", "https://bad.test:" + port + "/", ""},
			{"a name that merely ends the same", "https://evilgood.test:" + port + "/", ""},
			{"the raw address", "https://127.0.0.1:" + port + "/", ""},
			{"the raw address as a number", "https://2130706433:" + port + "/", ""},
			{"the raw address, mapped", "https://[::ffff:127.0.0.1]:" + port + "/", ""},
			{"the raw address over plain HTTP", "http://127.0.0.1:" + plain + "/", ""},
			{"a redirect to another name", "https://good.test:" + port + "/to-name", ""},
			{"a redirect to the raw address", "https://good.test:" + port + "/to-address", ""},
			{"another port", "https://good.test:1/", ""},
			{"a name that turned to another machine", "https://turned.test:" + port + "/", ""},
			{"a name with a good and a bad address", "https://mixed.test:" + port + "/", ""},
			{"a name for the metadata service", "https://metadata.test:" + port + "/", ""},
			{"a name for a mapped address", "https://mapped.test:" + port + "/", ""},
			{"a name for a translated address", "https://nat64.test:" + port + "/", ""},
			{"a name for the null address", "https://zero.test:" + port + "/", ""},
			{"a name that does not resolve", "https://nowhere.test:" + port + "/", ""},
		} {
			t.Run(c.name, func(t *testing.T) {
				b := b.on(t)
				res := b.fetch(network, c.url)
				if c.want == "" {
					// Loopback is exempt from proxying in the client, so the
					// raw address fails by not being there at all.
					if res.OK() || strings.Contains(res.Stdout.String(), "wrong machine") {
						t.Errorf("wanted a refusal, got %s", res.Stdout)
					}
					return
				}
				if !strings.Contains(res.Stdout.String(), c.want) {
					t.Errorf("wanted %q, got %s%s %v", c.want, res.Stdout, res.Stderr, res.Requests)
				}
			})
		}
		t.Run("a neighbour's name inside the tunnel", func(t *testing.T) {
			res := b.on(t).fetch(network, "https://good.test:"+port+"/", "bad.test")
			if res.OK() || len(res.Requests) != 2 || !strings.Contains(res.Requests[1].Refused, "bad.test") {
				t.Errorf("got %s %+v", res.Stdout, res.Requests)
			}
		})
		t.Run("past the proxy", func(t *testing.T) {
			if res := b.on(t).fetch(network, "https://127.0.0.1:"+port+"/", "direct"); res.OK() {
				t.Errorf("got %s", res.Stdout)
			}
		})
	})
}

func TestANameIsResolvedOnceForARun(t *testing.T) {
	onEach(t, func(t *testing.T, b *box) {
		port := site(t, "127.0.0.1:0", true, say("right machine"))
		site(t, "127.0.0.2:"+port, true, say("wrong machine"))
		names := &book{answers: map[string][][]string{"rebind.test": {{"127.0.0.1"}, {"127.0.0.2"}}}}
		s := b.spec("for i in 1 2 3; do ./attempt attempt fetch https://rebind.test:" + port + "/; done")
		s.Network = &sandbox.Network{
			Hosts: []string{"rebind.test:" + port}, Resolver: names,
			// Both addresses are suitable: only the pin keeps the second out.
			Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		}
		res := b.run(s)
		if got := res.Stdout.String(); strings.Count(got, "right machine") != 3 || strings.Contains(got, "wrong") {
			t.Errorf("got %s", got)
		}
		if n := names.asked["rebind.test"]; n != 1 {
			t.Errorf("the name was resolved %d times", n)
		}
		if len(res.Requests) != 3 || res.Requests[0].Refused != "" || res.Requests[0].Host != "rebind.test" {
			t.Errorf("wanted three requests on record, got %+v", res.Requests)
		}
	})
}

func TestTheRecordSaysWhatWasRefusedAndWhy(t *testing.T) {
	onEach(t, func(t *testing.T, b *box) {
		res := b.fetch(&sandbox.Network{Hosts: []string{"good.test"}}, "https://bad.test/")
		if len(res.Requests) != 1 || !strings.Contains(res.Requests[0].Refused, "not on the list") || res.Requests[0].Addr.IsValid() {
			t.Errorf("got %+v", res.Requests)
		}
	})
}

func TestWithoutANetworkThereIsNoProxyToTalkTo(t *testing.T) {
	onEach(t, func(t *testing.T, b *box) {
		if res := b.sh("env | grep -i proxy"); res.Stdout.Total != 0 {
			t.Errorf("got %s", res.Stdout)
		}
		b.refused("dial", "tcp", "127.0.0.1:47128")
	})
}

func TestTheProxyJudgesWhatIsReallyAsked(t *testing.T) {
	onEach(t, func(t *testing.T, b *box) {
		port := site(t, "127.0.0.1:0", false, say("heard"))
		network := &sandbox.Network{
			Hosts:    []string{"good.test:" + port},
			Private:  []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
			Resolver: &book{answers: map[string][][]string{"good.test": {{"127.0.0.1"}}}},
		}
		for name, c := range map[string]struct{ request, want string }{
			"a tunnel to the raw address":  {"CONNECT 127.0.0.1:PORT HTTP/1.1\r\nHost: good.test:PORT\r\n\r\n", "403"},
			"a tunnel to the mapped one":   {"CONNECT [::ffff:127.0.0.1]:PORT HTTP/1.1\r\nHost: good.test:PORT\r\n\r\n", "403"},
			"a tunnel with a loose Host":   {"CONNECT bad.test:PORT HTTP/1.1\r\nHost: good.test:PORT\r\n\r\n", "403"},
			"a host with user information": {"CONNECT good.test@bad.test:PORT HTTP/1.1\r\nHost: x\r\n\r\n", "40"},
			"a URL with user information":  {"GET http://good.test:PORT@127.0.0.1:PORT/ HTTP/1.1\r\nHost: good.test\r\n\r\n", "403"},
			"the raw address over HTTP":    {"GET http://127.0.0.1:PORT/ HTTP/1.1\r\nHost: good.test:PORT\r\n\r\n", "403"},
			"no proxy request at all":      {"GET / HTTP/1.1\r\nHost: good.test:PORT\r\n\r\n", "400"},
			"a foreign Host header":        {"GET http://good.test:PORT/ HTTP/1.1\r\nHost: bad.test\r\n\r\n", "200\nheard to good.test:PORT"},
			"an escaped zero byte":         {"CONNECT bad.test%00.good.test:PORT HTTP/1.1\r\nHost: x\r\n\r\n", "40"},
		} {
			t.Run(name, func(t *testing.T) {
				b := b.on(t)
				s := b.spec("")
				s.Argv = []string{b.self, attemptArg, "raw", strings.ReplaceAll(c.request, "PORT", port)}
				s.Network = network
				res := b.run(s)
				if got := res.Stdout.String(); !strings.HasPrefix(got, strings.ReplaceAll(c.want, "PORT", port)) {
					t.Errorf("wanted %s, got %s", c.want, got)
				}
			})
		}
	})
}
