package act

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestHTMLBecomesWhatAReaderSees(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"plain text", "plain text"},
		{"a &lt;b&gt; &amp; c", "a <b> & c"},
		{"<p>one</p><p>two</p>", "one\ntwo"},
		{"one<br>two<br/>three", "one\ntwo\nthree"},
		{"<b>bo</b>ld and <i>it</i>.", "bold and it."},
		{"a   lot\n\tof   space", "a lot of space"},
		{"<ul><li>one<li>two</ul>", "- one\n- two"},
		{"<h2>Head</h2>text", "** Head\ntext"},
		{"<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>", "a b\nc"},
		{"<pre>a\n  b</pre>", "a\n  b"},
		{`<a href="https://example.org/x?a=1&amp;b=2">link</a> end`, "link [https://example.org/x?a=1&b=2] end"},
		{`<a href="#top">up</a>`, "up"},
		{`<a href="javascript:x()">click</a>`, "click"},
		{`<img src=x alt="a tree">`, "a tree"},
		{"<script>if (a < b) { x('</p>') }</script>after", "after"},
		{"<style>p > a {}</style>after", "after"},
		{"<!-- hidden > text -->shown", "shown"},
		{"<!doctype html><p>x", "x"},
		{"1 < 2 and 3 > 2", "1 < 2 and 3 > 2"},
		{`<p title="a > b">x</p>`, "x"},
		{"<p>unclosed <b", "unclosed"},
		{"<script>never ends", ""},
		{"", ""},
	} {
		if got := htmlText(c.src); got != c.want {
			t.Errorf("%q: got %q, want %q", c.src, got, c.want)
		}
	}
}

func FuzzHTML(f *testing.F) {
	for _, s := range []string{"<p>x</p>", "<a href='x>y", "<script></script", "&#x10ffff;&bogus;", "<\x00İ href=é>", "<!--", "</", "<h6><li><pre>", "<a İhref=\"http://x\">y</a>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := htmlText(s)
		if utf8.ValidString(s) && !utf8.ValidString(got) {
			t.Errorf("%q became %q, which is not UTF-8", s, got)
		}
		if strings.Contains(s, "<script>") && strings.HasPrefix(s, "<script>") && !strings.Contains(s, "</") && got != "" {
			t.Errorf("a script is shown: %q", got)
		}
	})
}
