package org

import (
	"fmt"
	"html"
	"strings"
)

// htmlDialect writes HTML in which nothing from the file is markup.
type htmlDialect struct{}

func (htmlDialect) escape(s string) string {
	return html.EscapeString(strings.ToValidUTF8(s, "\ufffd"))
}

func (d htmlDialect) heading(level int, todo, title string, tags []string) string {
	var sb strings.Builder
	n := min(max(1, level+1), 6)
	if level == 0 {
		n = 1
	}
	fmt.Fprintf(&sb, "<h%d>", n)
	if todo != "" {
		sb.WriteString(`<span class="todo">` + d.escape(todo) + "</span> ")
	}
	sb.WriteString(title)
	for _, t := range tags {
		sb.WriteString(` <span class="tag">` + d.escape(t) + "</span>")
	}
	fmt.Fprintf(&sb, "</h%d>\n", n)
	return sb.String()
}

// htmlTags are the parts that are just an element around their contents.
var htmlTags = map[kind][2]string{
	kindParagraph:   {"<p>", "</p>\n"},
	kindBold:        {"<b>", "</b>"},
	kindItalic:      {"<i>", "</i>"},
	kindUnderline:   {"<u>", "</u>"},
	kindStrike:      {"<del>", "</del>"},
	kindVerbatim:    {"<code>", "</code>"},
	kindCode:        {"<code>", "</code>"},
	kindSubscript:   {"<sub>", "</sub>"},
	kindSuperscript: {"<sup>", "</sup>"},
	kindTimestamp:   {"<time>", "</time>"},
	kindLatex:       {`<code class="latex">`, "</code>"},
	kindLatexEnv:    {`<pre class="latex">`, "</pre>\n"},
	kindFixed:       {`<pre class="fixed">`, "</pre>\n"},
	kindTable:       {"<table>\n", "</table>\n"},
	kindItemTag:     {"<b>", "</b> "},
	kindInlineSrc:   {"<code>", "</code>"},
	kindInlineCall:  {"<code>", "</code>"},
	kindMacro:       {"<code>", "</code>"},
	kindCitation:    {"<cite>", "</cite>"},
	kindCookie:      {`<span class="cookie">`, "</span>"},
}

func (d htmlDialect) wrap(p *part, inner string) string {
	if t, ok := htmlTags[p.kind]; ok {
		return t[0] + inner + t[1]
	}
	switch p.kind {
	case kindBlock:
		return d.block(p, inner)
	case kindList:
		if p.ordered {
			return "<ol>\n" + inner + "</ol>\n"
		}
		return "<ul>\n" + inner + "</ul>\n"
	case kindItem:
		box := ""
		if p.box != 0 {
			box = `<input type="checkbox" disabled> `
			if p.box == 'X' {
				box = `<input type="checkbox" disabled checked> `
			}
		}
		return "<li>" + box + inner + "</li>\n"
	case kindRow:
		if p.header {
			inner = strings.ReplaceAll(strings.ReplaceAll(inner, "<td>", "<th>"), "</td>", "</th>")
		}
		return "<tr>" + inner + "</tr>\n"
	case kindCell:
		return "<td>" + inner + "</td>"
	case kindRule:
		return "<hr>\n"
	case kindBreak:
		return "<br>"
	case kindExport, kindRowRule:
		return ""
	case kindLink:
		return d.link(p.link, inner)
	case kindFootnoteDef:
		return `<sup id="fn-` + d.escape(p.name) + `">` + d.escape(p.name) + "</sup> "
	case kindFootnote:
		if p.name == "" {
			return ` <small>(` + inner + ")</small>"
		}
		return `<sup><a href="#fn-` + d.escape(p.name) + `">` + d.escape(p.name) + "</a></sup>"
	case kindTarget, kindRadioTarget:
		return `<a id="` + inner + `">` + inner + "</a>"
	case kindEntity:
		return d.escape(entity(html.UnescapeString(inner)))
	default:
	}
	return inner
}

func (d htmlDialect) block(p *part, inner string) string {
	switch p.name {
	case "SRC":
		if p.link.Path != "" {
			return `<pre><code class="language-` + d.escape(p.link.Path) + `">` + inner + "</code></pre>\n"
		}
		return "<pre><code>" + inner + "</code></pre>\n"
	case "EXAMPLE":
		return "<pre>" + inner + "</pre>\n"
	case "QUOTE":
		return "<blockquote>\n" + inner + "</blockquote>\n"
	case "VERSE":
		return `<p class="verse">` + strings.ReplaceAll(strings.TrimSpace(inner), "\n", "<br>\n") + "</p>\n"
	}
	return `<div class="` + d.escape(strings.ToLower(p.name)) + "\">\n" + inner + "</div>\n"
}

// link writes an anchor for targets that can do no harm, else only the text.
func (d htmlDialect) link(l Link, inner string) string {
	text := inner
	if text == "" {
		text = d.escape(linkText(l, ""))
	}
	switch t := strings.ToLower(l.Type); t {
	case "http", "https", "mailto":
		return `<a href="` + d.escape(t+":"+l.Path) + `" rel="noopener noreferrer">` + text + "</a>"
	case "custom-id", "id", "radio":
		return `<a href="#` + d.escape(l.Path) + `">` + text + "</a>"
	}
	return `<span class="link">` + text + "</span>"
}
