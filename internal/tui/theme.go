package tui

import (
	"image/color"
	"strings"

	"charm.land/lipgloss/v2"
)

// A role is what a piece of text is for; a theme says how that looks.
type role uint8

const (
	rolePlain role = iota
	roleStrong
	roleEmph
	roleCode
	roleLink
	roleHeading
	roleDim
	roleAccent
	roleUser
	roleOK
	roleAsk
	roleDeny
	roleWarn // fuller than half
	roleHigh // nearly full
	roleBorder
	roleSelect
	roleMatch
	roleCount
)

// A theme holds, for each role, the escape sequences before and after its text.
// They are taken from the styles once: a style's own Render is far too slow to
// call for every word.
type theme struct {
	name          string
	before, after [roleCount]string
	styles        [roleCount]lipgloss.Style
}

// paint puts text into a role's colours.
func (t *theme) paint(r role, s string) string {
	if s == "" || t.before[r] == "" {
		return s
	}
	return t.before[r] + s + t.after[r]
}

// themeNames lists the themes in the order /theme goes through them.
var themeNames = []string{"dark", "light", "contrast", "mono"}

// palette is the colours a theme is made of.
type palette struct {
	dim, accent, user, code, link, ok, ask, deny, warn, high, border, selBack, selFront, match string
}

var palettes = map[string]palette{
	"dark": {
		dim: "#8a8578", accent: "#e0af68", user: "#7dcfff", code: "#c3e88d", link: "#7aa2f7", ok: "#9ece6a",
		ask: "#ffb454", deny: "#f7768e", warn: "#e5d86b", high: "#ff9e64", border: "#565f5a", selBack: "#3b4261", selFront: "#ffffff", match: "#5c4b1f",
	},
	"light": {
		dim: "#6b6b6b", accent: "#8f5902", user: "#005f87", code: "#3a5f0b", link: "#204a87", ok: "#2e7d32",
		ask: "#b35900", deny: "#b00020", warn: "#8a6d00", high: "#b35900", border: "#b0aca0", selBack: "#d0dcf0", selFront: "#000000", match: "#fff0a8",
	},
	"contrast": {
		dim: "15", accent: "11", user: "14", code: "15", link: "14", ok: "10",
		ask: "11", deny: "9", warn: "11", high: "208", border: "15", selBack: "15", selFront: "0", match: "11",
	},
}

// newTheme returns the theme of that name; an unknown name is mono, which uses no
// colour at all.
func newTheme(name string) *theme {
	p, coloured := palettes[name]
	base := lipgloss.NewStyle()
	fg := func(c string) lipgloss.Style {
		if !coloured {
			return base
		}
		return base.Foreground(lipgloss.Color(c))
	}
	s := [roleCount]lipgloss.Style{
		rolePlain: base, roleStrong: base.Bold(true), roleEmph: base.Italic(true), roleCode: fg(p.code),
		roleLink: fg(p.link).Underline(true), roleHeading: fg(p.accent).Bold(true), roleDim: fg(p.dim),
		roleAccent: fg(p.accent).Bold(true), roleUser: fg(p.user), roleOK: fg(p.ok), roleAsk: fg(p.ask).Bold(true),
		roleDeny: fg(p.deny).Bold(true), roleWarn: fg(p.warn), roleHigh: fg(p.high), roleBorder: fg(p.border),
		roleSelect: base.Reverse(true), roleMatch: base.Reverse(true),
	}
	if coloured {
		back := func(b, f string) lipgloss.Style { return fg(f).Background(lipgloss.Color(b)) }
		s[roleSelect] = back(p.selBack, p.selFront)
		s[roleMatch] = base.Background(lipgloss.Color(p.match)).Bold(true)
		if name == "contrast" {
			s[roleMatch] = back(p.match, "0")
		}
	} else {
		s[roleDim] = base.Faint(true)
	}
	t := &theme{name: name, styles: s}
	for r, st := range s {
		t.before[r], t.after[r], _ = strings.Cut(st.Render("x"), "x")
	}
	return t
}

// dark reports whether a terminal's background is dark, by perceived brightness.
func dark(c color.Color) bool {
	if c == nil {
		return true
	}
	r, g, b, _ := c.RGBA()
	return (299*r+587*g+114*b)/1000 < 0x8000
}

// glyphs are the signs drawn around text.
type glyphs struct {
	ok, ask, deny, agent, prompt, bullet, dots, fold, unfold, online, offline, rule, bar, full, empty string
	corner                                                                                            [4]string // clockwise from top left
	spin                                                                                              []string
}

var unicodeGlyphs = glyphs{
	ok: "✓", ask: "?", deny: "✗", agent: "◆", prompt: "› ", bullet: "•", dots: "…", fold: "▸", unfold: "▾",
	online: "●", offline: "○", rule: "─", bar: "│", full: "▰", empty: "▱", corner: [4]string{"╭", "╮", "╯", "╰"},
	spin: []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"},
}

var asciiGlyphs = glyphs{
	ok: "+", ask: "?", deny: "x", agent: "*", prompt: "> ", bullet: "-", dots: ".", fold: ">", unfold: "v",
	online: "o", offline: "!", rule: "-", bar: "|", full: "#", empty: ".", corner: [4]string{"+", "+", "+", "+"},
	spin: []string{"|", "/", "-", "\\"},
}

// A look is a theme with its glyphs: all that layout needs to know.
type look struct {
	*theme
	glyphs
	plain bool // ASCII only
	links bool // the terminal is told where links lead
}

func newLook(name string, plain bool) look {
	g := unicodeGlyphs
	if plain {
		g = asciiGlyphs
	}
	return look{theme: newTheme(name), glyphs: g, plain: plain}
}

// sign is the glyph and the role of a decision or a turn's result.
func (l look) sign(decision string) (string, role) {
	switch decision {
	case "allow", "done":
		return l.ok, roleOK
	case "ask", "pending":
		return l.ask, roleAsk
	}
	return l.deny, roleDeny
}
