package org

import "strings"

// markdownDialect writes CommonMark with the usual extensions.
type markdownDialect struct{}

// markdownSpecial are the characters Markdown could take for markup inside a line.
const markdownSpecial = "\\`*_[]<>#|~"

func (markdownDialect) escape(s string) string {
	if !strings.ContainsAny(s, markdownSpecial) {
		return s
	}
	var sb strings.Builder
	for i := range len(s) {
		if strings.IndexByte(markdownSpecial, s[i]) >= 0 {
			sb.WriteByte('\\')
		}
		sb.WriteByte(s[i])
	}
	return sb.String()
}

// unescape takes back what escape did, for text that is shown verbatim.
func (markdownDialect) unescape(s string) string {
	var sb strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte(markdownSpecial, s[i+1]) >= 0 {
			i++
		}
		sb.WriteByte(s[i])
	}
	return sb.String()
}

func (d markdownDialect) heading(level int, todo, title string, tags []string) string {
	s := strings.Repeat("#", min(max(1, level), 6))
	if todo != "" {
		s += " **" + d.escape(todo) + "**"
	}
	s += " " + title
	if len(tags) > 0 {
		s += " `:" + strings.Join(tags, ":") + ":`"
	}
	return s + "\n\n"
}

func (d markdownDialect) wrap(p *part, inner string) string {
	switch p.kind {
	case kindParagraph:
		return unindent(inner) + "\n\n"
	case kindBold:
		return "**" + inner + "**"
	case kindItalic:
		return "*" + inner + "*"
	case kindStrike:
		return "~~" + inner + "~~"
	case kindVerbatim, kindCode, kindInlineSrc, kindInlineCall:
		return codeSpan(d.unescape(inner))
	case kindLatex, kindCookie, kindTimestamp, kindMacro:
		return inner
	case kindLatexEnv:
		return fence(d.unescape(inner), "latex")
	case kindFixed:
		return "    " + d.unescape(inner) + "\n"
	case kindBlock:
		return d.block(p, inner)
	case kindList:
		return inner + "\n"
	case kindItem:
		return d.item(p, inner)
	case kindItemTag:
		return "**" + inner + "**: "
	case kindTable:
		return inner + "\n"
	case kindRow:
		row := "|" + inner + "\n"
		if p.first {
			row += "|" + strings.Repeat("---|", strings.Count(inner, " |")) + "\n"
		}
		return row
	case kindCell:
		return " " + inner + " |"
	case kindRule:
		return "---\n\n"
	case kindBreak:
		return "\\"
	case kindExport, kindRowRule:
		return ""
	case kindFootnoteDef:
		return "[^" + p.name + "]: "
	case kindFootnote:
		if p.name == "" {
			return "^[" + inner + "]"
		}
		return "[^" + p.name + "]"
	case kindLink:
		return d.link(p.link, inner)
	case kindEntity:
		return entity(d.unescape(inner))
	default:
	}
	return inner
}

func (d markdownDialect) item(p *part, inner string) string {
	mark := "- "
	if p.ordered {
		mark = "1. "
	}
	box := ""
	switch p.box {
	case 0:
	case 'X':
		box = "[x] "
	default:
		box = "[ ] "
	}
	return hang(mark+box, strings.Repeat(" ", len(mark)), inner)
}

func (d markdownDialect) block(p *part, inner string) string {
	switch p.name {
	case "SRC":
		return fence(d.unescape(inner), p.link.Path)
	case "EXAMPLE":
		return fence(d.unescape(inner), "")
	case "QUOTE":
		lines := strings.Split(strings.Trim(inner, "\n"), "\n")
		return "> " + strings.Join(lines, "\n> ") + "\n\n"
	case "VERSE":
		return strings.ReplaceAll(strings.TrimSpace(unindent(inner)), "\n", "\\\n") + "\n\n"
	}
	return inner
}

// fence writes a code block whose fence is longer than any run of backquotes in it.
func fence(text, language string) string {
	mark := strings.Repeat("`", max(3, longestRun(text)+1))
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return mark + language + "\n" + text + mark + "\n\n"
}

func codeSpan(text string) string {
	mark := strings.Repeat("`", longestRun(text)+1)
	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") {
		return mark + " " + text + " " + mark
	}
	return mark + text + mark
}

// longestRun is the length of the longest run of backquotes.
func longestRun(s string) int {
	best, n := 0, 0
	for i := range len(s) {
		if s[i] != '`' {
			n = 0
			continue
		}
		n++
		best = max(best, n)
	}
	return best
}

func (d markdownDialect) link(l Link, inner string) string {
	target := l.Type + ":" + l.Path
	switch l.Type {
	case "fuzzy", "radio", "coderef":
		if inner == "" {
			return d.escape(l.Path)
		}
		return inner
	case "file":
		target = l.Path
	case "custom-id":
		target = "#" + l.Path
	}
	if strings.ContainsAny(target, " ()<>\n\\") {
		target = "<" + strings.NewReplacer("<", "%3C", ">", "%3E", "\n", " ", `\`, "%5C").Replace(target) + ">"
	}
	if inner == "" {
		inner = d.escape(linkText(l, ""))
	}
	return "[" + inner + "](" + target + ")"
}
