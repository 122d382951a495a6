package org_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"passepartout/internal/org"
)

func links(src string) (out []string) {
	for _, l := range org.Parse([]byte(src)).Contents().Links {
		out = append(out, l.Type+"|"+l.Path)
	}
	return out
}

func TestLinksAreFoundWhereOrgFindsThem(t *testing.T) {
	for src, want := range map[string]string{
		"[[https://a.b/c][d]]":              "https|//a.b/c",
		"[[file:x.org::*Head][d]]":          "file|x.org",
		"[[./x.org]]":                       "file|./x.org",
		"[[#custom]]":                       "custom-id|custom",
		"[[(ref)]]":                         "coderef|ref",
		"[[id:1-2]]":                        "id|1-2",
		"[[attachment:a.png]]":              "attachment|a.png",
		"[[Some heading]]":                  "fuzzy|Some heading",
		"[[a\\[b\\]]]":                      "fuzzy|a[b]",
		"<https://a.b c>":                   "https|//a.b c",
		"see https://a.b/(c), now":          "https|//a.b/(c)",
		"https://a.b.":                      "https|//a.b",
		"xhttps://a.b":                      "",
		"=https://a.b=":                     "",
		"~[[a]]~":                           "",
		"*[[https://a.b][c]]*":              "https|//a.b",
		": [[a]]":                           "",
		"# [[a]]":                           "",
		"#+begin_src\n[[a]]\n#+end_src":     "",
		"#+begin_quote\n[[a]]\n#+end_quote": "fuzzy|a",
		"| [[a]] | b |":                     "fuzzy|a",
		"- [[a]] :: [[b]]":                  "fuzzy|a fuzzy|b",
		"* Head [[a]]":                      "fuzzy|a",
		"#+LINK: gh https://g.h/%s\n[[gh:x/y][z]]": "https|//g.h/x/y",
		"<<<radio>>> and Radio":                    "radio|Radio",
		"[fn:: see [[a]]]":                         "fuzzy|a",
		"#+begin_src\n[[a]]\n":                     "fuzzy|a",
	} {
		if got := strings.Join(links(src), " "); got != want {
			t.Errorf("%q holds %q, want %q", src, got, want)
		}
	}
}

func TestBodiesAreTakenApart(t *testing.T) {
	const src = `* a
:LOGBOOK:
CLOCK: [2024-01-01 Mon 10:00]--[2024-01-01 Mon 11:00] =>  1:00
:END:
#+NAME: x
#+HEADER: :var a=1
#+begin_src sh -n 5 :tangle "a b.sh" :results silent
echo
#+end_src
- [X] done
  1. [@5] five
- term :: text
| a | b |
|---+---|
| 1 | 2 |
#+TBLFM: $1=2
Text[fn:1] {{{macro(x)}}} <<target>> [2/3] $x$ [cite:@k] src_sh{echo}
<2024-01-01 Mon +1w> <%%(diary-x)>
# comment
: fixed
%%(diary-anniversary 1 1)
[fn:1] Definition.
`
	c := org.Parse([]byte(src)).Contents()
	got := fmt.Sprintf("drawers %d clocks %d blocks %d items %d tables %d rows %d notes %d macros %d targets %d cookies %d latex %d cites %d code %d stamps %d comments %d fixed %d diary %d",
		len(c.Drawers), len(c.Clocks), len(c.Blocks), len(c.Items), len(c.Tables), c.Tables[0].Rows, len(c.Footnotes), len(c.Macros), len(c.Targets),
		len(c.Cookies), len(c.Latex), len(c.Citations), len(c.InlineCode), len(c.Timestamps), len(c.Comments), len(c.FixedWidth), len(c.Diary))
	want := "drawers 1 clocks 1 blocks 1 items 3 tables 1 rows 2 notes 2 macros 1 targets 1 cookies 1 latex 1 cites 1 code 1 stamps 2 comments 1 fixed 1 diary 1"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if b := c.Blocks[0]; b.Language != "sh" || b.Params != `:tangle "a b.sh" :results silent` {
		t.Errorf("block %+v", b)
	}
	if i := c.Items[1]; i.Bullet != "1." || i.Counter != "5" || i.Indent != 2 || c.Items[0].Checkbox != "[X]" || c.Items[2].Tag.Empty() {
		t.Errorf("items %+v", c.Items)
	}
	if k := c.Clocks[0]; k.Duration != "1:00" {
		t.Errorf("clock %+v", k)
	}
}

func TestHeaderArgumentsAreInheritedAsBabelDoes(t *testing.T) {
	f := org.Parse([]byte(`#+PROPERTY: header-args :results silent :a 1
* top
:PROPERTIES:
:header-args: :a 2 :b 2
:header-args:sh: :c 3
:END:
** sub
:PROPERTIES:
:header-args+: :b 4
:END:
#+HEADER: :d 5
#+begin_src sh :a 9
#+end_src
`))
	got := f.HeaderArgs(f.Contents().Blocks[0])
	want := []org.Property{{"a", "9"}, {"b", "4"}, {"c", "3"}, {"d", "5"}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestConversionsKeepTheMeaning(t *testing.T) {
	const src = `#+TITLE: T & U
* TODO Head *b* :x:
A /b/ =c= [[https://e.org][d]] a_{1} \alpha

- one
  more
  1. [X] two
- three

| h | i |
|---+---|
| 1 | 2 |
#+begin_src go
if a < b {
,* x
#+end_src
#+begin_quote
said
#+end_quote
@@html:<b>@@ [[javascript:x][y]]
`
	f := org.Parse([]byte(src))
	for to, want := range map[org.Format]string{
		org.HTML: "<h1>T &amp; U</h1>\n<h2><span class=\"todo\">TODO</span> Head <b>b</b> <span class=\"tag\">x</span></h2>\n" +
			"<p>A <i>b</i> <code>c</code> <a href=\"https://e.org\" rel=\"noopener noreferrer\">d</a> a<sub>1</sub> α</p>\n" +
			"<ul>\n<li><p>one\n  more</p>\n<ol>\n<li><input type=\"checkbox\" disabled checked> <p>two</p>\n</li>\n</ol>\n</li>\n<li><p>three</p>\n</li>\n</ul>\n" +
			"<table>\n<tr><th>h</th><th>i</th></tr>\n<tr><td>1</td><td>2</td></tr>\n</table>\n" +
			"<pre><code class=\"language-go\">if a &lt; b {\n* x\n</code></pre>\n<blockquote>\n<p>said</p>\n</blockquote>\n" +
			"<p> <span class=\"link\">y</span></p>\n",
		org.Markdown: "# T & U\n\n# **TODO** Head **b** `:x:`\n\nA *b* `c` [d](https://e.org) a1 α\n\n" +
			"- one\n  more\n\n  1. [x] two\n- three\n\n| h | i |\n|---|---|\n| 1 | 2 |\n\n```go\nif a < b {\n* x\n```\n\n> said\n\ny\n\n",
	} {
		if got := f.Convert(to); got != want {
			t.Errorf("format %d:\n%s\nwant\n%s", to, got, want)
		}
	}
	if got := f.Headline(0).Convert(org.PlainText); !strings.HasPrefix(got, "TODO Head b (x)\n\nA b c d a1 α\n") {
		t.Errorf("text: %q", got)
	}
}

func TestMarkdownBecomesOrg(t *testing.T) {
	const md = "---\ntitle: My page\ntags: [a, b-c]\n---\n# One\n\nText *it* **b** `c` ~~s~~ [l](https://e.org).\n\\* not a head\n\n## Two\n\n- a\n  - [x] b\n1. n\n\n```go\n* x\n```\n\n> q\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n---\n"
	const want = "#+TITLE: My page\n#+FILETAGS: :a:b_c:\n\n* One\nText /it/ *b* ~c~ +s+ [[https://e.org][l]].\n\u200b* not a head\n\n** Two\n- a\n  - [X] b\n\n1. n\n\n#+begin_src go\n,* x\n#+end_src\n\n#+begin_quote\nq\n\n#+end_quote\n\n| a | b |\n|---+---|\n| 1 | 2 |\n\n-----\n"
	if got := string(org.FromMarkdown([]byte(md))); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestLintFindsWhatMeansSomethingElse(t *testing.T) {
	for src, want := range map[string]string{
		"* a\n:PROPERTIES:\n:ID: 1\n:END:\n* b\n:PROPERTIES:\n:ID: 1\n:END:\n": "duplicate-id",
		"* a\n\n:PROPERTIES:\n:ID: 1\n:END:\n":                                 "property-place",
		"#+begin_src\n":                                                        "unclosed-block",
		"#+end_src\n":                                                          "stray-end",
		":LOGBOOK:\n":                                                          "unclosed-drawer",
		"<2024-02-30 Fri>\n":                                                   "bad-date",
		"<2024-02-28 Fri>\n":                                                   "wrong-day",
		"* a\nscheduled: <2024-02-28 Wed>\n":                                   "planning-case",
		"* a\nDEADLINE: soon\n":                                                "planning-empty",
		"* a:b:\n":                                                             "glued-tags",
		"* [#Z] a\n":                                                           "priority-range",
		"* NEXT a\n":                                                           "unknown-keyword",
		"* a\n*** b\n":                                                         "skipped-level",
		"a [fn:1]\n":                                                           "missing-footnote",
		"[fn:1] a\n":                                                           "unused-footnote",
		"x\n**\n":                                                              "bare-stars",
		"a\r\nb\n":                                                             "line-ends",
		"a\xff\n":                                                              "encoding",
		"CLOCK: [2024-01-01 Mon 10:00]--[2024-01-01 Mon 11:00] =>  2:00\n": "clock-sum",
		sample: "",
	} {
		var codes []string
		for _, x := range org.Parse([]byte(src)).Lint() {
			codes = append(codes, x.Code)
		}
		if got := strings.Join(codes, " "); got != want {
			t.Errorf("%q gives %q, want %q", src, got, want)
		}
	}
}

func TestClockLinesAreReadInAllTheirForms(t *testing.T) {
	const from, to = "[2024-01-01 Mon 10:00]", "[2024-01-01 Mon 11:00]"
	for line, want := range map[string]string{
		"CLOCK: " + from:                              from + "|",
		"  clock: " + from + "  ":                     from + "|",
		"CLOCK: " + from + "--" + to + " =>  1:00":    from + "--" + to + "|1:00",
		"CLOCK: " + from + "--" + to:                  from + "--" + to + "|",
		"CLOCK: => 12:34":                             "|12:34",
		"CLOCK: [2024-01-01]":                         "[2024-01-01]|",
		"CLOCK: " + from + "--" + to + " => 1":        "",
		"CLOCK:" + from:                               "",
		"CLOCK: <2024-01-01 Mon>":                     "",
		"CLOCK: ":                                     "",
		"CLOCK: [2024-01-01]--[2024-01-02]":           "",
		"CLOCK: " + from + " " + to + " =>  1:00":     "",
		"xCLOCK: " + from:                             "",
		"CLOCK: [2024-01-01 Mon 10:00 and no closing": "",
		"CLOCK: " + from + "--" + to + " =>  1:00CLOCK: " + from + "--" + to + " =>  1:00": from + "--" + to + "|",
		"CLOCK: " + from + " x]": from + "|",
	} {
		got := ""
		for _, c := range org.Parse([]byte(line + "\n")).Contents().Clocks {
			got = c.Raw + "|" + c.Duration
		}
		if got != want {
			t.Errorf("%q read as %q, want %q", line, got, want)
		}
	}
}
