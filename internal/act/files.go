package act

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"passepartout/internal/label"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
	"passepartout/internal/undo"
)

// Files gives tools the user's files. Which of them is the gates' decision: a tool
// opens the very path that was judged, following no link, and nothing else.
type Files struct {
	History History
	// Label is what reading a file does to a turn. Nil: everything is untrusted.
	Label func(path string) proto.Taint
	// Skip names what a walk through a directory leaves out: a directory may be
	// searched although a file in it may not be read. Nil: nothing.
	Skip func(path string) bool
	// PrivateTags are the tags that keep a note on this machine.
	PrivateTags []string
	// Labels keeps the labels of what is written and is no note. Nil: nothing does.
	Labels *label.Store
}

// maxFile is the largest file a tool reads.
const maxFile = 8 << 20

func (f Files) label(path string) proto.Taint {
	if f.Label == nil {
		return proto.Taint{Untrusted: true}
	}
	return f.Label(path)
}

// Tools are the tools over these files.
func (f Files) Tools() []Tool {
	file := func(means proto.Meaning, doc string) proto.Param {
		return proto.Param{Name: "FILEPATH", Type: proto.Text, Means: means, Required: true, Doc: doc}
	}
	return append([]Tool{
		{
			Name: "read-file", Effect: proto.ReadLocal, Doc: "Read a text file, or some of its lines.",
			Params: []proto.Param{
				file(proto.ReadPath, "the file, relative to the memex or absolute"),
				{Name: "FROM", Type: proto.Number, Doc: "first line, counted from 1"},
				{Name: "LINES", Type: proto.Number, Doc: "how many lines"},
			},
			Guard: positive("FROM", "LINES"), Run: f.readFile,
		},
		{
			Name: "list-directory", Effect: proto.ReadLocal, Doc: "List what a directory holds.",
			Params: []proto.Param{{Name: "PATH", Type: proto.Text, Means: proto.ReadPath, Required: true, Doc: "the directory, relative to the memex or absolute"}},
			Run:    f.listDirectory,
		},
		{
			Name: "write-note", Effect: proto.WriteMemory, Doc: "Write a new note into the memex; an existing file is never overwritten.",
			Params: []proto.Param{
				file(proto.WritePath, "the new file, relative to the memex, ending in .org"),
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
		{
			Name: "write-file", Effect: proto.WriteLocal, Doc: "Write a whole text file, new or in place of the old one.",
			Params: []proto.Param{
				file(proto.WritePath, "the file, relative to the memex or absolute"),
				{Name: "CONTENT", Type: proto.Text, Means: proto.Content, Required: true, Doc: "all of its text"},
			},
			Run: f.writeFile,
		},
		{
			Name: "replace-in-file", Effect: proto.WriteLocal, Doc: "Replace one passage of a text file; the passage must stand there exactly once.",
			Params: []proto.Param{
				file(proto.WritePath, "the file, relative to the memex or absolute"),
				{Name: "OLD", Type: proto.Text, Required: true, Doc: "the passage, byte for byte, with enough around it to be unique"},
				{Name: "NEW", Type: proto.Text, Means: proto.Content, Required: true, Doc: "what takes its place"},
			},
			Guard: func(c Call) error {
				if c.Text("OLD") == "" || c.Text("OLD") == c.Text("NEW") {
					return errors.New(":OLD is empty or the same as :NEW: nothing would change")
				}
				return nil
			},
			Run: f.replaceInFile,
		},
	}, f.searchTools()...)
}

// positive guards number arguments that count something.
func positive(names ...string) func(Call) error {
	return func(c Call) error {
		for _, n := range names {
			if k := sexp.Keyword(n); c.Has(k) && c.Int(k, 0) < 1 {
				return fmt.Errorf(":%s is %d: want a positive number", n, c.Int(k, 0))
			}
		}
		return nil
	}
}

// load reads a text file.
func (f Files) load(path string) (string, error) {
	s, err := locate(path, false)
	if err != nil {
		return "", err
	}
	defer s.close()
	data, _, err := s.read()
	if err != nil {
		return "", err
	}
	if !utf8.Valid(data) {
		return "", fmt.Errorf("%s is not text in UTF-8", path)
	}
	return string(data), nil
}

func (f Files) readFile(_ context.Context, c Call) (Outcome, error) {
	path, err := c.Path("FILEPATH")
	if err != nil {
		return Outcome{}, err
	}
	text, err := f.load(path)
	if err != nil {
		return Outcome{}, err
	}
	o := Outcome{OK: true, Text: text, Taint: f.label(path)}
	from, n := c.Int("FROM", 1), c.Int("LINES", 0)
	if from == 1 && n == 0 {
		return o, nil
	}
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if from > len(lines) {
		return Outcome{}, fmt.Errorf("%s has %d lines: there is no line %d", path, len(lines), from)
	}
	hi := len(lines)
	if n > 0 {
		hi = min(from-1+n, hi)
	}
	o.Text = strings.Join(lines[from-1:hi], "")
	o.Truncated = hi < len(lines)
	return o, nil
}

func (f Files) listDirectory(_ context.Context, c Call) (Outcome, error) {
	path, err := c.Path("PATH")
	if err != nil {
		return Outcome{}, err
	}
	s, err := locate(path, false)
	if err != nil {
		return Outcome{}, err
	}
	defer s.close()
	d, err := s.open()
	if err != nil {
		return Outcome{}, err
	}
	defer d.Close()
	entries, err := d.ReadDir(-1)
	if err != nil {
		return Outcome{}, plain(err, path)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
		switch {
		case e.IsDir():
			names[i] += "/"
		case e.Type()&fs.ModeSymlink != 0:
			names[i] += "@"
		}
	}
	slices.Sort(names)
	if len(names) == 0 {
		return Outcome{OK: true, Text: path + " is empty"}, nil
	}
	return Outcome{OK: true, Text: strings.Join(names, "\n")}, nil
}

func (f Files) writeNote(ctx context.Context, c Call) (Outcome, error) {
	content := c.Text("CONTENT")
	if !strings.HasSuffix(content, "\n") {
		content += "\n"
	}
	return f.change(ctx, c, "write-note", func(s spot) (string, error) {
		text := f.note(turnOf(ctx), s.path, []byte(content))
		return fmt.Sprintf("Wrote %s (%d bytes).", c.Text("FILEPATH"), len(text)), s.write(text, nil)
	})
}

func (f Files) writeFile(ctx context.Context, c Call) (Outcome, error) {
	return f.change(ctx, c, "write-file", func(s spot) (string, error) {
		text := f.note(turnOf(ctx), s.path, []byte(c.Text("CONTENT")))
		said := fmt.Sprintf("Wrote %s (%d bytes).", c.Text("FILEPATH"), len(text))
		if !s.taken() {
			return said, s.write(text, nil)
		}
		_, was, err := s.read()
		if err != nil {
			return "", err
		}
		return said, s.write(text, was)
	})
}

func (f Files) replaceInFile(ctx context.Context, c Call) (Outcome, error) {
	from, to := []byte(c.Text("OLD")), []byte(c.Text("NEW"))
	return f.change(ctx, c, "replace-in-file", func(s spot) (string, error) {
		data, was, err := s.read()
		if err != nil {
			return "", err
		}
		switch n := bytes.Count(data, from); {
		case n == 0:
			return "", fmt.Errorf("the passage %q does not stand in %s%s", head(string(from)), s.path, nearMiss(data, from))
		case n > 1:
			return "", fmt.Errorf("the passage %q stands %d times in %s, first in the lines %s: give more around it", head(string(from)), n, s.path, linesOf(data, from))
		}
		at := bytes.Index(data, from)
		said := fmt.Sprintf("Replaced line %d of %s.", 1+bytes.Count(data[:at], []byte("\n")), c.Text("FILEPATH"))
		return said, s.write(f.note(turnOf(ctx), s.path, slices.Concat(data[:at], to, data[at+len(from):])), was)
	})
}

// nearMiss says that a passage only differs in white space, which is the usual
// mistake.
func nearMiss(data, passage []byte) string {
	squeeze := func(b []byte) []byte { return bytes.Join(bytes.Fields(b), []byte(" ")) }
	if bytes.Contains(squeeze(data), squeeze(passage)) {
		return ": it does with other white space, so read the file again"
	}
	return ""
}

// linesOf lists the first lines in which a passage begins.
func linesOf(data, passage []byte) string {
	const shown = 5
	var out []string
	for at := 0; len(out) < shown; {
		i := bytes.Index(data[at:], passage)
		if i < 0 {
			break
		}
		at += i
		out = append(out, fmt.Sprint(1+bytes.Count(data[:at], []byte("\n"))))
		at += len(passage)
	}
	return strings.Join(out, ", ")
}

// head is the beginning of a text, for messages.
func head(s string) string {
	const most = 60
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// change does something to one judged file, remembering how it was.
func (f Files) change(ctx context.Context, c Call, tool string, do func(spot) (string, error)) (Outcome, error) {
	path, err := c.Path("FILEPATH")
	if err != nil {
		return Outcome{}, err
	}
	// First the label, then the text: the other way round a crash would leave text
	// without it.
	if !isNote(path) {
		if err := f.Labels.Mark([]string{path}, turnOf(ctx).Taint); err != nil {
			return Outcome{}, err
		}
	}
	var said string
	kept, err := f.History.keep(ctx, tool+" "+c.Text("FILEPATH"), []undo.Scope{around(path)}, true, func() error {
		s, err := locate(path, tool != "replace-in-file")
		if err != nil {
			return err
		}
		defer s.close()
		said, err = do(s)
		return err
	})
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{OK: true, Text: said + kept.note, Changed: []string{path}}, nil
}

// around is what has to be remembered for one file: it, and the directories that
// writing it makes.
func around(path string) undo.Scope {
	root := filepath.Dir(path)
	for root != "/" {
		if st, err := os.Lstat(root); err == nil && st.IsDir() {
			break
		}
		root = filepath.Dir(root)
	}
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return undo.Scope{Root: root} // unreachable: root is a prefix of path
	}
	return undo.Scope{Root: root, Paths: []string{rel}}
}
