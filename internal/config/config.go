// Package config knows every setting, and reads them once into one value.
//
// A setting has one of three origins, the later winning: its default, the file
// env in the configuration directory, the process environment. A secret that none
// of them sets may come from the vault ([Config.WithVault]). Whatever is
// misspelt, malformed or unsafe is an error that says where it stands, what was
// wanted and, unless it is a secret, what was found. All of them are reported
// together.
//
// The central types:
//
//   - [Setting] is a row of the table from which all else is derived: loading,
//     [Config.List], [Example]. A new setting is a new row and a new field.
//   - [Config] is the result, passed to whoever needs it. Nobody else reads the
//     environment.
//   - [Secret] is a value that no printing, logging or encoding shows.
//   - [Origin] is where a value came from.
//   - [Edit] changes the settings file, keeping its comments.
//
// The rule a newcomer will break: an empty value is the same as none. To have
// an empty list where the default is not empty, write none.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"passepartout/internal/sexp"
)

// A Config is all settings, checked. It does not change once it is loaded and
// may be shared. Printing it shows no secret.
type Config struct {
	MemexDir   string // the user's Org files
	ConfigDir  string
	StateDir   string // journal, history, index
	DataDir    string // skills
	RuntimeDir string // the socket

	User      string // how to address the person
	Assistant string // what the agent calls itself

	SocketPath string
	TCPAddr    string // loopback address and port, "" for none
	TokenFile  string // what TCP clients prove they know
	MaxClients int

	Cascade        []string          // providers in the order they are tried
	Keys           map[string]Secret // by provider; only those that are set
	OllamaURL      string
	LocalURL       string // an OpenAI-compatible server
	RequestTimeout time.Duration
	ContextTokens  int
	Routes         []string // tier/slot=provider/model
	Prices         []string // provider/model=in:out
	Consensus      int
	RecordFile     string

	EmbeddingProvider string // embedded, hashing, local or openai
	EmbeddingModel    string // "" for the provider's usual one
	EmbeddingURL      string // "" for the provider's usual address

	TurnBudget, SessionBudget, JobBudget, DayBudget, MonthBudget string // dollars, or none

	DefaultActuator string
	Diary           string // "none", "trace", "talk" or "all"
	Notices         string // "local", "away" or "always"

	PrivacyTags    []string
	Sandbox        string   // auto or require
	AllowHosts     []string // commands may reach these without being asked about
	WebCredentials []string // which host is shown which entry of the vault
	WriteRoots     []string // commands may write below these
	TrySeconds     int      // a command may be tried before a person is asked
	UndoMB         int      // MiB of old contents kept
	UndoFileMB     int      // MiB of the largest file kept
	ApprovalExpiry time.Duration
	VaultPassFile  string   // holds the vault's passphrase, "" for none
	Approvers      []string // channels and senders whose answers count; none: all of the owner's
	ApproveFrom    string   // anywhere, or elsewhere than where it was asked

	LogLevel     string // debug, info, warn or error
	JournalBytes int    // size at which a journal segment is full

	channels map[string]Secret // settings of channels, by key; only those that have a value
	values   map[string]string // as shown; secrets are not in it
	origins  map[string]Origin
}

// An Origin is where the value of a setting came from. The zero Origin is its
// default.
type Origin struct {
	File  string // "" unless it came from a file
	Line  int
	Env   bool // it came from the process environment
	Vault bool // it came from the vault
}

// IsDefault reports whether nobody set the value.
func (o Origin) IsDefault() bool { return o == Origin{} }

// String is "default", "environment", "vault", or file:line.
func (o Origin) String() string {
	switch {
	case o.Env:
		return "environment"
	case o.Vault:
		return "vault"
	case o.File != "":
		return fmt.Sprintf("%s:%d", o.File, o.Line)
	}
	return "default"
}

// A ReadFunc returns a file's contents and permissions. For a file that does
// not exist the error is [fs.ErrNotExist].
type ReadFunc func(name string) ([]byte, fs.FileMode, error)

// ReadFile is the [ReadFunc] of the real file system.
func ReadFile(name string) (_ []byte, _ fs.FileMode, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	text := make([]byte, min(info.Size(), maxFile+1))
	n, err := f.ReadAt(text, 0)
	if n < len(text) && err != nil {
		return nil, 0, err
	}
	return text[:n], info.Mode(), nil
}

const maxFile = 1 << 20

// Default returns the settings of someone who has set nothing. Of the
// environment it uses HOME and the XDG directories.
func Default(environ []string) (Config, error) {
	var bare []string
	for _, kv := range environ {
		if k, _, _ := strings.Cut(kv, "="); k == "HOME" || strings.HasPrefix(k, "XDG_") {
			bare = append(bare, kv)
		}
	}
	return Load(bare, func(string) ([]byte, fs.FileMode, error) { return nil, 0, fs.ErrNotExist })
}

// Load returns the settings given by an environment as [os.Environ] returns it
// and by the file env in the configuration directory, if there is one.
func Load(environ []string, read ReadFunc) (Config, error) {
	l := loader{
		c:   Config{Keys: map[string]Secret{}, channels: map[string]Secret{}, values: map[string]string{}, origins: map[string]Origin{}},
		env: map[string]string{},
		raw: map[string]rawValue{},
	}
	l.environment(environ)
	l.file(read)
	for i := range table {
		l.resolve(&table[i])
	}
	l.cross()
	if len(l.errs) > 0 {
		return Config{}, errors.Join(l.errs...)
	}
	return l.c, nil
}

// A rawValue is a value as written, and where.
type rawValue struct {
	text   string
	origin Origin
}

// A loader gathers values and complaints.
type loader struct {
	c    Config
	env  map[string]string // the whole environment
	raw  map[string]rawValue
	errs []error

	homeless bool // it was said that there is no HOME
}

func (l *loader) errorf(o Origin, format string, args ...any) {
	l.errs = append(l.errs, fmt.Errorf("%s: %w", o, fmt.Errorf(format, args...)))
}

// environment takes the settings out of the process environment. Only names
// with our prefix can be misspelt: the others are other people's.
func (l *loader) environment(environ []string) {
	for _, kv := range environ {
		key, value, _ := strings.Cut(kv, "=")
		l.env[key] = value
		origin := Origin{Env: true}
		switch _, known := find(key); {
		case known && value != "":
			l.raw[key] = rawValue{value, origin}
		case !known && strings.HasPrefix(key, prefix) && !slices.Contains(foreign, key):
			l.unknown(origin, key)
		}
	}
}

func (l *loader) unknown(o Origin, key string) {
	if near, ok := sexp.Nearest(key, keys()); ok {
		l.errorf(o, "there is no setting %s: did you mean %s?", key, near)
		return
	}
	l.errorf(o, "there is no setting %s: see passepartout config list", key)
}

// file reads the settings file. What the environment sets is left alone, but
// checked for spelling all the same.
func (l *loader) file(read ReadFunc) {
	dir, err := l.configDir()
	if err != nil {
		return // resolve complains about it
	}
	name := filepath.Join(dir, "env")
	text, mode, err := read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		l.errs = append(l.errs, fmt.Errorf("settings file: %w", err))
		return
	}
	if len(text) > maxFile {
		l.errs = append(l.errs, fmt.Errorf("settings file %s has %d bytes: want at most %d", name, len(text), maxFile))
		return
	}
	first := map[string]int{}
	holds := "" // a secret in the file
	for _, e := range parseFile(name, text) {
		if e.err != nil {
			l.errorf(e.origin, "%w", e.err)
			continue
		}
		s, known := find(e.key)
		if !known {
			l.unknown(e.origin, e.key)
			continue
		}
		if first[e.key] > 0 {
			l.errorf(e.origin, "%s is set twice, first in line %d", e.key, first[e.key])
			continue
		}
		first[e.key] = e.origin.Line
		if s.Secret && e.value != "" {
			holds = e.key
		}
		if s.EnvOnly {
			l.errorf(e.origin, "%s says where this file is: want it in the process environment", e.key)
			continue
		}
		if _, set := l.raw[e.key]; !set && e.value != "" {
			l.raw[e.key] = rawValue{e.value, e.origin}
		}
	}
	if mode.Perm()&0o002 != 0 {
		l.errs = append(l.errs, fmt.Errorf("settings file %s has mode %04o: want one that others cannot write, since it says what commands may reach (chmod 600 %s)",
			name, mode.Perm(), name))
	}
	if holds != "" && mode.Perm()&0o077 != 0 {
		l.errs = append(l.errs, fmt.Errorf("settings file %s holds %s and has mode %04o: want 0600, for its owner alone (chmod 600 %s)",
			name, holds, mode.Perm(), name))
	}
}

// configDir finds the directory of the settings file before it can be read.
func (l *loader) configDir() (string, error) {
	s, _ := find("PASSEPARTOUT_CONFIG_DIR")
	raw, set := l.raw[s.Key]
	if !set {
		return l.expand(s.Default)
	}
	return l.path(raw.text)
}

// resolve gives a setting its value. Defaults may name earlier settings, so
// the table's order matters.
func (l *loader) resolve(s *Setting) {
	raw, set := l.raw[s.Key]
	if !set {
		text, err := l.expand(s.Default)
		if err != nil {
			l.noDefault(s, err)
			return
		}
		raw.text = text
	}
	if raw.text == "" {
		return
	}
	if err := l.assign(s, raw.text); err != nil {
		found := fmt.Sprintf("%.80q", raw.text)
		if s.Secret {
			found = fmt.Sprintf("a value of %d characters", len(raw.text))
		}
		l.errorf(raw.origin, "%s: want %w, found %s", s.Key, err, found)
		return
	}
	l.c.origins[s.Key] = raw.origin
	if !s.Secret {
		l.c.values[s.Key] = show(s, &l.c, raw.text)
	}
}

// noDefault complains once for all defaults that fail for the same reason.
func (l *loader) noDefault(s *Setting, err error) {
	if errors.Is(err, errReported) || l.homeless {
		return
	}
	l.homeless = true
	l.errs = append(l.errs, fmt.Errorf("default of %s: %w", s.Key, err))
}

// maxSocketPath is what the smallest supported sockaddr_un can hold.
const maxSocketPath = 103

// cross checks what no single setting can.
func (l *loader) cross() {
	if n := len(l.c.SocketPath); n > maxSocketPath {
		l.errorf(l.c.origins["PASSEPARTOUT_SOCKET"], "PASSEPARTOUT_SOCKET: want a path of at most %d bytes, which is all a socket's name can have, found %d", maxSocketPath, n)
	}
}

// Origin returns where the value of a setting came from.
func (c Config) Origin(key string) Origin { return c.origins[key] }

// Channel returns the value of a setting as a channel is given it, "" for none:
// one of its own, or any that is no secret. Which there are is known to the channel
// and to the table, and to nothing in between.
func (c Config) Channel(key string) string {
	if v, ok := c.channels[key]; ok {
		return v.Reveal()
	}
	return c.values[key]
}

// An Item is one setting as [Config.List] shows it.
type Item struct {
	Setting Setting
	Value   string // for a secret, whether it is set
	Origin  Origin
}

// List returns every setting with its value and origin, in the table's order.
func (c Config) List() []Item {
	items := make([]Item, 0, len(table))
	for _, s := range table {
		it := Item{Setting: s, Value: c.values[s.Key], Origin: c.origins[s.Key]}
		if s.Secret {
			it.Value = "not set"
			if !it.Origin.IsDefault() {
				it.Value = "set"
			}
		}
		items = append(items, it)
	}
	return items
}
