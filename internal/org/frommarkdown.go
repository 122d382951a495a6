package org

import (
	"fmt"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// FromMarkdown converts Markdown (CommonMark with tables, strikethrough, task
// lists and footnotes) to Org, for imports. A YAML front matter's title and tags
// become #+TITLE and #+FILETAGS. Raw HTML is kept as an export block, which the
// safe HTML output never shows.
func FromMarkdown(src []byte) []byte {
	var w mdImport
	body := w.frontMatter(strings.ReplaceAll(string(src), "\r\n", "\n"))
	w.src = []byte(body)
	md := goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList, extension.Footnote))
	w.blocks(md.Parser().Parse(text.NewReader(w.src)), "")
	return []byte(strings.TrimRight(w.out.String(), "\n") + "\n")
}

type mdImport struct {
	src   []byte
	out   strings.Builder
	depth int
}

// maxImportDepth bounds nesting that is rendered; what is deeper is dropped to text.
const maxImportDepth = 100

// frontMatter takes off a leading YAML block and writes what Org knows of it.
func (w *mdImport) frontMatter(src string) string {
	rest, ok := strings.CutPrefix(src, "---\n")
	head, body, closed := strings.Cut(rest, "\n---\n")
	if !ok || !closed {
		return src
	}
	for line := range strings.SplitSeq(head, "\n") {
		key, value, _ := strings.Cut(line, ":")
		value = strings.Trim(strings.TrimSpace(value), `"'`)
		switch strings.ToLower(key) {
		case "title":
			if value != "" {
				w.out.WriteString("#+TITLE: " + value + "\n")
			}
		case "tags":
			if tags := importTags(value); tags != "" {
				w.out.WriteString("#+FILETAGS: " + tags + "\n")
			}
		}
	}
	if w.out.Len() > 0 {
		w.out.WriteByte('\n')
	}
	return body
}

// importTags makes Org tags of a YAML list on one line.
func importTags(value string) string {
	var tags []string
	for t := range strings.FieldsFuncSeq(strings.Trim(value, "[]"), func(r rune) bool { return r == ',' }) {
		t = strings.Map(func(r rune) rune {
			if r != ':' && tagChar(r) {
				return r
			}
			return '_'
		}, strings.Trim(strings.TrimSpace(t), `"'#`))
		if t != "" {
			tags = append(tags, t)
		}
	}
	if len(tags) == 0 {
		return ""
	}
	return ":" + strings.Join(tags, ":") + ":"
}

// blocks writes the block children of n, each line behind indent.
func (w *mdImport) blocks(n ast.Node, indent string) {
	if w.depth++; w.depth > maxImportDepth {
		w.lines(indent, w.inline(n))
		w.depth--
		return
	}
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		w.block(c, indent)
	}
	w.depth--
}

func (w *mdImport) block(n ast.Node, indent string) {
	switch n := n.(type) {
	case *ast.Heading:
		if indent == "" {
			w.out.WriteString(strings.Repeat("*", n.Level) + " " + strings.ReplaceAll(w.inline(n), "\n", " ") + "\n")
		} else {
			w.lines(indent, "*"+w.inline(n)+"*")
		}
	case *ast.Paragraph:
		w.lines(indent, guard(w.inline(n)))
		w.gap(indent)
	case *ast.TextBlock:
		w.lines(indent, guard(w.inline(n)))
	case *ast.List:
		w.list(n, indent)
		w.gap(indent)
	case *ast.FencedCodeBlock:
		w.code(n.Lines(), strings.TrimSpace("src "+string(n.Language(w.src))), indent)
	case *ast.CodeBlock:
		w.code(n.Lines(), "example", indent)
	case *ast.HTMLBlock:
		w.code(n.Lines(), "export html", indent)
	case *ast.Blockquote:
		w.lines(indent, "#+begin_quote")
		w.blocks(n, indent)
		w.lines(indent, "#+end_quote")
		w.gap(indent)
	case *ast.ThematicBreak:
		w.lines(indent, "-----")
		w.gap(indent)
	case *extast.Table:
		w.table(n, indent)
		w.gap(indent)
	case *extast.Footnote:
		w.out.WriteString("[fn:" + string(n.Ref) + "] ")
		w.blocks(n, "")
	default:
		w.blocks(n, indent)
	}
}

// lines writes text, every line behind indent.
func (w *mdImport) lines(indent, s string) {
	for line := range strings.SplitSeq(s, "\n") {
		w.out.WriteString(strings.TrimRight(indent+line, " ") + "\n")
	}
}

// gap separates blocks at the top; inside lists a blank line would end too much.
func (w *mdImport) gap(indent string) {
	if indent == "" {
		w.out.WriteByte('\n')
	}
}

func (w *mdImport) list(n *ast.List, indent string) {
	num := n.Start
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		mark := "- "
		if n.IsOrdered() {
			mark = fmt.Sprintf("%d. ", num)
			num++
		}
		inner := &mdImport{src: w.src, depth: w.depth}
		inner.blocks(c, strings.Repeat(" ", len(indent)+len(mark)))
		body := strings.TrimRight(inner.out.String(), "\n")
		w.out.WriteString(strings.TrimRight(indent+mark+strings.TrimLeft(body, " "), " ") + "\n")
	}
}

func (w *mdImport) code(lines *text.Segments, name, indent string) {
	w.lines(indent, "#+begin_"+name)
	for i := range lines.Len() {
		seg := lines.At(i)
		line := strings.TrimRight(string(seg.Value(w.src)), "\n")
		if t := strings.TrimLeft(line, ","); strings.HasPrefix(t, "*") || strings.HasPrefix(t, "#+") {
			line = "," + line
		}
		w.lines(indent, line)
	}
	word, _, _ := strings.Cut(name, " ")
	w.lines(indent, "#+end_"+word)
	w.gap(indent)
}

func (w *mdImport) table(n ast.Node, indent string) {
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		line, cells := "|", 0
		for c := row.FirstChild(); c != nil; c = c.NextSibling() {
			line += " " + strings.NewReplacer("|", `\vert{}`, "\n", " ").Replace(w.inline(c)) + " |"
			cells++
		}
		w.lines(indent, line)
		if _, head := row.(*extast.TableHeader); head && cells > 0 {
			w.lines(indent, "|"+strings.Repeat("---+", cells-1)+"---|")
		}
	}
}

// inline renders the inline children of n.
func (w *mdImport) inline(n ast.Node) string {
	var sb strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		sb.WriteString(w.object(c))
	}
	return sb.String()
}

func (w *mdImport) object(n ast.Node) string {
	if w.depth > maxImportDepth {
		return ""
	}
	w.depth++
	defer func() { w.depth-- }()
	switch n := n.(type) {
	case *ast.Text:
		raw := n.Value(w.src)
		if !n.IsRaw() {
			raw = util.UnescapePunctuations(util.ResolveNumericReferences(util.ResolveEntityNames(raw)))
		}
		s := string(raw)
		switch {
		case n.HardLineBreak():
			s += "\\\\\n"
		case n.SoftLineBreak():
			s += "\n"
		}
		return s
	case *ast.String:
		return string(n.Value)
	case *ast.CodeSpan:
		s := w.inline(n)
		if strings.Contains(s, "~") {
			return "=" + s + "="
		}
		return "~" + s + "~"
	case *ast.Emphasis:
		if n.Level == 2 {
			return "*" + w.inline(n) + "*"
		}
		return "/" + w.inline(n) + "/"
	case *extast.Strikethrough:
		return "+" + w.inline(n) + "+"
	case *ast.Link:
		return orgLink(string(n.Destination), w.inline(n))
	case *ast.Image:
		return orgLink(string(n.Destination), "")
	case *ast.AutoLink:
		return string(n.URL(w.src))
	case *extast.TaskCheckBox:
		if n.IsChecked {
			return "[X] "
		}
		return "[ ] "
	case *ast.RawHTML:
		return ""
	case *extast.FootnoteLink:
		return fmt.Sprintf("[fn:%d]", n.Index)
	}
	return w.inline(n)
}

func orgLink(target, description string) string {
	target = strings.NewReplacer("[", "%5B", "]", "%5D").Replace(target)
	description = strings.NewReplacer("[[", "[", "]]", "]", "\n", " ").Replace(description)
	if description == "" || description == target {
		return "[[" + target + "]]"
	}
	return "[[" + target + "][" + description + "]]"
}

// guard keeps ordinary lines from being read as Org structure, with a zero
// width space, Org's own way to say "no markup here".
func guard(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		stars := strings.TrimLeft(l, "*")
		if len(stars) < len(l) && strings.HasPrefix(stars, " ") || strings.HasPrefix(l, "#+") || strings.HasPrefix(l, "# ") || strings.HasPrefix(l, ":") || strings.HasPrefix(l, "|") {
			lines[i] = "\u200b" + l
		}
	}
	return strings.Join(lines, "\n")
}
