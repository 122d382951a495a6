package backup

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"filippo.io/age"
	"golang.org/x/sys/unix"

	"passepartout/internal/durable"
)

// A Lock is what an archive is encrypted to. The zero Lock is none, which must be
// asked for with Plain.
type Lock struct {
	Passphrase string
	Recipients []string // age1…
	Plain      bool
	Work       int // cost of a passphrase as a power of two; 0 for age's own
}

// recipients are whom age encrypts to, and who can read it back at once to see
// that it is whole: with a passphrase ourselves, else a key that lives only for
// this check.
func (l Lock) recipients() ([]age.Recipient, []age.Identity, error) {
	switch {
	case l.Passphrase != "" && len(l.Recipients) > 0:
		return nil, nil, errors.New("want a passphrase or recipients, not both")
	case l.Passphrase != "":
		to, err := age.NewScryptRecipient(l.Passphrase)
		if err != nil {
			return nil, nil, err
		}
		if l.Work > 0 {
			to.SetWorkFactor(l.Work)
		}
		id, err := age.NewScryptIdentity(l.Passphrase)
		return []age.Recipient{to}, []age.Identity{id}, err
	case len(l.Recipients) == 0:
		return nil, nil, errors.New("want a passphrase or a recipient to encrypt to")
	}
	check, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, nil, err
	}
	out := []age.Recipient{check.Recipient()}
	for _, text := range l.Recipients {
		rs, err := age.ParseRecipients(bytes.NewReader([]byte(text)))
		if err != nil {
			return nil, nil, fmt.Errorf("recipient %.80q: %w", text, err)
		}
		out = append(out, rs...)
	}
	return out, []age.Identity{check}, nil
}

// Create packs roots into a new file, reads it back to its end, and only then
// gives it its name. A file that is there is not replaced.
func Create(file string, roots []Root, lock Lock, program string, made time.Time) (s Summary, err error) {
	var to []age.Recipient
	var ids []age.Identity
	if !lock.Plain {
		if to, ids, err = lock.recipients(); err != nil {
			return s, err
		}
	}
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*") // mode 0600
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	if s, err = writeSealed(f, roots, to, program, made); err != nil {
		return s, err
	}
	if err := f.Sync(); err != nil {
		return s, err
	}
	back, err := verify(f, ids)
	if err != nil {
		return s, fmt.Errorf("what was written does not read back: %w", err)
	}
	if back.Digest != s.Digest {
		return s, fmt.Errorf("what was written reads back with digest %.12s, want %.12s", back.Digest, s.Digest)
	}
	if err := os.Link(f.Name(), file); err != nil { // unlike a rename, it never replaces
		return s, err
	}
	return s, durable.SyncDir(filepath.Dir(file))
}

func writeSealed(f io.Writer, roots []Root, to []age.Recipient, program string, made time.Time) (Summary, error) {
	buf := bufio.NewWriterSize(f, 1<<20)
	var w io.WriteCloser = nopCloser{buf}
	if len(to) > 0 {
		var err error
		if w, err = age.Encrypt(buf, to...); err != nil {
			return Summary{}, err
		}
	}
	s, err := Write(w, roots, program, made)
	return s, errors.Join(err, w.Close(), buf.Flush())
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func verify(f *os.File, ids []age.Identity) (Summary, error) {
	a, err := newArchive(f, ids)
	if err != nil {
		return Summary{}, err
	}
	return Check(a, Options{Size: a.size, OutsideLinks: true})
}

// An Archive is an archive that is open and can be read more than once.
type Archive struct {
	f    *os.File
	ids  []age.Identity
	size int64
	r    io.Reader
}

// ErrKey means that an archive does not open with the key that was given.
var ErrKey = errors.New("the key does not fit")

// Keys open an archive: a passphrase, or identities as age-keygen writes them.
type Keys struct {
	Passphrase string
	Identities io.Reader
}

// Encrypted reports whether a file is encrypted, and if so whether with a
// passphrase.
func Encrypted(file string) (encrypted, passphrase bool, err error) {
	f, err := os.Open(file)
	if err != nil {
		return false, false, err
	}
	defer f.Close()
	start := make([]byte, 256)
	n, err := io.ReadFull(f, start)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return false, false, err
	}
	encrypted = bytes.HasPrefix(start[:n], []byte("age-encryption.org/v1\n"))
	return encrypted, encrypted && bytes.Contains(start[:n], []byte("\n-> scrypt ")), nil
}

// Open opens an archive.
func Open(file string, k Keys) (*Archive, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	var ids []age.Identity
	switch {
	case k.Identities != nil:
		ids, err = age.ParseIdentities(k.Identities)
	case k.Passphrase != "":
		var id *age.ScryptIdentity
		id, err = age.NewScryptIdentity(k.Passphrase)
		ids = []age.Identity{id}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: what was given is none", ErrKey), f.Close())
	}
	a, err := newArchive(f, ids)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return a, nil
}

func newArchive(f *os.File, ids []age.Identity) (*Archive, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: want a regular file", f.Name())
	}
	a := &Archive{f: f, size: st.Size()}
	for _, id := range ids {
		a.ids = append(a.ids, &remembered{Identity: id})
	}
	_, err = a.Seek(0, io.SeekStart)
	return a, err
}

// A remembered identity opens an archive the second time without the work of the
// first, which for a passphrase is a second.
type remembered struct {
	age.Identity
	key []byte
}

// Unwrap implements [age.Identity].
func (r *remembered) Unwrap(stanzas []*age.Stanza) ([]byte, error) {
	if r.key == nil {
		key, err := r.Identity.Unwrap(stanzas)
		if err != nil {
			return nil, err
		}
		r.key = key
	}
	return bytes.Clone(r.key), nil
}

// Size is that of the file.
func (a *Archive) Size() int64 { return a.size }

// Read reads what is inside the encryption.
func (a *Archive) Read(p []byte) (int, error) { return a.r.Read(p) }

// Seek goes back to the beginning, which is the only place it goes.
func (a *Archive) Seek(offset int64, whence int) (int64, error) {
	if offset != 0 || whence != io.SeekStart {
		return 0, errors.New("an archive can only be read from its beginning")
	}
	if _, err := a.f.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	a.r = bufio.NewReaderSize(a.f, 1<<20)
	if len(a.ids) == 0 {
		return 0, nil
	}
	r, err := age.Decrypt(a.r, a.ids...)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrKey, err)
	}
	a.r = r
	return 0, nil
}

// Close closes the file.
func (a *Archive) Close() error { return a.f.Close() }

// linkTimes sets the time of a link itself.
func linkTimes(path string, at time.Time) error {
	ts, err := unix.TimeToTimespec(at)
	if err != nil {
		return err
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
}
