package act

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"passepartout/internal/proto"
)

// Bounds of a walk through directories.
const (
	searchTimeout = 30 * time.Second
	maxVisits     = 500_000 // names looked at
	maxHits       = 200     // results shown when the call does not say
	maxDeep       = 100     // directories in each other
	maxShown      = 300     // bytes of a line
)

func (f Files) searchTools() []Tool {
	where := proto.Param{Name: "PATH", Type: proto.Text, Means: proto.ReadPath, Required: true, Doc: "the directory to look in, relative to the memex or absolute"}
	limit := proto.Param{Name: "LIMIT", Type: proto.Number, Doc: fmt.Sprintf("how many results, %d by default", maxHits)}
	return []Tool{
		{
			Name: "find-files", Effect: proto.ReadLocal, Timeout: searchTimeout, Doc: "Find files by name, in a directory and below it.",
			Params: []proto.Param{
				where,
				{Name: "NAME", Type: proto.Text, Required: true, Doc: "a pattern such as *.org; with a slash it is about the path below the directory"},
				limit,
			},
			Guard: func(c Call) error {
				if _, err := path.Match(c.Text("NAME"), ""); err != nil {
					return fmt.Errorf("the pattern %q: %w", c.Text("NAME"), err)
				}
				return positive("LIMIT")(c)
			},
			Run: f.findFiles,
		},
		{
			Name: "search-files", Effect: proto.ReadLocal, Timeout: searchTimeout, Doc: "Search the lines of text files in a directory and below it.",
			Params: []proto.Param{
				where,
				{Name: "PATTERN", Type: proto.Text, Required: true, Doc: "a regular expression (RE2)"},
				{Name: "LITERAL", Type: proto.Flag, Doc: "the pattern is plain text"},
				{Name: "IGNORE-CASE", Type: proto.Flag, Doc: "capitals do not matter"},
				{Name: "FILES", Type: proto.Text, Doc: "only files with such names: *.go"},
				limit,
			},
			Guard: func(c Call) error {
				if _, err := path.Match(c.Text("FILES"), ""); err != nil {
					return fmt.Errorf("the pattern %q: %w", c.Text("FILES"), err)
				}
				if _, err := lineExpr(c); err != nil {
					return err
				}
				return positive("LIMIT")(c)
			},
			Run: f.searchFiles,
		},
	}
}

func lineExpr(c Call) (*regexp.Regexp, error) {
	p := c.Text("PATTERN")
	if p == "" {
		return nil, fmt.Errorf(":PATTERN is empty: every line would match")
	}
	if c.Flag("LITERAL") {
		p = regexp.QuoteMeta(p)
	}
	if c.Flag("IGNORE-CASE") {
		p = "(?i)" + p
	}
	re, err := regexp.Compile(p)
	if err != nil {
		return nil, fmt.Errorf("the pattern: %w; with :LITERAL T it is plain text", err)
	}
	return re, nil
}

// A search walks a directory without following links or leaving it.
type search struct {
	files  Files
	root   string
	limit  int
	visit  func(rel string, at spot) error
	seen   int
	hits   []string
	taint  proto.Taint
	capped bool // there may be more than is shown
}

func (f Files) search(c Call) (*search, error) {
	root, err := c.Path("PATH")
	return &search{files: f, root: root, limit: c.Int("LIMIT", maxHits)}, err
}

// run walks the root and returns what was found.
func (s *search) run(ctx context.Context, none string) (Outcome, error) {
	at, err := locate(s.root, false)
	if err != nil {
		return Outcome{}, err
	}
	defer at.close()
	fd, err := enter(at.dir, at.name, false)
	if err != nil {
		return Outcome{}, plain(err, s.root)
	}
	if err := s.walk(ctx, fd, "", 0); err != nil {
		return Outcome{}, err
	}
	if len(s.hits) == 0 {
		return Outcome{OK: true, Text: none, Truncated: s.capped}, nil
	}
	text := strings.Join(s.hits, "\n")
	if s.capped {
		text += fmt.Sprintf("\n… there may be more; shown are %d", len(s.hits))
	}
	return Outcome{OK: true, Text: text, Taint: s.taint, Truncated: s.capped}, nil
}

// walk visits what a directory holds, in the order of names. It closes fd.
func (s *search) walk(ctx context.Context, fd int, rel string, deep int) error {
	defer func() { _ = unix.Close(fd) }()
	names, err := namesIn(fd)
	if err != nil {
		return nil // a directory that may not be listed has nothing to show
	}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		if s.seen++; s.seen > maxVisits || len(s.hits) >= s.limit {
			s.capped = true
			return nil
		}
		below := filepath.Join(rel, name)
		full := filepath.Join(s.root, below)
		if name == ".git" || s.files.Skip != nil && s.files.Skip(full) {
			continue
		}
		if sub, err := enter(fd, name, false); err == nil {
			if deep == maxDeep {
				_ = unix.Close(sub)
				s.capped = true
				continue
			}
			if err := s.walk(ctx, sub, below, deep+1); err != nil {
				return err
			}
			continue
		}
		if err := s.visit(below, spot{dir: fd, name: name, path: full}); err != nil {
			return err
		}
	}
	return nil
}

func namesIn(fd int) ([]string, error) {
	list, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	d := os.NewFile(uintptr(list), ".")
	defer d.Close()
	names, err := d.Readdirnames(maxVisits)
	slices.Sort(names)
	return names, err
}

func (s *search) hit(line string, taint proto.Taint) {
	if len(s.hits) >= s.limit {
		s.capped = true
		return
	}
	s.hits = append(s.hits, line)
	s.taint = s.taint.Join(taint)
}

func (f Files) findFiles(ctx context.Context, c Call) (Outcome, error) {
	s, err := f.search(c)
	if err != nil {
		return Outcome{}, err
	}
	want := c.Text("NAME")
	s.visit = func(rel string, _ spot) error {
		if named(want, rel) {
			s.hit(rel, proto.Taint{})
		}
		return nil
	}
	return s.run(ctx, fmt.Sprintf("No file below %s is named like %q.", s.root, want))
}

// named reports whether a path fits a pattern, by its last name unless the
// pattern says more.
func named(pattern, rel string) bool {
	name := filepath.ToSlash(rel)
	if !strings.Contains(pattern, "/") {
		name = path.Base(name)
	}
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}

func (f Files) searchFiles(ctx context.Context, c Call) (Outcome, error) {
	re, err := lineExpr(c)
	if err != nil {
		return Outcome{}, err
	}
	s, err := f.search(c)
	if err != nil {
		return Outcome{}, err
	}
	only := c.Text("FILES")
	s.visit = func(rel string, at spot) error {
		if only != "" && !named(only, rel) {
			return nil
		}
		data, _, err := at.read()
		if err != nil || !re.Match(data) || !isText(data) {
			return nil // what cannot be read as a file is not searched
		}
		n, taint := 0, f.label(at.path)
		for line := range bytes.Lines(data) {
			if n++; re.Match(line) {
				s.hit(fmt.Sprintf("%s:%d: %s", rel, n, shorten(line)), taint)
			}
		}
		return nil
	}
	return s.run(ctx, fmt.Sprintf("No line below %s matches.", s.root))
}

func isText(data []byte) bool {
	return utf8.Valid(data) && bytes.IndexByte(data[:min(len(data), 8000)], 0) < 0
}

func shorten(line []byte) string {
	s := strings.TrimRight(string(line), "\r\n")
	if len(s) > maxShown {
		return strings.ToValidUTF8(s[:maxShown], "") + "…"
	}
	return s
}
