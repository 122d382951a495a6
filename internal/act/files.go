package act

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"passepartout/internal/proto"
)

// Files gives tools the user's files below the roots that were judged. Opening
// goes through [os.Root], so a link swapped in after the ruling cannot lead out.
type Files struct {
	Base  string   // what relative paths are relative to: the memex
	Home  string   // what ~ stands for
	Read  []string // roots that may be read
	Write []string // roots that may be written
}

// maxFile is the largest file a tool reads.
const maxFile = 8 << 20

// abs is the path as the gates resolved it.
func (f Files) abs(path string) string {
	if path == "~" || strings.HasPrefix(path, "~/") {
		path = filepath.Join(f.Home, path[1:])
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(f.Base, path)
	}
	return filepath.Clean(path)
}

// open finds the root that holds path and returns it with the relative rest.
func (f Files) open(path string, roots []string) (*os.Root, string, error) {
	abs := f.abs(path)
	if real, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
		abs = filepath.Join(real, filepath.Base(abs))
	}
	for _, root := range roots {
		if real, err := filepath.EvalSymlinks(root); err == nil {
			root = real
		}
		rel, err := filepath.Rel(root, abs)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		r, err := os.OpenRoot(root)
		if err != nil {
			return nil, "", err
		}
		return r, rel, nil
	}
	return nil, "", fmt.Errorf("%s lies outside the permitted roots %s", path, strings.Join(roots, ", "))
}

// Load returns a file's content.
func (f Files) Load(path string) ([]byte, error) {
	root, rel, err := f.open(path, f.Read)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	file, err := root.Open(rel)
	if err != nil {
		return nil, plain(err, path)
	}
	defer file.Close()
	st, err := file.Stat()
	if err != nil {
		return nil, err
	}
	switch {
	case st.IsDir():
		return nil, fmt.Errorf("%s is a directory: use list-directory", path)
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case st.Size() > maxFile:
		return nil, fmt.Errorf("%s has %d bytes: at most %d are read", path, st.Size(), maxFile)
	}
	return io.ReadAll(io.LimitReader(file, maxFile))
}

// Create writes a new file, atomically; an existing one is an error.
func (f Files) Create(path string, data []byte) error {
	root, rel, err := f.open(path, f.Write)
	if err != nil {
		return err
	}
	defer root.Close()
	if dir := filepath.Dir(rel); dir != "." {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return plain(err, path)
		}
	}
	tmp := rel + ".part"
	w, err := root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return plain(err, path)
	}
	_, werr := w.Write(data)
	err = errors.Join(werr, w.Sync(), w.Close())
	if err == nil {
		err = root.Link(tmp, rel) // fails when rel exists, so nothing is overwritten
	}
	return plain(errors.Join(err, root.Remove(tmp)), path)
}

// plain says what is wrong in words, without the mechanics of roots.
func plain(err error, path string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist", path)
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s exists already", path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s may not be opened by this user", path)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// Tools are the tools over these files.
func (f Files) Tools() []Tool {
	return []Tool{
		{
			Name: "read-file", Effect: proto.ReadLocal, Doc: "Read a text file, or some of its lines.",
			Params: []proto.Param{
				{Name: "FILEPATH", Type: proto.Text, Means: proto.ReadPath, Required: true, Doc: "the file, relative to the memex or absolute"},
				{Name: "FROM", Type: proto.Number, Doc: "first line, counted from 1"},
				{Name: "LINES", Type: proto.Number, Doc: "how many lines"},
			},
			Run: f.readFile,
		},
		{
			Name: "list-directory", Effect: proto.ReadLocal, Doc: "List what a directory holds.",
			Params: []proto.Param{{Name: "PATH", Type: proto.Text, Means: proto.ReadPath, Required: true, Doc: "the directory, relative to the memex or absolute"}},
			Run:    f.listDirectory,
		},
		{
			Name: "write-note", Effect: proto.WriteMemory, Doc: "Write a new note into the memex; an existing file is never overwritten.",
			Params: []proto.Param{
				{Name: "FILEPATH", Type: proto.Text, Means: proto.WritePath, Required: true, Doc: "the new file, relative to the memex, ending in .org"},
				{Name: "CONTENT", Type: proto.Text, Means: proto.Content, Required: true, Doc: "the note's Org text"},
			},
			Guard: func(c Call) error {
				if p := c.Text("FILEPATH"); !strings.EqualFold(filepath.Ext(p), ".org") {
					return fmt.Errorf("%q is no note: want a name ending in .org", p)
				}
				return nil
			},
			Run: f.writeNote,
		},
	}
}

func (f Files) readFile(_ context.Context, c Call) (Outcome, error) {
	data, err := f.Load(c.Text("FILEPATH"))
	if err != nil {
		return Outcome{}, err
	}
	if !utf8.Valid(data) {
		return Outcome{}, fmt.Errorf("%s is not text in UTF-8", c.Text("FILEPATH"))
	}
	from, n := c.Int("FROM", 1), c.Int("LINES", 0)
	text := string(data)
	if from > 1 || n > 0 {
		lines := strings.SplitAfter(text, "\n")
		lo := min(max(from-1, 0), len(lines))
		hi := len(lines)
		if n > 0 {
			hi = min(lo+n, hi)
		}
		text = strings.Join(lines[lo:hi], "")
	}
	return Outcome{OK: true, Text: text, Taint: proto.Taint{Untrusted: !f.own(c.Text("FILEPATH"))}}, nil
}

// own reports whether a file belongs to the memex, whose words are the user's.
func (f Files) own(path string) bool {
	rel, err := filepath.Rel(f.Base, f.abs(path))
	return err == nil && filepath.IsLocal(rel)
}

func (f Files) listDirectory(_ context.Context, c Call) (Outcome, error) {
	path := c.Text("PATH")
	root, rel, err := f.open(path, f.Read)
	if err != nil {
		return Outcome{}, err
	}
	defer root.Close()
	d, err := root.Open(rel)
	if err != nil {
		return Outcome{}, plain(err, path)
	}
	defer d.Close()
	entries, err := d.ReadDir(-1)
	if err != nil {
		return Outcome{}, plain(err, path)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
		if e.IsDir() {
			names[i] += "/"
		}
	}
	slices.Sort(names)
	if len(names) == 0 {
		return Outcome{OK: true, Text: path + " is empty"}, nil
	}
	return Outcome{OK: true, Text: strings.Join(names, "\n")}, nil
}

func (f Files) writeNote(_ context.Context, c Call) (Outcome, error) {
	path, content := c.Text("FILEPATH"), c.Text("CONTENT")
	if !strings.HasSuffix(content, "\n") {
		content += "\n"
	}
	if err := f.Create(path, []byte(content)); err != nil {
		return Outcome{}, err
	}
	back, err := f.Load(path)
	if err != nil {
		return Outcome{}, fmt.Errorf("reading back: %w", err)
	}
	if string(back) != content {
		return Outcome{}, fmt.Errorf("%s reads back differently from what was written", path)
	}
	return Outcome{OK: true, Text: fmt.Sprintf("Wrote %s (%d bytes).", path, len(content)), Changed: []string{f.abs(path)}}, nil
}
