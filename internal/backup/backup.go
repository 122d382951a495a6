// Package backup packs what a user cannot lose into one encrypted file, and
// unpacks it again.
//
// An archive is tar, in gzip, in age. Its first entry says what it is, its last
// one counts and digests all others, so that an archive cut short, altered or
// added to is not one. Paths in it begin with the name of a [Root].
//
// The central functions:
//
//   - [Create] writes an archive, reads it back whole, and only then gives it its
//     name.
//   - [Open] decrypts one, [Check] reads it and writes nothing, [Restore] unpacks
//     it beside its targets and moves it into place when all of it is there.
//   - [Plan] says what a restore would do.
//
// Permissions, times and links come back as they were; owners, extended
// attributes and the fact that two names were one file do not.
//
// The rule a newcomer will break: an archive is somebody else's word. Every name,
// type, size and target in it is checked before the first byte is written, and
// files are written through [os.Root] all the same.
package backup

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A Root is a directory that is packed under a name of its own.
type Root struct {
	Name string // a word; the first part of every path
	Dir  string
	Skip func(rel string) bool // what is left out, by slash-separated path; nil: nothing
}

// A Summary is what an archive holds.
type Summary struct {
	Made    time.Time
	Program string // version of what made it
	Roots   []string
	Files   int
	Dirs    int
	Links   int
	Bytes   int64    // of the files' contents
	Outside []string // links that lead out of their root
	Digest  string   // of everything
}

// Names of the first and the last entry.
const (
	headName = "PASSEPARTOUT-BACKUP"
	tailName = "PASSEPARTOUT-END"
)

const version = 1

type head struct {
	Version int       `json:"version"`
	Made    time.Time `json:"made"`
	Program string    `json:"program"`
	Roots   []string  `json:"roots"`
}

type tail struct {
	Entries int    `json:"entries"`
	Bytes   int64  `json:"bytes"`
	Digest  string `json:"sha256"`
}

// A tally counts and digests entries as they pass.
type tally struct {
	entries int
	bytes   int64
	sum     hash.Hash
}

func newTally() *tally { return &tally{sum: sha256.New()} }

// add takes in one entry and the digest of its contents.
func (t *tally) add(h *tar.Header, contents []byte) {
	t.entries++
	t.bytes += h.Size
	fmt.Fprintf(t.sum, "%c %o %d %d %q %q %x\n", h.Typeflag, h.Mode, h.ModTime.UnixNano(), h.Size, h.Name, h.Linkname, contents)
}

func (t *tally) tail() tail { return tail{t.entries, t.bytes, hex.EncodeToString(t.sum.Sum(nil))} }

// A packer writes one archive.
type packer struct {
	tw    *tar.Writer
	tally *tally
	made  time.Time
	s     Summary
}

// Write packs roots into an archive that is not encrypted yet.
func Write(w io.Writer, roots []Root, program string, made time.Time) (Summary, error) {
	zw := gzip.NewWriter(w)
	p := &packer{tw: tar.NewWriter(zw), tally: newTally(), made: made.UTC().Truncate(time.Second)}
	p.s = Summary{Made: p.made, Program: program}
	for _, r := range roots {
		if !rootName(r.Name) || slices.Contains(p.s.Roots, r.Name) {
			return p.s, fmt.Errorf("root %q: want lower-case letters, each name once", r.Name)
		}
		p.s.Roots = append(p.s.Roots, r.Name)
	}
	if err := p.note(headName, head{version, p.made, program, p.s.Roots}); err != nil {
		return p.s, err
	}
	for _, r := range roots {
		if err := p.root(r, roots); err != nil {
			return p.s, fmt.Errorf("%s: %w", r.Name, err)
		}
	}
	end := p.tally.tail()
	p.s.Digest = end.Digest
	return p.s, errors.Join(p.note(tailName, end), p.tw.Close(), zw.Close())
}

func rootName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool { return c < 'a' || c > 'z' })
}

// note writes an entry about the archive itself.
func (p *packer) note(name string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Size: int64(len(raw)), ModTime: p.made, Format: tar.FormatPAX}
	if err := p.tw.WriteHeader(h); err != nil {
		return err
	}
	_, err = p.tw.Write(raw)
	return err
}

// root packs a directory. Of a root inside another, each file is packed once.
func (p *packer) root(r Root, all []Root) error {
	dir, err := filepath.EvalSymlinks(r.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	var inner []string
	for _, o := range all {
		if real, err := filepath.EvalSymlinks(o.Dir); err == nil && real != dir {
			if rel, err := filepath.Rel(dir, real); err == nil && filepath.IsLocal(rel) {
				inner = append(inner, filepath.ToSlash(rel))
			}
		}
	}
	return fs.WalkDir(root.FS(), ".", func(rel string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && rel != "." {
			return nil // it went away while we looked
		}
		if err != nil {
			return err
		}
		if slices.Contains(inner, rel) || r.Skip != nil && rel != "." && r.Skip(rel) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		return p.entry(root, r.Name, rel)
	})
}

// entry packs one file, directory or link. Sockets, pipes and devices hold
// nothing.
func (p *packer) entry(root *os.Root, name, rel string) error {
	st, err := root.Lstat(rel)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	h := &tar.Header{Name: path.Join(name, rel), Mode: int64(st.Mode().Perm()), ModTime: st.ModTime(), Format: tar.FormatPAX}
	switch {
	case st.IsDir():
		h.Typeflag = tar.TypeDir
		p.s.Dirs++
	case st.Mode()&fs.ModeSymlink != 0:
		h.Typeflag = tar.TypeSymlink
		if h.Linkname, err = root.Readlink(rel); err != nil {
			return err
		}
		p.s.Links++
		if !insideLink(h.Name, h.Linkname) {
			p.s.Outside = append(p.s.Outside, h.Name)
		}
	case st.Mode().IsRegular():
		return p.file(root, rel, h)
	default:
		return nil
	}
	if err := p.tw.WriteHeader(h); err != nil {
		return err
	}
	p.tally.add(h, nil)
	return nil
}

// file packs a file as long as it was when it was opened: what is only ever added
// to, such as the journal, may grow meanwhile.
func (p *packer) file(root *os.Root, rel string, h *tar.Header) error {
	f, err := root.Open(rel)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() {
		return fmt.Errorf("%s was replaced while it was read", rel)
	}
	h.Typeflag, h.Size, h.Mode, h.ModTime = tar.TypeReg, st.Size(), int64(st.Mode().Perm()), st.ModTime()
	if err := p.tw.WriteHeader(h); err != nil {
		return err
	}
	sum := sha256.New()
	if n, err := io.CopyN(io.MultiWriter(p.tw, sum), f, h.Size); err != nil {
		return fmt.Errorf("%s shrank from %d to %d bytes while it was read; try again: %w", rel, h.Size, n, err)
	}
	p.tally.add(h, sum.Sum(nil))
	p.s.Files++
	p.s.Bytes += h.Size
	return nil
}

// insideLink reports whether a link at a path leads to something in its own root.
func insideLink(name, target string) bool {
	if path.IsAbs(target) || filepath.IsAbs(target) {
		return false
	}
	root, _, _ := strings.Cut(name, "/")
	to := path.Join(path.Dir(name), target)
	return to == root || strings.HasPrefix(to, root+"/")
}
