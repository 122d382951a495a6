package vault

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"filippo.io/age"
)

// A Guard is how the vault's own key is kept. The zero Guard is invalid.
type Guard uint8

// The guards.
const (
	Keyring    Guard = iota + 1 // in the system's keyring
	Passphrase                  // in a file, encrypted with a passphrase
	KeyFile                     // in a file, as it is: safe where the disk and the account are
)

var guardNames = [...]string{"invalid", "keyring", "passphrase", "file"}

// String is the guard's name.
func (g Guard) String() string {
	if int(g) >= len(guardNames) {
		return guardNames[0]
	}
	return guardNames[g]
}

// ParseGuard reads a guard's name.
func ParseGuard(name string) (Guard, error) {
	for g := Keyring; g <= KeyFile; g++ {
		if g.String() == name {
			return g, nil
		}
	}
	return 0, fmt.Errorf("want keyring, passphrase or file, found %q", name)
}

// keep stores a key under a guard.
func (p Place) keep(g Guard, key *age.X25519Identity) error {
	text := []byte(key.String() + "\n")
	switch g {
	case Keyring:
		if p.Ring == nil {
			return errors.New("this system offers no keyring: choose passphrase or file")
		}
		if err := p.Ring.Set(p.Dir, key.String()); err != nil {
			return fmt.Errorf("keyring: %w", err)
		}
		// Believe what it says only after hearing it again.
		if got, err := p.Ring.Get(p.Dir); err != nil || got != key.String() {
			return fmt.Errorf("keyring: it does not give back what it was given: %w", err)
		}
		return p.remove(keyFile) // an older guard's
	case Passphrase:
		sealed, err := p.wrap(text)
		if err != nil {
			return err
		}
		return p.replace(keyFile, sealed)
	case KeyFile:
		return p.replace(keyFile, text)
	}
	return fmt.Errorf("no such guard: %v", g)
}

// wrap encrypts a key with a new passphrase.
func (p Place) wrap(key []byte) ([]byte, error) {
	if p.Passphrase == nil {
		return nil, fmt.Errorf("%w: nobody is there to choose a passphrase", ErrLocked)
	}
	phrase, err := p.Passphrase(true)
	if err != nil {
		return nil, fmt.Errorf("passphrase: %w", err)
	}
	const shortest = 8
	if len(phrase) < shortest {
		return nil, fmt.Errorf("passphrase: want at least %d bytes, found %d", shortest, len(phrase))
	}
	to, err := age.NewScryptRecipient(phrase)
	if err != nil {
		return nil, err
	}
	if p.Work > 0 {
		to.SetWorkFactor(p.Work)
	}
	return encrypt(key, to)
}

// unlock finds out how the key is kept, and fetches it.
func (p Place) unlock() (Guard, *age.X25519Identity, error) {
	raw, err := p.read(keyFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		text, err := p.fromRing()
		if err != nil {
			return 0, nil, err
		}
		key, err := parseKey(text)
		return Keyring, key, err
	case err != nil:
		return 0, nil, err
	case !bytes.HasPrefix(raw, []byte("age-encryption.org/")):
		key, err := parseKey(string(raw))
		return KeyFile, key, err
	}
	if p.Passphrase == nil {
		return 0, nil, fmt.Errorf("%w: its key is under a passphrase and nobody can be asked for it", ErrLocked)
	}
	phrase, err := p.Passphrase(false)
	if err != nil {
		return 0, nil, fmt.Errorf("passphrase: %w", err)
	}
	from, err := age.NewScryptIdentity(phrase)
	if err != nil {
		return 0, nil, fmt.Errorf("%w: %w", ErrLocked, err)
	}
	plain, err := open(raw, from)
	if err != nil {
		return 0, nil, fmt.Errorf("%w: the passphrase is wrong, or its key file is damaged", ErrLocked)
	}
	key, err := parseKey(string(plain))
	return Passphrase, key, err
}

func (p Place) fromRing() (string, error) {
	if p.Ring == nil {
		return "", fmt.Errorf("%w: its key is in a keyring, which is not to be had here", ErrLocked)
	}
	text, err := p.Ring.Get(p.Dir)
	if err != nil {
		return "", fmt.Errorf("%w: the keyring does not give its key: %w", ErrLocked, err)
	}
	return text, nil
}

func parseKey(text string) (*age.X25519Identity, error) {
	key, err := age.ParseX25519Identity(strings.TrimSpace(text))
	if err != nil {
		return nil, fmt.Errorf("%w: what is kept as its key is none", ErrLocked) // the error would show it
	}
	return key, nil
}

// forget takes an old guard's key away.
func (p Place) forget(old, now Guard) error {
	if old == Keyring && now != Keyring && p.Ring != nil {
		return p.Ring.Delete(p.Dir)
	}
	return nil
}

func encrypt(plain []byte, to ...age.Recipient) ([]byte, error) {
	var out bytes.Buffer
	w, err := age.Encrypt(&out, to...)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(plain); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func open(sealed []byte, with age.Identity) ([]byte, error) {
	r, err := age.Decrypt(bytes.NewReader(sealed), with)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
