package sandbox_test

import (
	"bytes"
	"strings"
	"testing"

	"passepartout/internal/sandbox"
)

// FuzzOutputKeepsHeadAndTail compares the ring with plainly cutting the whole.
func FuzzOutputKeepsHeadAndTail(f *testing.F) {
	f.Add([]byte("abcdefghij"), 4, 3)
	f.Add([]byte(""), 0, 1)
	f.Add([]byte("0123456789abcdef0123456789abcdef"), 10, 7)
	f.Fuzz(func(t *testing.T, data []byte, keep, step int) {
		keep, step = max(keep, 0)%64, max(step, 1)%17+1
		var pieces [][]byte
		for rest := data; len(rest) > 0; {
			n := min(step, len(rest))
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
			step = step%13 + 1
		}
		got := sandbox.Collect(keep, pieces...)
		half := max(keep/2, 1)
		head := data[:min(half, len(data))]
		rest := data[len(head):]
		tail := rest[max(0, len(rest)-half):]
		if !bytes.Equal(got.Head, head) || !bytes.Equal(got.Tail, tail) || got.Total != int64(len(data)) {
			t.Errorf("keep %d of %q: got %q and %q, wanted %q and %q", keep, data, got.Head, got.Tail, head, tail)
		}
		if got.Cut() == 0 && got.String() != string(data) {
			t.Errorf("nothing cut, but %q is not %q", got, data)
		}
	})
}

func TestHostEntriesAdmitWhatTheySay(t *testing.T) {
	for _, c := range []struct {
		entry, host string
		port        int
		want        bool
	}{
		{"example.org", "example.org", 443, true},
		{"example.org", "EXAMPLE.ORG.", 80, true},
		{"example.org", "example.org", 22, false},
		{"example.org:22", "example.org", 22, true},
		{"example.org:22", "example.org", 443, false},
		{"example.org", "www.example.org", 443, false},
		{"example.org", "notexample.org", 443, false},
		{"example.org", "example.org.evil.net", 443, false},
		{"*.example.org", "www.example.org", 443, true},
		{"*.example.org", "a.b.example.org", 443, true},
		{"*.example.org", "example.org", 443, false},
		{"*.example.org", "notexample.org", 443, false},
		{"10.0.0.1:8080", "10.0.0.1", 8080, true},
		{"10.0.0.1:8080", "::ffff:10.0.0.1", 8080, true},
		{"10.0.0.1:8080", "10.0.0.1.example.org", 8080, false},
		{"[::1]:8080", "::1", 8080, true},
	} {
		got, err := sandbox.Admits(c.entry, c.host, c.port)
		if err != nil || got != c.want {
			t.Errorf("%s, %s:%d: wanted %v, got %v %v", c.entry, c.host, c.port, c.want, got, err)
		}
	}
}

// FuzzHostsAreReadOneWay wants a host that an entry admits to be made of
// characters that no other program reads differently.
func FuzzHostsAreReadOneWay(f *testing.F) {
	for _, s := range []string{"example.org", "a\x00.example.org", "evil.com#.example.org", "x@example.org", "[::1]", "::ffff:1.2.3.4", "fe80::1%eth0", "ex\u00e4mple.org", "..", "www.example.org."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, host string) {
		ok, err := sandbox.Admits("*.example.org", host, 443)
		if err != nil || !ok {
			return
		}
		for _, c := range strings.ToLower(host) {
			if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-_.", c) {
				t.Errorf("admitted %q", host)
			}
		}
		if !strings.HasSuffix(strings.TrimSuffix(strings.ToLower(host), "."), ".example.org") {
			t.Errorf("admitted %q", host)
		}
	})
}
