package config

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"passepartout/internal/sexp"
)

// A Kind is how the text of a setting is understood. The zero Kind is invalid.
type Kind uint8

// The kinds of settings.
const (
	_        Kind = iota
	Text          // a few words
	Path          // absolute, or starting with ~/
	Paths         // paths separated by colons
	Words         // names separated by commas
	Hosts         // host names separated by commas
	Choice        // one of Setting.Choices
	Choices       // some of Setting.Choices, separated by commas, in order
	Number        // between Setting.Min and Setting.Max
	Duration      // such as 90s or 24h; a number alone is seconds
	URL           // http or https
	Loopback      // address and port of this machine
	Token         // a credential: printable characters without blanks
)

var kindNames = [...]string{
	"invalid", "text", "path", "paths", "words", "hosts", "choice", "choices", "number", "duration", "url", "loopback address", "token",
}

// String is the kind's name.
func (k Kind) String() string {
	if int(k) >= len(kindNames) {
		return kindNames[0]
	}
	return kindNames[k]
}

// none is how a list is written that is empty on purpose.
const none = "none"

// assign parses text as s's kind into the field it is bound to. An error reads
// as the object of "want".
func (l *loader) assign(s *Setting, text string) error {
	switch field := s.field(&l.c).(type) {
	case *string:
		v, err := l.one(s, text)
		*field = v
		return err
	case *[]string:
		v, err := l.list(s, text)
		*field = v
		return err
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil || n < s.Min || n > s.Max {
			return fmt.Errorf("a number from %d to %d", s.Min, s.Max)
		}
		*field = n
	case *time.Duration:
		d, err := duration(text)
		if err != nil || d < time.Duration(s.Min)*time.Second || d > time.Duration(s.Max)*time.Second {
			return fmt.Errorf("a duration from %v to %v, such as 90s or 24h", time.Duration(s.Min)*time.Second, time.Duration(s.Max)*time.Second)
		}
		*field = d
	case *Secret:
		if !printableKey(text) {
			return errors.New(keyForm)
		}
		*field = NewSecret(text)
	case keySlot:
		if !printableKey(text) {
			return errors.New(keyForm)
		}
		field.keys[field.provider] = NewSecret(text)
	case channelSlot:
		return l.channel(s, field, text)
	default:
		return fmt.Errorf("a field of a known type for %s", s.Key)
	}
	return nil
}

func (l *loader) channel(s *Setting, field channelSlot, text string) error {
	if s.Secret {
		if !printableKey(text) {
			return errors.New(keyForm)
		}
		field.values[field.key] = NewSecret(text)
		return nil
	}
	v, err := l.one(s, text)
	if err == nil {
		field.values[field.key] = NewSecret(v)
	}
	return err
}

// keyForm is what a credential looks like.
const keyForm = "a key of printable characters without blanks"

func printableKey(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' })
}

func (l *loader) one(s *Setting, text string) (string, error) {
	switch s.Kind {
	case Path:
		return l.path(text)
	case Choice:
		return choice(text, s.Choices)
	case URL:
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return "", errors.New("a URL such as http://127.0.0.1:11434")
		}
		return strings.TrimSuffix(text, "/"), nil
	case Loopback:
		a, err := netip.ParseAddrPort(text)
		if err != nil || !a.Addr().IsLoopback() || a.Addr().Zone() != "" {
			return "", errors.New("a loopback address and port such as 127.0.0.1:9105")
		}
		return a.String(), nil
	case Text:
		const longest = 80
		if len(text) > longest || strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsGraphic(c) }) {
			return "", fmt.Errorf("at most %d bytes of plain text", longest)
		}
		return text, nil
	default:
	}
	return "", fmt.Errorf("a %v", s.Kind)
}

func (l *loader) list(s *Setting, text string) ([]string, error) {
	if text == none {
		return nil, nil
	}
	sep := ","
	if s.Kind == Paths {
		sep = string(filepath.ListSeparator)
	}
	var out []string
	for part := range strings.SplitSeq(text, sep) {
		v, err := l.part(s, strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out, nil
}

func (l *loader) part(s *Setting, part string) (string, error) {
	switch s.Kind {
	case Paths:
		return l.path(part)
	case Choices:
		return choice(part, s.Choices)
	case Hosts:
		if !isHost(part) {
			return "", errors.New("host names such as example.org, without scheme, port or path, separated by commas")
		}
		return strings.ToLower(part), nil
	case Words:
		if part == "" || strings.ContainsFunc(part, func(c rune) bool { return !unicode.IsGraphic(c) || unicode.IsSpace(c) }) {
			return "", errors.New("words separated by commas, or " + none)
		}
		return part, nil
	default:
	}
	return "", fmt.Errorf("a list of %v", s.Kind)
}

// path returns a path as the file system knows it.
func (l *loader) path(text string) (string, error) {
	rest, tilde := strings.CutPrefix(text, "~/")
	switch {
	case text == "~" || tilde:
		home, err := l.home()
		if err != nil {
			return "", fmt.Errorf("a path that is absolute, since %w", err)
		}
		if text == "~" {
			rest = ""
		}
		return filepath.Join(home, rest), nil
	case strings.HasPrefix(text, "$"):
		return "", errors.New("a path without variables, which are not expanded: absolute, or starting with ~/")
	case !filepath.IsAbs(text):
		return "", errors.New("a path that is absolute or starts with ~/")
	}
	return filepath.Clean(text), nil
}

func (l *loader) home() (string, error) {
	if home := l.env["HOME"]; filepath.IsAbs(home) {
		return filepath.Clean(home), nil
	}
	return "", errNoHome
}

var (
	errNoHome = errors.New("HOME is not set to an absolute path")
	// errReported is about a setting that another one has no value for, which
	// is an error already.
	errReported = errors.New("depends on a setting without a value")
)

// show is a value as it took effect.
func show(s *Setting, c *Config, text string) string {
	switch field := s.field(c).(type) {
	case *string:
		return *field
	case channelSlot:
		return field.values[field.key].Reveal()
	case *[]string:
		switch {
		case len(*field) == 0:
			return none
		case s.Kind == Paths:
			return strings.Join(*field, string(filepath.ListSeparator))
		}
		return strings.Join(*field, ",")
	}
	return text
}

// expand replaces the leading $NAME of a default: a directory of the XDG base
// directory specification, or an earlier setting.
func (l *loader) expand(text string) (string, error) {
	name, ok := strings.CutPrefix(text, "$")
	if !ok {
		return text, nil
	}
	name, rest, _ := strings.Cut(name, "/")
	base, err := l.c.values[name], error(nil)
	switch {
	case name == "HOME":
		base, err = l.home()
	case strings.HasPrefix(name, "XDG_"):
		base, err = l.xdg(name)
	case base == "":
		err = errReported
	}
	if err != nil {
		return "", err
	}
	return filepath.Join(base, filepath.FromSlash(rest)), nil
}

// xdgDefaults are relative to HOME. The runtime directory has none there: it
// is made below the state directory when the system provides no better.
var xdgDefaults = map[string]string{
	"XDG_CONFIG_HOME": ".config",
	"XDG_DATA_HOME":   ".local/share",
	"XDG_STATE_HOME":  ".local/state",
}

func (l *loader) xdg(name string) (string, error) {
	if dir := l.env[name]; filepath.IsAbs(dir) { // the specification says to ignore others
		return filepath.Clean(dir), nil
	}
	if name == "XDG_RUNTIME_DIR" {
		return l.expand("$PASSEPARTOUT_STATE_DIR/run")
	}
	home, err := l.home()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, filepath.FromSlash(xdgDefaults[name])), nil
}

func choice(text string, choices []string) (string, error) {
	word := strings.ToLower(text)
	if slices.Contains(choices, word) {
		return word, nil
	}
	want := "one of " + strings.Join(choices, ", ")
	if near, ok := sexp.Nearest(word, choices); ok {
		want += " (did you mean " + near + "?)"
	}
	return "", errors.New(want)
}

func duration(text string) (time.Duration, error) {
	if n, err := strconv.ParseInt(text, 10, 32); err == nil {
		return time.Duration(n) * time.Second, nil
	}
	return time.ParseDuration(text)
}

// isHost accepts names and addresses, but no wildcard: an allowed host is one.
func isHost(s string) bool {
	if a, err := netip.ParseAddr(s); err == nil {
		return a.Zone() == ""
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		if strings.ContainsFunc(label, func(c rune) bool {
			return c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
		}) {
			return false
		}
	}
	return len(s) <= 253
}
