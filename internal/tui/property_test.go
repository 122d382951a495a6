package tui_test

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"passepartout/internal/tui"
)

// pieces are the building blocks of hostile and ordinary text.
var pieces = []string{
	"word", " ", "  ", "\n", "\n\n", "\t", "**bold**", "*", "`code`", "_x_", "# head\n", "* TODO do\n", "** sub\n", "| a | b |\n", "|---|\n", "|", "```go\n", "```\n",
	"#+begin_src sh\n", "#+end_src\n", "- item\n", "1. one\n", "> quote\n", "---\n", "[t](https://example.org)", "[[x][y]]", "[ ] ", "https://example.org/a_b",
	"日本語", "👩‍👩‍👧", "👍🏽", "⚠️", "🇫🇷", "कि", "1️⃣", "é", "e\u0301", "\u202e", "\u200b", "\x1b[31m", "\x1b]0;t\x07", "\r", "\x00", "\xff", "\u0085", "\U000e0041", "⟨U+202E⟩", "⟨", "↵", "supercalifragilisticexpialidocious",
}

func text(t *rapid.T, label string) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 40).Draw(t, label), "")
}

func TestCleanTextCannotDriveTheTerminal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := text(t, "text")
		for _, got := range []string{tui.Clean(s), tui.Reveal(s)} {
			if !utf8.ValidString(got) {
				t.Fatalf("%q is no UTF-8", got)
			}
			for _, r := range got {
				if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
					t.Fatalf("%q of %q has %U", got, s, r)
				}
			}
		}
		if again := tui.Clean(tui.Clean(s)); again != tui.Clean(s) {
			t.Fatalf("cleaning twice gives %q, once %q", again, tui.Clean(s))
		}
	})
}

func TestRevealedTextsDifferWhereTheirSourcesDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := text(t, "a"), text(t, "b")
		if a != b && tui.Reveal(a) == tui.Reveal(b) {
			t.Fatalf("%q and %q both look like %q", a, b, tui.Reveal(a))
		}
	})
}

// cells is how wide a line is in the terminal that makes most of it.
func cells(s string) int { return max(ansi.StringWidth(s), ansi.StringWidthWc(s)) }

// Terminals disagree about characters put together of several. A terminal that
// draws them wider would cut off what stands behind them, which in a question is
// what a person says yes to.
func TestNothingHidesBehindCharactersTerminalsMeasureDifferently(t *testing.T) {
	for _, odd := range []string{"👍🏽", "👩‍👩‍👧", "⚠️", "🇫🇷", "कि", "1️⃣"} {
		s := newScreen(t, 80, 40)
		s.ask("t1", "a-7", "echo "+strings.Repeat(odd, 30)+" && evil")
		for row := range strings.SplitSeq(ansi.Strip(s.View().Content), "\n") {
			if n := cells(row); n > 80 {
				t.Errorf("%s: %d cells of 80: %q", odd, n, row)
			}
		}
		s.wants("evil")
		got := ansi.Strip(strings.Join(tui.Layout("| a | b |\n|---|---|\n| "+strings.Repeat(odd, 10)+" | end |\n", 30), "\n"))
		if !strings.Contains(got, "end") {
			t.Errorf("%s: the table's last cell is cut off:\n%s", odd, got)
		}
	}
}

func TestPunctuationStaysWithWhatItFollows(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"Say `friday`, or **now**!", "Say friday,\nor now!"},
		{"> a quotation that is long", "│ a\n│ quotation\n│ that is\n│ long"},
		{"~~gone~~ and here", "gone and\nhere"},
	} {
		if got := ansi.Strip(strings.Join(tui.Layout(c.in, 11), "\n")); got != c.want {
			t.Errorf("%q is laid out as\n%s\nwant\n%s", c.in, got, c.want)
		}
	}
	const table = "| n | what |\n|--:|:---:|\n| 1 | x |\n| 100 | wide |\n"
	if got := ansi.Strip(strings.Join(tui.Layout(table, 40), "\n")); !strings.Contains(got, "  1 │  x") || !strings.Contains(got, "100 │ wide") {
		t.Errorf("the columns are not put to their sides:\n%s", got)
	}
}

func TestNoLineIsWiderThanItsRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, w := tui.Clean(text(t, "text")), rapid.IntRange(4, 100).Draw(t, "width")
		for _, line := range tui.Layout(s, w) {
			if n := cells(line); n > w {
				t.Fatalf("line %q takes %d cells of %d", line, n, w)
			}
			if strings.Contains(line, "\n") {
				t.Fatalf("line %q has a line end", line)
			}
		}
	})
}

func TestStreamedTextIsLaidOutLikeTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 30).Draw(t, "parts")
		for i, p := range parts {
			parts[i] = tui.Clean(p)
		}
		w := rapid.IntRange(10, 80).Draw(t, "width")
		whole, stream := tui.Layout(strings.Join(parts, ""), w), tui.LayoutStream(parts, w)
		if !slices.Equal(whole, stream) {
			t.Fatalf("streamed %q\nwhole %q", stream, whole)
		}
	})
}

func TestLayoutLosesNoWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[a-z]{1,30}`), 1, 40).Draw(t, "words")
		sep := rapid.SampledFrom([]string{" ", "\n", " | ", "\n- "}).Draw(t, "separator")
		src, w := strings.Join(words, sep), 40
		if sep == " | " { // columns break words, so let them all fit
			src, w = "| "+src+" |", 4000
		}
		got := ansi.Strip(strings.Join(tui.Layout(src, w), " "))
		for _, word := range words {
			if !strings.Contains(got, word) {
				t.Fatalf("%q is missing in %q", word, got)
			}
		}
	})
}

func TestAnyScreenFitsItsTerminal(t *testing.T) {
	names := make([]string, 0, len(keys))
	for n := range keys {
		if n != "ctrl+o" && n != "ctrl+l" {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	rapid.Check(t, func(rt *rapid.T) {
		s := newScreen(t, 80, 24)
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			switch rapid.IntRange(0, 6).Draw(rt, "step") {
			case 0:
				s.Update(tea.WindowSizeMsg{Width: rapid.IntRange(1, 310).Draw(rt, "w"), Height: rapid.IntRange(1, 90).Draw(rt, "h")})
			case 1:
				s.press(rapid.SampledFrom(names).Draw(rt, "key"))
			case 2:
				s.Update(tea.PasteMsg{Content: text(rt, "paste")})
			case 3:
				s.Feed(status("t1", "PERCEIVED"), chunk("t1", text(rt, "chunk")))
			case 4:
				s.ask("t2", rapid.StringMatching(`a-[0-9]`).Draw(rt, "token"), text(rt, "command"))
			case 5:
				s.say(rapid.SampledFrom([]string{"/help", "/search a", "/why", "/theme", "/sidebar", "/clear", "hello", "/approve", "/session x"}).Draw(rt, "say"))
			case 6:
				s.Feed(reply("t1", rapid.SampledFrom([]string{"DONE", "DENIED", "FAILED", "PENDING", "odd"}).Draw(rt, "result"), text(rt, "answer")))
			}
			s.fits(rt)
		}
	})
}

// fits checks the screen's size and that it carries no escape sequence but
// colours.
func (s *screen) fits(t *rapid.T) {
	v := s.View()
	w, h := s.Size()
	rows := strings.Split(v.Content, "\n")
	if len(rows) > h {
		t.Fatalf("%d rows in a terminal of %d", len(rows), h)
	}
	for _, r := range rows {
		if n := cells(r); n > w {
			t.Fatalf("row %q takes %d cells of %d", ansi.Strip(r), n, w)
		}
	}
	for i, r := range v.Content {
		if unicode.IsControl(r) && r != '\n' && !(r == '\x1b' && strings.HasPrefix(v.Content[i:], "\x1b[")) {
			t.Fatalf("the screen has the control character %U", r)
		}
	}
	if v.Cursor != nil && (v.Cursor.X < 0 || v.Cursor.Y < 0 || v.Cursor.Y >= h) {
		t.Fatalf("the cursor is at %d,%d of %d×%d", v.Cursor.X, v.Cursor.Y, w, h)
	}
}

func TestFuzzyPrefersBeginningsAndRuns(t *testing.T) {
	cases := []struct{ query, better, worse string }{
		{"se", "session", "interfuse"}, {"qt", "quit", "request"}, {"app", "approve", "map pin"},
	}
	for _, c := range cases {
		b, ok1 := tui.Fuzzy(c.query, c.better)
		w, ok2 := tui.Fuzzy(c.query, c.worse)
		if !ok1 || !ok2 || b <= w {
			t.Errorf("%q scores %d for %s and %d for %s", c.query, b, c.better, w, c.worse)
		}
	}
	if _, ok := tui.Fuzzy("xyz", "session"); ok {
		t.Error("letters that are not there match")
	}
}

func FuzzLayout(f *testing.F) {
	for _, p := range pieces {
		f.Add(p, 20)
	}
	f.Add(note, 40)
	f.Fuzz(func(t *testing.T, s string, w int) {
		w = 4 + (w%200+200)%200
		for _, line := range tui.Layout(tui.Clean(s), w) {
			if n := ansi.StringWidth(line); n > w {
				t.Fatalf("line %q takes %d cells of %d", line, n, w)
			}
		}
	})
}
