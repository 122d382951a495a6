package backup

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"
)

// ErrRefused means that an archive is damaged, or not one of ours, or means harm.
var ErrRefused = errors.New("the archive is refused")

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrRefused, fmt.Errorf(format, args...))
}

// Limits of what an archive may hold. Contents may be a hundred times the
// archive's size, or a gigabyte: notes compress tenfold, bombs a thousandfold.
const (
	maxEntries  = 5_000_000
	maxPath     = 4096
	maxNote     = 64 << 10
	maxRatio    = 100
	alwaysTaken = 1 << 30
)

// Options of reading an archive.
type Options struct {
	// OutsideLinks accepts links that lead out of their root.
	OutsideLinks bool
	// Size is that of the file the archive is read from, against which its
	// contents are measured; 0 takes no more than a gigabyte.
	Size int64
}

// An item is one checked entry.
type item struct {
	*tar.Header
	root, rel string // rel is "." for the root itself
	body      io.Reader
}

// A walker reads an archive and lets nothing pass that is not as it must be.
type walker struct {
	opt   Options
	tr    *tar.Reader
	from  *bufio.Reader
	zr    *gzip.Reader
	tally *tally
	kinds map[string]byte // of every path so far
	s     Summary
}

// Check reads an archive to its end and writes nothing.
func Check(r io.Reader, opt Options) (Summary, error) {
	return walk(r, opt, func(item) error { return nil })
}

// walk calls do for every entry between the first and the last.
func walk(r io.Reader, opt Options, do func(item) error) (Summary, error) {
	from := bufio.NewReaderSize(r, 1<<16) // so that gzip reads no further than its own end
	zr, err := gzip.NewReader(from)
	if err != nil {
		return Summary{}, refuse("it is not compressed as ours are: %w", err)
	}
	zr.Multistream(false)
	w := &walker{opt: opt, from: from, zr: zr, tr: tar.NewReader(zr), tally: newTally(), kinds: map[string]byte{}}
	if err := w.head(); err != nil {
		return w.s, err
	}
	for {
		h, err := w.tr.Next()
		if err != nil {
			return w.s, refuse("it ends early or is damaged: %w", err)
		}
		if h.Name == tailName {
			return w.s, w.tail(h)
		}
		if err := w.entry(h, do); err != nil {
			return w.s, err
		}
	}
}

func (w *walker) note(h *tar.Header, name string, to any) error {
	if h.Name != name || h.Typeflag != tar.TypeReg || h.Size > maxNote {
		return refuse("want %s, found %.80q", name, h.Name)
	}
	raw, err := io.ReadAll(w.tr)
	if err != nil {
		return refuse("%s: %w", name, err)
	}
	if err := json.Unmarshal(raw, to); err != nil {
		return refuse("%s: %w", name, err)
	}
	return nil
}

func (w *walker) head() error {
	h, err := w.tr.Next()
	if err != nil {
		return refuse("it holds no backup: %w", err)
	}
	var first head
	if err := w.note(h, headName, &first); err != nil {
		return err
	}
	if first.Version != version {
		return refuse("it is of version %d, want %d", first.Version, version)
	}
	if len(first.Roots) > 100 || slices.ContainsFunc(first.Roots, func(r string) bool { return !rootName(r) }) {
		return refuse("its roots are no names")
	}
	w.s = Summary{Made: first.Made, Program: first.Program, Roots: first.Roots}
	return nil
}

// tail compares what was read with what was written, and wants nothing after it.
func (w *walker) tail(h *tar.Header) error {
	var last tail
	if err := w.note(h, tailName, &last); err != nil {
		return err
	}
	if got := w.tally.tail(); got != last {
		return refuse("it holds %d entries of %d bytes with digest %.12s, want %d of %d with %.12s",
			got.Entries, got.Bytes, got.Digest, last.Entries, last.Bytes, last.Digest)
	}
	w.s.Digest = last.Digest
	if _, err := w.tr.Next(); !errors.Is(err, io.EOF) {
		return refuse("there is something after its end")
	}
	const padding = 64 << 10
	if n, err := io.CopyN(io.Discard, w.zr, padding); !errors.Is(err, io.EOF) || n >= padding {
		return refuse("there is something after its end, or it is cut short: %w", err)
	}
	if _, err := w.from.ReadByte(); !errors.Is(err, io.EOF) { // this also sees the end of the encryption
		return refuse("there is something after its end, or it is cut short: %w", err)
	}
	return nil
}

func (w *walker) entry(h *tar.Header, do func(item) error) error {
	it, err := w.vet(h)
	if err != nil {
		return err
	}
	sum := sha256.New()
	body := io.TeeReader(w.tr, sum)
	it.body = body
	if err := do(it); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, body); err != nil { // what do left
		return refuse("%.200q: %w", h.Name, err)
	}
	var contents []byte
	if h.Typeflag == tar.TypeReg {
		contents = sum.Sum(nil)
	}
	w.tally.add(h, contents)
	return nil
}

// vet checks an entry against everything that came before.
func (w *walker) vet(h *tar.Header) (item, error) {
	name := strings.TrimSuffix(h.Name, "/") // a directory's, as some write it
	h.Name = name
	root, rel, nested := strings.Cut(name, "/")
	if !nested {
		rel = "."
	}
	switch {
	case len(name) > maxPath || strings.ContainsRune(name, 0):
		return item{}, refuse("a name of %d bytes that is none", len(name))
	case name == "" || name != path.Clean(name) || path.IsAbs(name) || strings.HasPrefix(name, "../") || name == "..":
		return item{}, refuse("%.200q does not stay below its root", h.Name)
	case !slices.Contains(w.s.Roots, root):
		return item{}, refuse("%.200q is in none of its roots", h.Name)
	case w.kinds[name] != 0:
		return item{}, refuse("%.200q is there twice", h.Name)
	case nested && w.kinds[path.Dir(name)] != tar.TypeDir:
		return item{}, refuse("%.200q lies in what is no directory", h.Name)
	case w.tally.entries >= maxEntries:
		return item{}, refuse("it has more than %d entries", maxEntries)
	case h.Mode&^0o777 != 0:
		return item{}, refuse("%.200q has mode %o", h.Name, h.Mode)
	case h.ModTime.Year() < 1970 || h.ModTime.After(time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)):
		return item{}, refuse("%.200q is from %v", h.Name, h.ModTime)
	}
	if err := w.vetKind(h, nested); err != nil {
		return item{}, err
	}
	w.kinds[name] = h.Typeflag
	return item{Header: h, root: root, rel: rel}, nil
}

func (w *walker) vetKind(h *tar.Header, nested bool) error {
	switch h.Typeflag {
	case tar.TypeDir:
		w.s.Dirs++
	case tar.TypeSymlink:
		if !nested || h.Linkname == "" || len(h.Linkname) > maxPath {
			return refuse("%.200q is a link to nothing", h.Name)
		}
		w.s.Links++
		if !insideLink(h.Name, h.Linkname) {
			if !w.opt.OutsideLinks {
				return refuse("%.200q is a link to %.200q, which leads out of its root; if that is meant, say --outside-links", h.Name, h.Linkname)
			}
			w.s.Outside = append(w.s.Outside, h.Name)
		}
	case tar.TypeReg:
		if !nested {
			return refuse("%.200q is a file, want a directory", h.Name)
		}
		w.s.Files++
		w.s.Bytes += h.Size
		if h.Size < 0 || w.s.Bytes < 0 || w.s.Bytes > max(alwaysTaken, maxRatio*w.opt.Size) {
			return refuse("its contents are %d bytes or more, out of a file of %d: that is a bomb", w.s.Bytes, w.opt.Size)
		}
	default:
		return refuse("%.200q is of type %q: want files, directories and links", h.Name, h.Typeflag)
	}
	if h.Typeflag != tar.TypeReg && h.Size != 0 {
		return refuse("%.200q has contents", h.Name)
	}
	return nil
}
