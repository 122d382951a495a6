package host

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// parseIPv4 reads every spelling inet_aton accepts: one to four parts, each decimal, octal or hexadecimal. As in browsers, a name whose
// last label is a number is an address or nothing.
func parseIPv4(s string) (addr netip.Addr, isIP bool, err error) {
	last := s[strings.LastIndexByte(s, '.')+1:]
	if !numeric(last) {
		return netip.Addr{}, false, nil
	}
	parts := strings.Split(s, ".")
	if len(parts) > 4 {
		return netip.Addr{}, true, fmt.Errorf("address %q has %d parts, want at most 4", s, len(parts))
	}
	var v uint64
	for i, p := range parts {
		n, err := number(p)
		if err != nil {
			return netip.Addr{}, true, fmt.Errorf("address %q: %w", s, err)
		}
		room := uint64(1) << 8
		if i == len(parts)-1 {
			room = 1 << (8 * (5 - len(parts)))
		}
		if n >= room {
			return netip.Addr{}, true, fmt.Errorf("address %q: part %q is out of range", s, p)
		}
		if i == len(parts)-1 {
			v = v<<(8*(5-len(parts))) | n
		} else {
			v = v<<8 | n
		}
	}
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}), true, nil
}

func numeric(s string) bool {
	if hex, ok := strings.CutPrefix(s, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return s != "" && strings.Trim(s, "0123456789") == ""
}

func number(s string) (uint64, error) {
	switch {
	case s == "0x":
		return 0, nil
	case strings.HasPrefix(s, "0x"):
		return strconv.ParseUint(s[2:], 16, 64)
	case len(s) > 1 && s[0] == '0':
		return strconv.ParseUint(s[1:], 8, 64)
	}
	return strconv.ParseUint(s, 10, 64)
}

// ranges is read from the top; the first prefix that holds an address gives its class.
var ranges = []struct {
	prefix netip.Prefix
	class  Class
}{
	{netip.MustParsePrefix("169.254.169.0/24"), Metadata},   // AWS, GCP, Azure, OpenStack, DigitalOcean
	{netip.MustParsePrefix("169.254.170.0/24"), Metadata},   // AWS container credentials
	{netip.MustParsePrefix("169.254.42.42/32"), Metadata},   // Scaleway
	{netip.MustParsePrefix("100.100.100.200/32"), Metadata}, // Alibaba
	{netip.MustParsePrefix("192.0.0.192/32"), Metadata},     // Oracle
	{netip.MustParsePrefix("168.63.129.16/32"), Metadata},   // Azure wire server
	{netip.MustParsePrefix("fd00:ec2::/32"), Metadata},      // AWS
	{netip.MustParsePrefix("fd20:ce::/32"), Metadata},       // GCP
	{netip.MustParsePrefix("127.0.0.0/8"), Loopback},
	{netip.MustParsePrefix("::1/128"), Loopback},
	{netip.MustParsePrefix("0.0.0.0/8"), Private},
	{netip.MustParsePrefix("10.0.0.0/8"), Private},
	{netip.MustParsePrefix("100.64.0.0/10"), Private},
	{netip.MustParsePrefix("169.254.0.0/16"), Private},
	{netip.MustParsePrefix("172.16.0.0/12"), Private},
	{netip.MustParsePrefix("192.0.0.0/24"), Private},
	{netip.MustParsePrefix("192.0.2.0/24"), Private},
	{netip.MustParsePrefix("192.168.0.0/16"), Private},
	{netip.MustParsePrefix("198.18.0.0/15"), Private},
	{netip.MustParsePrefix("198.51.100.0/24"), Private},
	{netip.MustParsePrefix("203.0.113.0/24"), Private},
	{netip.MustParsePrefix("224.0.0.0/3"), Private},
	{netip.MustParsePrefix("::/128"), Private},
	{netip.MustParsePrefix("100::/64"), Private},
	{netip.MustParsePrefix("2001:db8::/32"), Private},
	{netip.MustParsePrefix("3fff::/20"), Private},
	{netip.MustParsePrefix("5f00::/16"), Private},
	{netip.MustParsePrefix("fc00::/7"), Private},
	{netip.MustParsePrefix("fe80::/9"), Private},
	{netip.MustParsePrefix("ff00::/8"), Private},
}

// tunnels are IPv6 prefixes that carry an IPv4 address at a byte offset, inverted in Teredo's case.
var tunnels = []struct {
	prefix netip.Prefix
	offset int
	invert byte
}{
	{netip.MustParsePrefix("::ffff:0:0/96"), 12, 0},
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12, 0},
	{netip.MustParsePrefix("64:ff9b::/96"), 12, 0},
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12, 0},
	{netip.MustParsePrefix("2002::/16"), 2, 0},
	{netip.MustParsePrefix("2001::/32"), 12, 0xff},
	{netip.MustParsePrefix("::/96"), 12, 0},
}

func classOfAddr(addr netip.Addr) Class {
	addr = addr.Unmap().WithZone("")
	for _, r := range ranges {
		if r.prefix.Contains(addr) {
			return r.class
		}
	}
	if !addr.Is6() {
		return Public
	}
	for _, t := range tunnels {
		if t.prefix.Contains(addr) {
			b := addr.As16()
			v4 := b[t.offset : t.offset+4]
			return classOfAddr(netip.AddrFrom4([4]byte{v4[0] ^ t.invert, v4[1] ^ t.invert, v4[2] ^ t.invert, v4[3] ^ t.invert}))
		}
	}
	return Public
}

// names gives the class of well-known names; a leading dot takes the names below as well.
var names = []struct {
	name  string
	class Class
}{
	{"metadata", Metadata},
	{"metadata.google.internal", Metadata},
	{".metadata.goog", Metadata},
	{".metadata.google.internal", Metadata},
	{"metadata.azure.com", Metadata},
	{"metadata.azure.internal", Metadata},
	{"metadata.tencentyun.com", Metadata},
	{"metadata.platformequinix.com", Metadata},
	{"metadata.packet.net", Metadata},
	{"metadata.udhcpc", Metadata},
	{"instance-data", Metadata},
	{".instance-data.ec2.internal", Metadata},
	{".localhost", Loopback},
	{"localhost.localdomain", Loopback},
	{"localhost6.localdomain6", Loopback},
	{"localhost4", Loopback},
	{"localhost6", Loopback},
	{"ip6-localhost", Loopback},
	{"ip6-loopback", Loopback},
	{".localtest.me", Loopback},
	{".lvh.me", Loopback},
	{".vcap.me", Loopback},
	{".lacolhost.com", Loopback},
	{".localhost.direct", Loopback},
	{".internal", Private},
	{".local", Private},
	{".localdomain", Private},
	{".lan", Private},
	{".home", Private},
	{".home.arpa", Private},
	{".intranet", Private},
	{".corp", Private},
	{".private", Private},
	{".svc", Private},
	{".consul", Private},
	{".onion", Private},
	{".i2p", Private},
	{".in-addr.arpa", Private},
	{".ip6.arpa", Private},
}

// mirrors are public domains that answer with the address written in the name.
var mirrors = []string{".nip.io", ".sslip.io", ".xip.io", ".traefik.me", ".1u.ms", ".rbndr.us", ".ip.sb", ".my.local-ip.co", ".backname.io", ".ipq.co"}

func classOfName(name string) Class {
	for _, n := range names {
		if name == strings.TrimPrefix(n.name, ".") || n.name[0] == '.' && strings.HasSuffix(name, n.name) {
			return n.class
		}
	}
	for _, m := range mirrors {
		if head, ok := strings.CutSuffix(name, m); ok {
			return classOfMirror(head)
		}
	}
	if !strings.Contains(name, ".") {
		return Private
	}
	return Public
}

// classOfMirror reads the address in a mirror's name: dotted, dashed, or eight hexadecimal digits. None found counts as private, since
// nobody outside can tell what it answers.
func classOfMirror(head string) Class {
	var run []byte
	for part := range strings.FieldsFuncSeq(head, func(r rune) bool { return r == '.' || r == '-' }) {
		n, err := strconv.ParseUint(part, 10, 8)
		if err != nil {
			run = run[:0]
			if len(part) == 8 {
				if v, err := strconv.ParseUint(part, 16, 32); err == nil {
					return classOfAddr(netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}))
				}
			}
			continue
		}
		if run = append(run, byte(n)); len(run) == 4 {
			return classOfAddr(netip.AddrFrom4([4]byte(run)))
		}
	}
	return Private
}
