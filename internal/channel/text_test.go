package channel_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"

	"passepartout/internal/channel"
)

func units(s string) int { return len(utf16.Encode([]rune(s))) }

func TestALongAnswerIsCutWhereItReadsWell(t *testing.T) {
	para := strings.Repeat("words and words. ", 12) // 204 units
	code := "```go\n" + strings.Repeat("x := 1\n", 20) + "```"
	for _, c := range []struct {
		name, text string
		most       int
		want       []string
	}{
		{"short", "a\n\nb", 300, []string{"a\n\nb"}},
		{"between paragraphs", para + "\n\n" + para, 300, []string{para + "\n", para}},
		{"before a block of code", para + "\n" + code, 300, []string{para, code}},
		{"between words", strings.Repeat("word ", 100), 256, nil},
		{"inside a block too long for one part", "```sh\n" + strings.Repeat("echo something\n", 40) + "```", 300, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := channel.Split(c.text, c.most)
			for i, p := range got {
				if units(p) > c.most {
					t.Errorf("part %d has %d units", i, units(p))
				}
				if strings.Count(p, "```")%2 != 0 {
					t.Errorf("part %d has an open block:\n%s", i, p)
				}
			}
			if c.want != nil && fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) {
				t.Errorf("cut as %q\nwant %q", got, c.want)
			}
		})
	}
	for _, p := range channel.Split("```sh\n"+strings.Repeat("echo something\n", 40)+"```", 300) {
		if !strings.HasPrefix(p, "```sh\n") {
			t.Errorf("the block is opened again as %q", p[:10])
		}
	}
}

func TestWhatBelongsTogetherIsNotCut(t *testing.T) {
	link, code := "[[https://example.org/a path][a name with spaces]]", "`some code with spaces`"
	astronaut := "👩🏽‍🚀"
	for name, text := range map[string]string{
		"links":          strings.Repeat("see "+link+" and ", 40),
		"pieces of code": strings.Repeat("say "+code+" or ", 40),
	} {
		for i, p := range channel.Split(text, 256) {
			if strings.Count(p, "[[") != strings.Count(p, "]]") || strings.Count(p, "`")%2 != 0 {
				t.Errorf("%s: part %d falls apart: %q", name, i, p)
			}
		}
	}
	for name, cluster := range map[string]string{"a picture of several": astronaut, "a letter and its mark": "e\u0301", "a flag": "🇩🇪"} {
		for i, p := range channel.Split(strings.Repeat(cluster, 200), 256) {
			if strings.ReplaceAll(p, cluster, "") != "" {
				t.Errorf("%s: part %d falls apart: %q", name, i, strings.ReplaceAll(p, cluster, ""))
			}
		}
	}
	block := "#+begin_src sh :results output\n" + strings.Repeat("echo something\n", 40) + "#+end_src"
	parts := channel.Split("Look:\n"+block+"\nDone.", 300)
	for i, p := range parts {
		if strings.Count(p, "#+begin_src sh") != 1 || strings.Count(p, "#+end_src") != 1 || units(p) > 300 {
			t.Errorf("part %d of %d is %q", i, len(parts), p)
		}
	}
}

// letters are a text without white space and fences, which is what cutting must
// not change.
func letters(s string) string {
	for _, mark := range []string{"```go", "```", "#+begin_src sh", "#+end_src"} {
		s = strings.ReplaceAll(s, mark, "")
	}
	return strings.Join(strings.Fields(s), "")
}

func TestCuttingLosesNothingAndFits(t *testing.T) {
	word := rapid.SampledFrom([]string{"a", "word", "über", "世界", "👩‍🚀👩‍🚀", " ", "\n", "\n\n", "\n```go\n", "\n```\n", "\n#+begin_src sh\n", "\n#+end_src\n", "[[a b][c d]]", "e\u0301", "🇩🇪", "\t", strings.Repeat("long", 60), "`tick`"})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(word, 0, 400).Draw(t, "words"), "")
		most := rapid.IntRange(128, 600).Draw(t, "most")
		parts := channel.Split(text, most)
		for i, p := range parts {
			if units(p) > most {
				t.Fatalf("part %d has %d units, more than %d", i, units(p), most)
			}
		}
		if got, want := letters(strings.Join(parts, "\n")), letters(text); got != want {
			t.Fatalf("cut and put together it is\n%q\nwant\n%q", got, want)
		}
	})
}

func TestCleanTextHasNothingThatCannotBeSeen(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n":                 "plain\ttext\n",
		"a\r\nb\rc":                     "a\nb\nc",
		"\x1b]0;title\x07red\x1b[31m":   "]0;titlered[31m",
		"pay \u202e001\u202c now":       "pay 001 now",
		"zero\u200bwidth\ufeff\u00ad":   "zerowidth",
		"tag\U000e0041":                 "tag",
		"bad\xff\xfebytes":              "badbytes",
		"c1\u009b31m":                   "c131m",
		"family 👩‍👧 stays, Ünïcode too": "family 👩‍👧 stays, Ünïcode too",
	} {
		if got := channel.Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
}
