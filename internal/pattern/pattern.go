// Package pattern holds regular expressions that are compiled when they are first
// used.
//
// Every command of the binary, and every process that prepares a sandbox, starts with
// the package variables of all packages. Compiling the expressions of all of them took
// half of that start; a start needs none of them.
//
// The rule a newcomer will break: a package variable holds a Pattern, never the result
// of regexp.MustCompile. A test in internal/arch looks for those, and compiles every
// expression it can read, since a mistake in one no longer stops the program at once.
package pattern

import (
	"regexp"
	"strings"
	"sync"
)

// A Pattern is a regular expression that is compiled once, at its first use. It may be
// used by any number of goroutines.
type Pattern struct {
	expr  string
	needs []string // one of them is in every text that matches; nil: not known
	once  sync.Once
	re    *regexp.Regexp
}

// New returns the pattern of an expression. It does no work, so that the compiler can
// lay out package variables at build time.
func New(expr string) *Pattern { return &Pattern{expr: expr} }

// Needing is New for an expression that matches no text without at least one of these
// words in it. Looking for words is some fifty times faster than looking for an
// expression, and most texts hold none of them.
func Needing(expr string, words ...string) *Pattern { return &Pattern{expr: expr, needs: words} }

// hopeless says that a text has none of the words the pattern needs.
func (p *Pattern) hopeless(s string) bool {
	for _, w := range p.needs {
		if strings.Contains(s, w) {
			return false
		}
	}
	return p.needs != nil
}

// Regexp is the compiled expression, which looks for itself and not for words first. It panics where the expression is wrong, which is
// a mistake of whoever wrote it.
func (p *Pattern) Regexp() *regexp.Regexp {
	p.once.Do(func() { p.re = regexp.MustCompile(p.expr) })
	return p.re
}

// The methods below are those of regexp.Regexp.

func (p *Pattern) MatchString(s string) bool { return !p.hopeless(s) && p.Regexp().MatchString(s) }

func (p *Pattern) FindString(s string) string { return p.Regexp().FindString(s) }

func (p *Pattern) FindStringIndex(s string) []int { return p.Regexp().FindStringIndex(s) }

func (p *Pattern) FindStringSubmatch(s string) []string { return p.Regexp().FindStringSubmatch(s) }

func (p *Pattern) FindStringSubmatchIndex(s string) []int {
	if p.hopeless(s) {
		return nil
	}
	return p.Regexp().FindStringSubmatchIndex(s)
}

func (p *Pattern) SubexpIndex(name string) int { return p.Regexp().SubexpIndex(name) }

func (p *Pattern) FindAllStringSubmatch(s string, n int) [][]string {
	return p.Regexp().FindAllStringSubmatch(s, n)
}

func (p *Pattern) ReplaceAllString(s, with string) string {
	return p.Regexp().ReplaceAllString(s, with)
}
