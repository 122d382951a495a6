// Package host finds out which machine a piece of text would make us talk to.
//
// [Parse] reads one address in any form that some client would accept (URL, host:port, user@host, scp's host:path, every spelling of an
// IP address) into a [Host]; [Host.Class] says what kind of machine it names; [List.Allows] compares it with an allow-list; [FindAll]
// picks every address out of free text.
//
// The rule a newcomer will break: never compare host names as strings. Two clients that disagree about where a host name ends are an
// attack, so what they read differently (backslashes, control characters, percent signs in a host) is an error here, not a guess. A name
// is compared whole or at a dot, never as a suffix.
package host

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// Class is what kind of machine a host is.
type Class uint8

// The classes, the zero value being what could not be parsed. No list may admit Invalid or Metadata.
const (
	Invalid  Class = iota
	Metadata       // hands out a cloud machine's credentials
	Private        // reachable only from here: private, shared, link-local, multicast, reserved, or a name without a public suffix
	Loopback       // this machine
	Public
)

var classNames = [...]string{"invalid", "metadata", "private", "loopback", "public"}

// String returns the class in lower case.
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return "invalid"
}

// Host is one parsed address. The zero value is invalid.
type Host struct {
	name   string // canonical: lower case, ASCII, no trailing dot, addresses in their standard form
	port   string
	scheme string
	user   bool
	addr   netip.Addr
	class  Class
}

// Name returns the canonical name: lower case, punycode, no trailing dot, an IP address in standard form. For a host found in text that
// could not be parsed it is the text itself, and the class is Invalid.
func (h Host) Name() string { return h.name }

// Port returns the port as written, or the empty string.
func (h Host) Port() string { return h.port }

// Scheme returns the URL scheme in lower case, or the empty string.
func (h Host) Scheme() string { return h.scheme }

// HasUser reports whether the address carried a user name or password before the host, the usual way to make one host look like another.
func (h Host) HasUser() bool { return h.user }

// Class returns what kind of machine this is.
func (h Host) Class() Class { return h.class }

// String returns the name, with the port when there is one.
func (h Host) String() string {
	if h.port == "" {
		return h.name
	}
	if h.addr.Is6() {
		return "[" + h.name + "]:" + h.port
	}
	return h.name + ":" + h.port
}

// ErrNoHost is wrapped by errors about text that names no host at all, such as data: URLs.
var ErrNoHost = errors.New("no host")

// local schemes carry no host, or none that is contacted by opening them.
var hostless = map[string]bool{"data": true, "javascript": true, "about": true, "blob": true, "urn": true, "tel": true, "vault": true, "file": true, "view-source": true, "jar": true, "cid": true, "mid": true, "vbscript": true, "magnet": true}

// Parse reads one address. It refuses whatever two clients could understand differently.
func Parse(s string) (Host, error) {
	if len(s) > 8192 {
		return Host{}, fmt.Errorf("address of %d bytes, want at most 8192", len(s))
	}
	s = strings.Trim(s, " ")
	if c, bad := ambiguous(s); bad {
		return Host{}, fmt.Errorf("address %.80q contains %q, which clients read differently", s, c)
	}
	scheme, authority, err := divide(s)
	if err != nil {
		return Host{}, err
	}
	h := Host{scheme: scheme}
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		h.user = true
		authority = authority[i+1:]
	}
	name, port, err := cutPort(authority)
	if err != nil {
		return Host{}, fmt.Errorf("address %.80q: %w", s, err)
	}
	h.port = port
	if err := h.setName(name); err != nil {
		return Host{}, fmt.Errorf("address %.80q: %w", s, err)
	}
	return h, nil
}

// ambiguous finds a character that may not appear anywhere in an address.
func ambiguous(s string) (rune, bool) {
	for _, r := range s {
		switch {
		case r <= ' ', r == 0x7f, r == '\\', r == 0xFFFD, r >= 0x80 && r < 0xA1, r == 0xAD, r == 0x034F, r == 0x061C, r == 0xFEFF:
			return r, true
		case r >= 0x2000 && r <= 0x200F, r >= 0x2028 && r <= 0x202F, r >= 0x205F && r <= 0x206F, r >= 0xFE00 && r <= 0xFE0F, r >= 0xE0000 && r <= 0xE0FFF:
			return r, true
		}
	}
	return 0, false
}

// divide separates the scheme from user, host and port, and drops path, query and fragment.
func divide(s string) (scheme, authority string, err error) {
	if rest, ok := strings.CutPrefix(s, "//"); ok {
		return "", untilPath(rest), nil
	}
	if addr, err := netip.ParseAddr(s); err == nil && addr.Is6() {
		return "", "[" + s + "]", nil
	}
	if head, rest, ok := strings.Cut(s, ":"); ok && isScheme(head) {
		low := strings.ToLower(head)
		slashes := strings.HasPrefix(rest, "/")
		switch {
		case hostless[low]:
			return "", "", fmt.Errorf("address %.80q: scheme %s: %w", s, low, ErrNoHost)
		case strings.HasPrefix(rest, "//"), slashes && webScheme(low), webScheme(low) && !isPort(untilPath(rest)), low == "mailto":
			return low, untilPath(strings.TrimLeft(rest, "/")), nil
		case strings.HasPrefix(rest, ":"): // git's transport::address
			inner, a, err := divide(strings.TrimLeft(rest, ":"))
			if inner == "" {
				inner = low
			}
			return inner, a, err
		}
	}
	// Without a scheme: host/path, host:port/path, or scp's user@host:path, whose colon comes before any slash.
	authority = untilPath(s)
	at := strings.LastIndexByte(authority, '@')
	if i := strings.IndexByte(authority[at+1:], ':'); i >= 0 && !strings.HasPrefix(authority[at+1:], "[") {
		if rest := authority[at+1+i+1:]; !isPort(rest) {
			return "", authority[:at+1+i], nil
		}
	}
	return "", authority, nil
}

func untilPath(s string) string {
	if i := strings.IndexAny(s, "/?#"); i >= 0 {
		return s[:i]
	}
	return s
}

func isScheme(s string) bool {
	if s == "" || !letter(s[0]) {
		return false
	}
	for i := 1; i < len(s); i++ {
		if c := s[i]; !letter(c) && !digit(c) && c != '+' && c != '-' && c != '.' {
			return false
		}
	}
	return true
}

// webScheme reports the schemes whose clients supply missing slashes themselves.
func webScheme(s string) bool {
	switch s {
	case "http", "https", "ftp", "ftps", "ws", "wss":
		return true
	}
	return false
}

func isPort(s string) bool {
	return len(s) <= 5 && strings.Trim(s, "0123456789") == ""
}

func cutPort(authority string) (name, port string, err error) {
	if rest, ok := strings.CutPrefix(authority, "["); ok {
		end := strings.IndexByte(rest, ']')
		if end < 0 {
			return "", "", errors.New("bracket without end")
		}
		after := rest[end+1:]
		if after != "" && (after[0] != ':' || !isPort(after[1:])) {
			return "", "", fmt.Errorf("%q after the closing bracket, want a port", after)
		}
		return rest[:end+1], strings.TrimPrefix(after, ":"), nil
	}
	name, port, _ = strings.Cut(authority, ":")
	if !isPort(port) {
		return "", "", fmt.Errorf("port %.20q, want at most five digits", port)
	}
	return name, port, nil
}

// setName fills in name, addr and class. A trailing "]" marks an IPv6 literal.
func (h *Host) setName(name string) error {
	if lit, ok := strings.CutSuffix(name, "]"); ok {
		lit, _, _ = strings.Cut(lit, "%")
		addr, err := netip.ParseAddr(lit)
		if err != nil || !addr.Is6() {
			return fmt.Errorf("%q in brackets, want an IPv6 address", lit)
		}
		h.setAddr(addr)
		return nil
	}
	ascii, err := toASCII(name)
	if err != nil {
		return err
	}
	ascii = strings.TrimSuffix(ascii, ".")
	if ascii == "" {
		return ErrNoHost
	}
	if addr, isIP, err := parseIPv4(ascii); isIP {
		if err != nil {
			return err
		}
		h.setAddr(addr)
		return nil
	}
	if err := checkName(ascii); err != nil {
		return err
	}
	h.name, h.class = ascii, classOfName(ascii)
	return nil
}

func (h *Host) setAddr(addr netip.Addr) {
	h.addr, h.class = addr.Unmap(), classOfAddr(addr)
	h.name = h.addr.String()
}

func checkName(name string) error {
	if len(name) > 253 {
		return fmt.Errorf("name of %d bytes, want at most 253", len(name))
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 {
			return fmt.Errorf("name %.80q has a label of %d bytes, want 1 to 63", name, len(label))
		}
		for i := 0; i < len(label); i++ {
			if c := label[i]; !letter(c) && !digit(c) && c != '-' && c != '_' {
				return fmt.Errorf("name %.80q contains %q, want letters, digits, hyphens", name, c)
			}
		}
		if label[0] == '-' || label[len(label)-1] == '-' {
			return fmt.Errorf("name %.80q has a label that begins or ends in a hyphen", name)
		}
	}
	return nil
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func digit(c byte) bool  { return c >= '0' && c <= '9' }

// List is an allow-list. An entry admits exactly the host it names; one that starts with a dot admits that domain and everything below
// it; one with a port admits only that port.
type List []string

// Allows reports whether the list admits h. Hosts that could not be parsed and metadata services are never admitted.
func (l List) Allows(h Host) bool {
	if h.class == Invalid || h.class == Metadata {
		return false
	}
	for _, entry := range l {
		if entry == h.name {
			return true
		}
		below := strings.HasPrefix(entry, ".")
		want, err := Parse(strings.TrimPrefix(entry, "."))
		if err != nil || want.port != "" && want.port != h.port {
			continue
		}
		if h.name == want.name {
			return true
		}
		if below && !h.addr.IsValid() && strings.HasSuffix(h.name, "."+want.name) {
			return true
		}
	}
	return false
}
