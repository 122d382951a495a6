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
	"sync"
)

// A Pattern is a regular expression that is compiled once, at its first use. It may be
// used by any number of goroutines.
type Pattern struct {
	expr string
	once sync.Once
	re   *regexp.Regexp
}

// New returns the pattern of an expression. It does no work, so that the compiler can
// lay out package variables at build time.
func New(expr string) *Pattern { return &Pattern{expr: expr} }

// Regexp is the compiled expression. It panics where the expression is wrong, which is
// a mistake of whoever wrote it.
func (p *Pattern) Regexp() *regexp.Regexp {
	p.once.Do(func() { p.re = regexp.MustCompile(p.expr) })
	return p.re
}

// The methods below are those of regexp.Regexp.

func (p *Pattern) MatchString(s string) bool { return p.Regexp().MatchString(s) }

func (p *Pattern) FindString(s string) string { return p.Regexp().FindString(s) }

func (p *Pattern) FindStringIndex(s string) []int { return p.Regexp().FindStringIndex(s) }

func (p *Pattern) FindStringSubmatch(s string) []string { return p.Regexp().FindStringSubmatch(s) }

func (p *Pattern) FindAllStringSubmatch(s string, n int) [][]string {
	return p.Regexp().FindAllStringSubmatch(s, n)
}

func (p *Pattern) ReplaceAllString(s, with string) string {
	return p.Regexp().ReplaceAllString(s, with)
}
