package act

import (
	"html"
	"strings"
)

// silent are elements whose content nobody reads.
var silent = map[string]bool{
	"script": true, "style": true, "noscript": true, "template": true, "svg": true, "iframe": true, "object": true, "select": true, "textarea": true,
}

// breaking are elements that begin a line of their own.
var breaking = map[string]bool{
	"p": true, "div": true, "br": true, "li": true, "ul": true, "ol": true, "tr": true, "table": true, "section": true, "article": true, "header": true,
	"footer": true, "main": true, "nav": true, "aside": true, "blockquote": true, "pre": true, "dl": true, "dt": true, "dd": true, "form": true,
	"h1": true, "h2": true, "h3": true, "h4": true, "h5": true, "h6": true, "hr": true, "title": true, "figure": true, "option": true,
}

// htmlText is what a page says: its text without markup, scripts and styles, a
// line for each block, headings marked as in Org, links with their addresses. It
// takes any input and never fails; what is no markup is text.
func htmlText(src string) string {
	w := &textWriter{}
	for len(src) > 0 {
		i := strings.IndexByte(src, '<')
		if i < 0 {
			w.text(src)
			break
		}
		w.text(src[:i])
		src = src[i:]
		name, attrs, closing, rest := cutTag(src)
		if name == "" && rest == src { // a lone "<"
			w.text("<")
			src = src[1:]
			continue
		}
		src = rest
		if silent[name] && !closing {
			src = afterElement(src, name)
			continue
		}
		w.tag(name, attrs, closing)
	}
	return strings.TrimSpace(w.b.String())
}

// cutTag reads a tag, a comment or a declaration at the beginning of src. When
// there is none, rest is src itself.
func cutTag(src string) (name, attrs string, closing bool, rest string) {
	if after, ok := strings.CutPrefix(src, "<!--"); ok {
		_, rest, _ := strings.Cut(after, "-->")
		return "", "", false, rest
	}
	if len(src) > 1 && (src[1] == '!' || src[1] == '?') {
		_, rest, _ := strings.Cut(src, ">")
		return "", "", false, rest
	}
	at := 1
	if strings.HasPrefix(src, "</") {
		closing, at = true, 2
	}
	start := at
	for at < len(src) && isTagByte(src[at]) {
		at++
	}
	if at == start || src[start] >= '0' && src[start] <= '9' {
		return "", "", false, src
	}
	name = strings.ToLower(src[start:at])
	end := tagEnd(src, at)
	return name, src[at:end], closing, src[min(end+1, len(src)):]
}

func isTagByte(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '-'
}

// tagEnd is where a tag's ">" stands, quoted ones passed over.
func tagEnd(src string, at int) int {
	quote := byte(0)
	for ; at < len(src); at++ {
		switch c := src[at]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '>':
			return at
		}
	}
	return len(src)
}

// afterElement is what follows the end of an element that is not shown.
func afterElement(src, name string) string {
	for {
		i := strings.Index(src, "</")
		if i < 0 {
			return ""
		}
		src = src[i+2:]
		if len(src) >= len(name) && strings.EqualFold(src[:len(name)], name) {
			_, rest, _ := strings.Cut(src, ">")
			return rest
		}
	}
}

// A textWriter joins words with single blanks and blocks with line ends.
type textWriter struct {
	b     strings.Builder
	blank bool // a blank is due before the next word
	line  bool // a line end is due before the next word
	pre   int  // depth of <pre>
	href  string
}

func (w *textWriter) text(s string) {
	s = html.UnescapeString(s)
	if w.pre > 0 {
		if s != "" {
			w.begin()
			w.b.WriteString(s)
		}
		return
	}
	words := strings.Fields(s)
	if len(words) == 0 {
		w.blank = w.blank || s != ""
		return
	}
	w.blank = w.blank || strings.TrimLeft(s, blanks) != s
	for _, f := range words {
		w.begin()
		w.b.WriteString(f)
		w.blank = true
	}
	w.blank = strings.TrimRight(s, blanks) != s
}

const blanks = " \n\t\r\f"

// begin writes what separates the next word from the last.
func (w *textWriter) begin() {
	switch {
	case w.b.Len() == 0:
	case w.line:
		w.b.WriteByte('\n')
	case w.blank:
		w.b.WriteByte(' ')
	}
	w.line, w.blank = false, false
}

func (w *textWriter) tag(name, attrs string, closing bool) {
	if breaking[name] {
		w.line = true
	}
	switch {
	case name == "pre" && !closing:
		w.pre++
	case name == "pre" && w.pre > 0:
		w.pre--
	case name == "a" && !closing:
		w.href = attribute(attrs, "href")
	case name == "a":
		if strings.HasPrefix(w.href, "http://") || strings.HasPrefix(w.href, "https://") {
			w.b.WriteString(" [" + w.href + "]")
		}
		w.href = ""
	case name == "img" && attribute(attrs, "alt") != "":
		w.text(" " + attribute(attrs, "alt") + " ")
	case name == "td" || name == "th":
		w.blank = true
	case closing:
	case len(name) == 2 && name[0] == 'h' && name[1] >= '1' && name[1] <= '6':
		w.begin()
		w.b.WriteString("\n" + strings.Repeat("*", int(name[1]-'0')) + " ")
	case name == "li":
		w.begin()
		w.b.WriteString("- ")
	}
}

// attribute is the value of one attribute of a tag.
func attribute(attrs, name string) string {
	low := strings.Map(func(r rune) rune { // only letters that keep their width
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, attrs)
	if len(low) != len(attrs) {
		return "" // not text
	}
	for from := 0; ; {
		i := strings.Index(low[from:], name)
		if i < 0 {
			return ""
		}
		at := from + i
		from = at + len(name)
		if at > 0 && low[at-1] != ' ' && low[at-1] != '\n' && low[at-1] != '\t' {
			continue
		}
		rest := strings.TrimLeft(attrs[from:], " \n\t")
		value, ok := strings.CutPrefix(rest, "=")
		if !ok {
			continue
		}
		value = strings.TrimLeft(value, " \n\t")
		if value != "" && (value[0] == '"' || value[0] == '\'') {
			value, _, _ = strings.Cut(value[1:], value[:1])
		} else if i := strings.IndexAny(value, " \n\t/>"); i >= 0 {
			value = value[:i]
		}
		return html.UnescapeString(value)
	}
}
