package act

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"passepartout/internal/host"
	"passepartout/internal/vault"
)

// A Credential says that a host is shown an entry of the vault, and how. It is the
// owner's word: it stands in their settings, is resolved when a permitted request
// leaves, and no action can name one.
type Credential struct {
	Host   string // with its port, unless that is the usual one
	Header string // "" is Authorization, with the value as a bearer's token
	Name   string // of the entry
}

// ParseCredential reads HOST=NAME or HOST=HEADER:NAME.
func ParseCredential(text string) (Credential, error) {
	h, rest, ok := strings.Cut(text, "=")
	if !ok {
		return Credential{}, fmt.Errorf("want HOST=NAME or HOST=HEADER:NAME, found %q", text)
	}
	c := Credential{Host: strings.ToLower(strings.TrimSpace(h)), Name: strings.TrimSpace(rest)}
	if header, name, ok := strings.Cut(c.Name, ":"); ok {
		c.Header, c.Name = header, name
		if header == "" || strings.ContainsFunc(header, func(r rune) bool {
			return r != '-' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z')
		}) {
			return Credential{}, fmt.Errorf("want the name of a header, found %q", header)
		}
	}
	u, err := url.Parse("https://" + c.Host + "/")
	if err != nil || u.Host != c.Host || u.Port() == "443" {
		return Credential{}, fmt.Errorf("want one host's name, found %q", c.Host)
	}
	if parsed, err := host.Parse(u.String()); err != nil || parsed.Name() != u.Hostname() {
		return Credential{}, fmt.Errorf("want one host's name, found %q", c.Host)
	}
	if err := vault.CheckName(c.Name); err != nil {
		return Credential{}, fmt.Errorf("entry of the vault: %w", err)
	}
	return c, nil
}

// header is what a host is shown besides the request, and the name of what is used;
// nothing for a host no credential is for, and for an address without encryption.
func (w Web) header(address string) (header map[string]string, used string, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, "", err
	}
	name := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if port := u.Port(); port != "" && port != "443" {
		name += ":" + port
	}
	i := slices.IndexFunc(w.Credentials, func(c Credential) bool { return c.Host == name })
	if i < 0 || u.Scheme != "https" {
		return nil, "", nil
	}
	c := w.Credentials[i]
	value, ok := "", false
	if w.Value != nil {
		value, ok = w.Value(c.Name)
	}
	if !ok {
		return nil, "", fmt.Errorf("the settings say that %s is shown vault:%s, and the vault has no such entry now", name, c.Name)
	}
	if c.Header == "" {
		return map[string]string{"Authorization": "Bearer " + value}, "vault:" + c.Name, nil
	}
	return map[string]string{c.Header: value}, "vault:" + c.Name, nil
}
