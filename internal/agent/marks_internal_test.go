package agent

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"

	"passepartout/internal/pattern"
)

// TestNoMarkIsOverlookedForWantOfAWord holds the short cut of looking for words first
// against the expressions themselves, on texts made from those expressions and on what
// models have written.
func TestNoMarkIsOverlookedForWantOfAWord(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 2026))
	marks := append(slices.Clone(places), strangeMarks)
	var texts []string
	for _, name := range []string{"corpus.txt", "corpus-models.txt"} {
		raw, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, strings.Split(string(raw), "\n====\n")...)
	}
	for i, p := range marks {
		tree, err := syntax.Parse(p.Regexp().String(), syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		matched := 0
		for range 500 {
			s := "Words before.\n" + sample(r, tree)
			if p.Regexp().MatchString(s) {
				matched++
			}
			findsAlike(t, p, s)
		}
		if matched < 100 {
			t.Errorf("mark %d: only %d of 500 texts made from it match: they show little", i, matched)
		}
		for _, s := range texts {
			findsAlike(t, p, s)
		}
	}
}

func findsAlike(t *testing.T, p *pattern.Pattern, s string) {
	t.Helper()
	if want := p.Regexp().FindStringSubmatchIndex(s); !slices.Equal(p.FindStringSubmatchIndex(s), want) || p.MatchString(s) != (want != nil) {
		t.Fatalf("%s\nmatches %q only when it is not asked for its words first", p.Regexp(), s)
	}
}

// sample is a text an expression could match.
func sample(r *rand.Rand, n *syntax.Regexp) string {
	several := func(least, most int) string {
		var b strings.Builder
		for range least + r.IntN(most-least+1) {
			b.WriteString(sample(r, n.Sub[0]))
		}
		return b.String()
	}
	switch n.Op {
	case syntax.OpLiteral:
		return string(n.Rune)
	case syntax.OpCharClass:
		i := 2 * r.IntN(len(n.Rune)/2)
		low, high := n.Rune[i], min(n.Rune[i+1], n.Rune[i]+25)
		return string(low + r.Int32N(high-low+1))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return string(rune('a' + r.IntN(26)))
	case syntax.OpCapture:
		return sample(r, n.Sub[0])
	case syntax.OpStar:
		return several(0, 2)
	case syntax.OpPlus:
		return several(1, 3)
	case syntax.OpQuest:
		return several(0, 1)
	case syntax.OpRepeat:
		return several(n.Min, max(n.Min, n.Max))
	case syntax.OpConcat:
		var b strings.Builder
		for _, s := range n.Sub {
			b.WriteString(sample(r, s))
		}
		return b.String()
	case syntax.OpAlternate:
		return sample(r, n.Sub[r.IntN(len(n.Sub))])
	default: // begin, end and the like take no room
		return ""
	}
}
