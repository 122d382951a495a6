package vault

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"passepartout/internal/durable"
)

// Files of a vault, in its directory.
const (
	dataFile = "vault.age"
	keyFile  = "vault.key"
	lockFile = "vault.lock"
)

// Files returns the paths of the vault's files that exist.
func (p Place) Files() []string {
	var out []string
	for _, name := range []string{dataFile, keyFile} {
		if path := filepath.Join(p.Dir, name); exists(path) {
			out = append(out, path)
		}
	}
	return out
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// read returns a file that is its owner's alone.
func (p Place) read(name string) ([]byte, error) {
	f, err := os.OpenFile(filepath.Join(p.Dir, name), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	switch {
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("%s: want a regular file, found %v", f.Name(), st.Mode().Type())
	case st.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("%w: %s has mode %04o; chmod 600 %s, and replace what it holds if anybody may have looked", ErrExposed, f.Name(), st.Mode().Perm(), f.Name())
	case st.Size() > maxFile:
		return nil, fmt.Errorf("%s has %d bytes: want at most %d", f.Name(), st.Size(), maxFile)
	}
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// replace puts new contents in a file's place, all or nothing.
func (p Place) replace(name string, text []byte) error {
	return durable.Replace(filepath.Join(p.Dir, name), text, 0o600)
}

func (p Place) remove(name string) error {
	err := os.Remove(filepath.Join(p.Dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, durable.SyncDir(p.Dir))
}

// lock keeps changes of several processes apart. It dies with the process.
func (p Place) lock() (release func(), err error) {
	if err := durable.MkdirAll(p.Dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(p.Dir, lockFile), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { f.Close() }, nil
}
