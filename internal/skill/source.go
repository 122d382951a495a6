package skill

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"passepartout/internal/org"
	"passepartout/internal/pattern"
	"passepartout/internal/sexp"
)

// maxSource is the largest skill file read, in bytes.
const maxSource = 1 << 20

// A source is one skill file, read and not yet run.
type source struct {
	name   string
	file   string // as problems show it
	id     string // the file's ID property, "" for none
	raw    []byte
	digest sexp.Digest
	needs  []string // names or ids this skill builds on, as written
	code   []byte   // the code alone, every line where it stands in the file
	tests  []byte   // the tests alone, likewise

	defines, mentions map[string]bool // names in the code, in capitals
}

var namePattern = pattern.New(`^[a-z][a-z0-9-]{0,63}$`)

// NameOf is the name of the skill in a file: its base name without the ending
// and without the customary "org-skill-".
func NameOf(base string) (string, error) {
	name := strings.TrimSuffix(base, ".org")
	name = strings.TrimPrefix(name, "org-skill-")
	if !namePattern.MatchString(name) {
		return "", fmt.Errorf("%s: want a name of small letters, digits and hyphens, like my-skill.org", base)
	}
	return name, nil
}

// parse cuts a skill file into code and tests. It runs nothing.
func parse(name, file string, raw []byte) (*source, error) {
	if len(raw) > maxSource {
		return nil, fmt.Errorf("%s: %d bytes are too many for a skill, want at most %d", file, len(raw), maxSource)
	}
	f := org.Parse(raw)
	if err := f.Editable(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	s := &source{name: name, file: file, id: f.ID(), raw: raw, digest: sha256.Sum256(raw)}
	contents := f.Contents()
	for _, k := range contents.Keywords {
		if k.Key == "DEPENDS_ON" {
			s.needs = append(s.needs, strings.FieldsFunc(k.Value, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' })...)
		}
	}
	var code, tests excerpt
	for _, b := range withBroken(raw, contents.Blocks) {
		if b.Name != "SRC" || !strings.EqualFold(b.Language, "lisp") && !strings.EqualFold(b.Language, "common-lisp") {
			continue
		}
		switch target := tangle(f, b); {
		case target == "no":
		case strings.Contains(strings.ToLower(target), "test"):
			tests.add(raw, b.Inner)
		default:
			code.add(raw, b.Inner)
		}
	}
	s.code, s.tests = code.text, tests.text
	s.defines, s.mentions = namesIn(string(s.code))
	return s, nil
}

// namesIn lists what code defines and what it names otherwise. Names in texts count:
// skills look others' names up by text.
func namesIn(code string) (defines, mentions map[string]bool) {
	defines, mentions = map[string]bool{}, map[string]bool{}
	before := ""
	for _, w := range words(code) {
		if w = strings.ToUpper(w); strings.HasPrefix(before, "DEF") {
			defines[w] = true
		}
		mentions[w], before = true, w
	}
	return defines, mentions
}

// words cuts code where no name goes on.
func words(code string) []string {
	return strings.FieldsFunc(code, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("()'`,\"#;:", r) })
}

// uses reports whether a skill names something that begins with another's name and
// that only the other defines: then it builds on it, said or not.
func (s *source) uses(o *source) bool {
	prefix := strings.ToUpper(o.name) + "-"
	for n := range o.defines {
		if strings.HasPrefix(strings.TrimPrefix(n, "*"), prefix) && s.mentions[n] && !s.defines[n] {
			return true
		}
	}
	return false
}

var (
	beginLisp = pattern.New(`(?i)^[ \t]*#\+begin_src[ \t]+((?:common-)?lisp)\b[ \t]*(.*?)[ \t\r]*$`)
	endSrc    = pattern.New(`(?i)^[ \t]*#\+end_src[ \t\r]*$`)
)

// withBroken adds the blocks Org does not see because a line within them begins
// like a heading, as lines of a text in the code may. Loaders of such files cut at
// the lines of the block alone. A block in which another begins is none.
func withBroken(raw []byte, blocks []org.Block) []org.Block {
	out := slices.SortedFunc(slices.Values(blocks), byStart)
	rest := slices.Clone(out)
	var open *org.Block
	at := 0
	for line := range bytes.Lines(raw) {
		start := at
		at += len(line)
		for len(rest) > 0 && start >= rest[0].Span.End {
			rest = rest[1:]
		}
		text := bytes.TrimSuffix(line, []byte{'\n'})
		m := beginLisp.Regexp().FindSubmatch(text)
		switch {
		case len(rest) > 0 && start >= rest[0].Span.Start:
			if rest[0].Name != "EXAMPLE" {
				open = nil
			}
		case m != nil:
			open = &org.Block{Name: "SRC", Language: string(m[1]), Params: string(m[2]), Span: org.Span{Start: start}, Inner: org.Span{Start: at}}
		case open != nil && endSrc.Regexp().Match(text):
			open.Inner.End, open.Span.End = start, at
			out = append(out, *open)
			open = nil
		}
	}
	slices.SortFunc(out, byStart)
	return out
}

func byStart(a, b org.Block) int { return cmp.Compare(a.Span.Start, b.Span.Start) }

// tangle is where a block would be written to. Blocks that do not say are code.
func tangle(f *org.File, b org.Block) string {
	for _, p := range f.HeaderArgs(b) {
		if strings.EqualFold(strings.TrimPrefix(p.Key, ":"), "tangle") {
			return strings.Trim(p.Value, `" `)
		}
	}
	return ""
}

// An excerpt is some lines of a file, each at the number it has there.
type excerpt struct {
	text []byte
	end  int // up to where the file is accounted for
}

func (x *excerpt) add(raw []byte, s org.Span) {
	x.text = append(x.text, bytes.Repeat([]byte{'\n'}, bytes.Count(raw[x.end:s.Start], []byte{'\n'}))...)
	x.text = append(x.text, escapedLine.Regexp().ReplaceAll(raw[s.Start:s.End], []byte("$1$2"))...)
	x.end = s.End
}

// escapedLine matches the comma Org puts before a line of a block that would be
// read as a heading or a keyword.
var escapedLine = pattern.New(`(?m)^([ \t]*),(,*(?:\*|#\+))`)

// resolve turns the names a skill builds on into names of skills, and says which
// are missing.
func (s *source) resolve(byID map[string]string, known map[string]*source) (out []string, missing error) {
	for _, n := range s.needs {
		if id, ok := strings.CutPrefix(n, "id:"); ok {
			n = byID[id]
			if n == "" {
				missing = errors.Join(missing, fmt.Errorf("%s: depends on id:%s, which no skill has", s.file, id))
				continue
			}
		} else {
			n = strings.TrimPrefix(strings.ToLower(strings.TrimSuffix(n, ".org")), "org-skill-")
		}
		if known[n] == nil {
			hint := ""
			if near, ok := sexp.Nearest(n, names(known)); ok {
				hint = ", did you mean " + near + "?"
			}
			missing = errors.Join(missing, fmt.Errorf("%s: depends on the skill %s, which is not there%s", s.file, n, hint))
			continue
		}
		out = append(out, n)
	}
	return out, missing
}
