// Package vault keeps credentials in one encrypted file.
//
// The file vault.age holds every entry, encrypted with age to a key of the
// vault's own. Where that key is kept is the vault's [Guard]: the system's
// keyring, a passphrase, or a file beside it. Nothing is ever written to disk in
// the clear, and both files are for their owner alone.
//
// The central types:
//
//   - [Place] says where a vault lies and how its key can be had.
//   - [Vault] is one that is open: its entries in memory. [Create] and [Open]
//     make it; [Vault.Set], [Vault.Delete] and [Vault.Rotate] change the file
//     too, all or nothing; [Vault.Reload] takes up what others changed.
//   - [Ring] is the system's keyring; [SystemRing] finds the real one.
//
// The rule a newcomer will break: a value never goes into an error, a log line or
// an argument. Errors name entries.
package vault

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"filippo.io/age"
)

// Limits of what is kept.
const (
	maxName    = 64
	maxValue   = 64 << 10
	maxEntries = 10_000
	maxFile    = 64 << 20
)

// Reasons why there is no open vault.
var (
	ErrNone     = errors.New("there is no vault yet")
	ErrLocked   = errors.New("the vault is locked")
	ErrExists   = errors.New("there is a vault already")
	ErrNoEntry  = errors.New("the vault has no such entry")
	ErrExposed  = errors.New("others can read the vault's files")
	ErrTampered = errors.New("the vault's file is damaged or was made with another key")
)

// A Place is where a vault lies and how its key can be had.
type Place struct {
	Dir  string
	Ring Ring // nil: there is no keyring
	// Passphrase is asked for when the vault's key is under one; again is true
	// when a new one is chosen. Nil: nobody can be asked.
	Passphrase func(again bool) (string, error)
	Now        func() time.Time // nil: the real clock
	// Work is the cost of a passphrase, as a power of two; 0 for age's own
	// choice, which takes a second. Tests need less.
	Work int
}

// An Entry is one credential as it may be shown: without its value.
type Entry struct {
	Name string
	Set  time.Time
}

// A Vault is an open vault. It may be shared.
type Vault struct {
	place Place
	guard Guard

	mu      sync.Mutex // guards guard and what follows
	key     *age.X25519Identity
	spare   []age.Recipient // keys of failed rotations: one of them may be the one that is kept
	entries map[string]stored
}

// stored is an entry inside the encrypted file.
type stored struct {
	Value string    `json:"value"`
	Set   time.Time `json:"set"`
}

// contents are what the file decrypts to.
type contents struct {
	Version int               `json:"version"`
	Entries map[string]stored `json:"entries"`
}

const version = 1

// Create makes an empty vault where there is none.
func Create(p Place, g Guard) (*Vault, error) {
	release, err := p.lock()
	if err != nil {
		return nil, err
	}
	defer release()
	if _, err := p.read(dataFile); err == nil {
		return nil, fmt.Errorf("%w in %s", ErrExists, p.Dir)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	key, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, err
	}
	v := &Vault{place: p, guard: g, key: key, entries: map[string]stored{}}
	// The key first: data without a key is lost, a key without data is nothing.
	if err := p.keep(g, key); err != nil {
		return nil, err
	}
	return v, v.write(key.Recipient())
}

// Open reads a vault. Without one the error is [ErrNone], without its key
// [ErrLocked].
func Open(p Place) (*Vault, error) {
	raw, err := p.read(dataFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w in %s", ErrNone, p.Dir)
	}
	if err != nil {
		return nil, err
	}
	g, key, err := p.unlock()
	if err != nil {
		return nil, err
	}
	entries, err := decrypt(raw, key)
	if err != nil {
		return nil, err
	}
	return &Vault{place: p, guard: g, key: key, entries: entries}, nil
}

// Guard is how the vault's key is kept.
func (v *Vault) Guard() Guard {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.guard
}

// Reload takes up what another process has changed. Where the vault has another key
// since, that is fetched from its guard, with ask for a passphrase, nil where nobody
// can be asked now; while it cannot be had, what is open stays as it is, and the error
// says so.
func (v *Vault) Reload(ask func(again bool) (string, error)) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	raw, err := v.place.read(dataFile)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w in %s", ErrNone, v.place.Dir)
	}
	if err != nil {
		return err
	}
	entries, err := decrypt(raw, v.key)
	if err != nil {
		place := v.place
		place.Passphrase = ask
		guard, key, uerr := place.unlock()
		if uerr != nil {
			return fmt.Errorf("it has another key now: %w", uerr)
		}
		if entries, err = decrypt(raw, key); err != nil {
			return err
		}
		v.guard, v.key, v.spare = guard, key, nil
	}
	v.entries = entries
	return nil
}

// List returns the entries by name.
func (v *Vault) List() []Entry {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []Entry
	for _, name := range slices.Sorted(maps.Keys(v.entries)) {
		out = append(out, Entry{name, v.entries[name].Set})
	}
	return out
}

// Get returns a value.
func (v *Vault) Get(name string) (string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	e, ok := v.entries[name]
	if !ok {
		return "", fmt.Errorf("%w: %s", ErrNoEntry, name)
	}
	return e.Value, nil
}

// Values returns all entries, for those who must recognise them.
func (v *Vault) Values() map[string]string {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := make(map[string]string, len(v.entries))
	for name, e := range v.entries {
		out[name] = e.Value
	}
	return out
}

// Set keeps a value under a name, in the place of an older one.
func (v *Vault) Set(name, value string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if value == "" || len(value) > maxValue || !utf8.ValidString(value) || strings.ContainsRune(value, 0) {
		return fmt.Errorf("value of %s: want 1 to %d bytes of text, found %d", name, maxValue, len(value))
	}
	return v.change(func(entries map[string]stored) error {
		if _, old := entries[name]; !old && len(entries) >= maxEntries {
			return fmt.Errorf("the vault holds %d entries, which is all it takes", len(entries))
		}
		entries[name] = stored{value, v.now()}
		return nil
	})
}

// Delete forgets entries, all of them or none.
func (v *Vault) Delete(names ...string) error {
	return v.change(func(entries map[string]stored) error {
		for _, name := range names {
			if _, ok := entries[name]; !ok {
				return fmt.Errorf("%w: %s", ErrNoEntry, name)
			}
			delete(entries, name)
		}
		return nil
	})
}

// CheckName says what is wrong with a name. Names are those the gates recognise
// after "vault:".
func CheckName(name string) error {
	ok := name != "" && len(name) <= maxName && !strings.ContainsFunc(name, func(c rune) bool {
		return c != '-' && c != '_' && c != '.' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z')
	})
	if !ok || name[0] == '-' || name[0] == '.' {
		return fmt.Errorf("want a name of at most %d letters, digits, -, _ and ., beginning with none of - and ., found one of %d bytes", maxName, len(name))
	}
	return nil
}

func (v *Vault) now() time.Time {
	if v.place.Now != nil {
		return v.place.Now().UTC().Truncate(time.Second)
	}
	return time.Now().UTC().Truncate(time.Second)
}

// change applies an edit to what the file holds now, which another process may
// have changed since it was opened.
func (v *Vault) change(edit func(map[string]stored) error) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	release, err := v.place.lock()
	if err != nil {
		return err
	}
	defer release()
	raw, err := v.place.read(dataFile)
	if err != nil {
		return err
	}
	entries, err := decrypt(raw, v.key)
	if err != nil {
		return fmt.Errorf("its key was changed since it was opened, or: %w", err)
	}
	if err := edit(entries); err != nil {
		return err
	}
	v.entries = entries
	return v.write(v.recipients()...)
}

func (v *Vault) recipients() []age.Recipient {
	return append([]age.Recipient{v.key.Recipient()}, v.spare...)
}

// Rotate gives the vault a new key, kept by a guard of choice, and forgets the
// old one. A crash at any moment leaves a vault that opens: until the new key is
// kept, the file is readable with both.
func (v *Vault) Rotate(g Guard) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	release, err := v.place.lock()
	if err != nil {
		return err
	}
	defer release()
	raw, err := v.place.read(dataFile)
	if err != nil {
		return err
	}
	if v.entries, err = decrypt(raw, v.key); err != nil {
		return err
	}
	key, err := age.GenerateX25519Identity()
	if err != nil {
		return err
	}
	if err := v.write(append(v.recipients(), key.Recipient())...); err != nil {
		return err
	}
	if err := v.place.keep(g, key); err != nil {
		// Which key is kept now nobody knows: it may have taken the old one's place
		// before something failed. The file stays readable with both.
		v.spare = append(v.spare, key.Recipient())
		return err
	}
	old := v.guard
	v.key, v.guard, v.spare = key, g, nil
	if err := v.write(key.Recipient()); err != nil {
		return err
	}
	return v.place.forget(old, g)
}

// write encrypts the entries to the given keys and replaces the file.
func (v *Vault) write(to ...age.Recipient) error {
	plain, err := json.Marshal(contents{version, v.entries})
	if err != nil {
		return err
	}
	sealed, err := encrypt(plain, to...)
	if err != nil {
		return err
	}
	return v.place.replace(dataFile, sealed)
}

func decrypt(raw []byte, key age.Identity) (map[string]stored, error) {
	plain, err := open(raw, key)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTampered, err)
	}
	var c contents
	if err := json.Unmarshal(plain, &c); err != nil {
		return nil, fmt.Errorf("%w: what it holds is not a vault's contents", ErrTampered)
	}
	if c.Version != version || c.Entries == nil {
		return nil, fmt.Errorf("%w: it is of version %d, want %d", ErrTampered, c.Version, version)
	}
	return c.Entries, nil
}
