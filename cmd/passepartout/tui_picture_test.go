package main_test

import (
	"flag"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var pictures = flag.String("pictures", "", "write pictures of the terminal client to this directory")

// TestPictures takes the pictures of the documentation from real runs:
// go test ./cmd/passepartout -run TestPictures -pictures "$PWD/docs/img"
func TestPictures(t *testing.T) {
	if *pictures == "" {
		t.Skip("no -pictures directory was given")
	}
	x := newTerminal(t, 124, 34)
	x.say("what is due this week?")
	x.wait("Renew the library card")
	x.keys("C-Home")
	x.picture("chat", "A conversation: a question, the ruling on the action, the answer")
	x.say("/clear")
	x.say("run rm -rf ~")
	x.wait("I may not do that.")
	x.keys("C-g")
	x.wait("allow origin")
	x.picture("trace", "A refused command with every gate's verdict")
	x.say("/session trip")
	x.say("run curl https://ferries.example/times")
	x.wait("y allow once")
	x.picture("approval", "A question that waits for a person")
	x.keys("n")
	x.wait("denied by you")
	x.say("/agenda")
	x.wait("Renew the library card")
	x.keys("Down", "Down")
	x.picture("agenda", "The agenda of the week")
	x.keys("Escape")
	x.say("/memory projects/garden.org")
	x.wait("Water the lemon tree")
	x.picture("memory", "A file of the memex: its text and its headings")
	x.keys("Escape")
	x.keys("C-p")
	x.wait("commands")
	x.picture("palette", "The command palette")
}

// picture writes the screen as an SVG.
func (x *terminal) picture(name, title string) {
	x.Helper()
	screen := regexp.MustCompile(`/tmp/[\w/]*/home\b`).ReplaceAllString(x.do("capture-pane", "-e", "-p"), "/home/jean") // not this run's
	svg := toSVG(screen, title)
	if err := os.WriteFile(filepath.Join(*pictures, name+".svg"), []byte(svg), 0o644); err != nil {
		x.Fatal(err)
	}
}

// Measures of a character cell, and the colours of the sheet.
const (
	cellW, cellH = 8.4, 18.0
	paper, ink   = "#1a1b20", "#d8d4c8"
)

// A pen is how text looks from here on.
type pen struct {
	fg, bg                           string
	bold, dim, italic, under, invert bool
}

// toSVG draws what a terminal shows. It knows the sequences tmux writes: colours
// and attributes.
func toSVG(screen, title string) string {
	lines := strings.Split(strings.TrimRight(screen, "\n"), "\n")
	cols := 0
	var body strings.Builder
	var p pen
	for y, line := range lines {
		x := 0
		for line != "" {
			if rest, ok := strings.CutPrefix(line, "\x1b["); ok {
				codes, after, _ := strings.Cut(rest, "m")
				p = p.apply(strings.Split(codes, ";"))
				line = after
				continue
			}
			if rest, ok := strings.CutPrefix(line, "\x1b]"); ok { // a link
				_, line, _ = strings.Cut(rest, "\x1b\\")
				continue
			}
			if rest, ok := strings.CutPrefix(line, "\x0f"); ok {
				line = rest
				continue
			}
			text, _, _ := strings.Cut(line, "\x1b")
			line = line[len(text):]
			body.WriteString(p.draw(x, y, text))
			x += len([]rune(text))
		}
		cols = max(cols, x)
	}
	w, h := float64(cols)*cellW+24, float64(len(lines))*cellH+24
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="'DejaVu Sans Mono','Menlo','Consolas',monospace" font-size="14">
<title>%s</title>
<rect width="100%%" height="100%%" rx="8" fill="%s"/>
%s</svg>
`, w, h, html.EscapeString(title), paper, body.String())
}

// apply changes the pen by the numbers of one sequence.
func (p pen) apply(codes []string) pen {
	for i := 0; i < len(codes); i++ {
		n, err := strconv.Atoi(codes[i])
		if err != nil {
			n = 0 // an empty parameter means 0
		}
		switch {
		case n == 0:
			p = pen{}
		case n == 1:
			p.bold = true
		case n == 2:
			p.dim = true
		case n == 3:
			p.italic = true
		case n == 4:
			p.under = true
		case n == 7:
			p.invert = true
		case n == 39:
			p.fg = ""
		case n == 49:
			p.bg = ""
		case (n == 38 || n == 48) && i+4 < len(codes) && codes[i+1] == "2":
			colour := rgb(codes[i+2 : i+5])
			if n == 38 {
				p.fg = colour
			} else {
				p.bg = colour
			}
			i += 4
		}
	}
	return p
}

func rgb(parts []string) string {
	out := "#"
	for _, s := range parts {
		n, err := strconv.Atoi(s)
		if err != nil {
			return ink
		}
		out += fmt.Sprintf("%02x", n&255)
	}
	return out
}

// draw is a run of text in one look.
func (p pen) draw(x, y int, text string) string {
	fg, bg := p.fg, p.bg
	if fg == "" {
		fg = ink
	}
	if p.invert {
		if bg == "" {
			bg = paper
		}
		fg, bg = bg, fg
	}
	left, top, n := 12+float64(x)*cellW, 12+float64(y)*cellH, len([]rune(text))
	out := ""
	if bg != "" {
		out = fmt.Sprintf("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.0f\" fill=\"%s\"/>\n", left, top, float64(n)*cellW, cellH, bg)
	}
	if strings.TrimSpace(text) == "" {
		return out
	}
	style := ""
	for _, s := range []struct {
		on   bool
		text string
	}{{p.bold, ` font-weight="bold"`}, {p.italic, ` font-style="italic"`}, {p.under, ` text-decoration="underline"`}, {p.dim, ` opacity="0.7"`}} {
		if s.on {
			style += s.text
		}
	}
	return out + fmt.Sprintf("<text x=\"%.1f\" y=\"%.1f\" fill=\"%s\"%s textLength=\"%.1f\" lengthAdjust=\"spacingAndGlyphs\" xml:space=\"preserve\">%s</text>\n",
		left, top+13.5, fg, style, float64(n)*cellW, html.EscapeString(text))
}
