package skill

import (
	"fmt"
	"slices"
	"strings"

	"passepartout/internal/lisp"
	"passepartout/internal/sexp"
)

// The powers a skill can be granted. A gate has at most gateCaps of them: what it
// says must not depend on more than the action and the facts.
const (
	memoryCap lisp.Caps = 1 << iota
	clockCap
	randomCap
	signalsCap
	journalCap
	allCaps = memoryCap | clockCap | randomCap | signalsCap | journalCap
)

var capNames = map[string]lisp.Caps{"memory": memoryCap, "clock": clockCap, "random": randomCap, "signals": signalsCap, "journal": journalCap}

// Capabilities lists what a skill can ask for.
func Capabilities() []string { return names(capNames) }

// parseCaps reads the names of capabilities.
func parseCaps(words []string) (lisp.Caps, error) {
	var c lisp.Caps
	for _, w := range words {
		bit, ok := capNames[strings.ToLower(w)]
		if !ok {
			return 0, fmt.Errorf("unknown capability %q, want one of %s", w, strings.Join(Capabilities(), ", "))
		}
		c |= bit
	}
	return c, nil
}

func capWords(c lisp.Caps) []string {
	var out []string
	for _, n := range Capabilities() {
		if c&capNames[n] != 0 {
			out = append(out, n)
		}
	}
	return out
}

// What a skill may use: to load and test itself, to judge one action, and to
// write a prompt or run a tool.
var (
	loadBudget = lisp.Budget{Steps: 20_000_000, Cells: 2_000_000, Depth: 2000, Output: 64 << 10}
	gateBudget = lisp.Budget{Steps: 500_000, Cells: 100_000, Depth: 500, Output: 4 << 10}
	workBudget = lisp.Budget{Steps: 50_000_000, Cells: 5_000_000, Depth: 2000, Output: 64 << 10}
)

// loaded is a skill as its jail describes it.
type loaded struct {
	image *lisp.Image
	about sexp.Plist
	tests int
	log   string
}

// load runs a skill in a jail of its own, after what it builds on, and then its
// tests in a throw-away thread. Nothing it does outlives a failure.
func (j *jail) load(s *source, below []*source, caps lisp.Caps) (loaded, error) {
	img, err := j.image()
	if err != nil {
		return loaded{}, err
	}
	th := img.Thread(loadBudget)
	th.Drop(allCaps &^ caps)
	for _, b := range below {
		if err := enter(th, b, ""); err != nil {
			return loaded{}, fmt.Errorf("%s: in what it builds on: %w", s.file, err)
		}
	}
	if err := enter(th, s, s.file); err != nil {
		return loaded{}, err
	}
	out := loaded{log: th.Output()}
	if out.image, err = th.Freeze(); err != nil {
		return loaded{}, err
	}
	if out.about, err = describe(out.image, s); err != nil {
		return loaded{}, err
	}
	out.tests, err = selfTest(out.image, s, caps)
	return out, err
}

// packageOf is the package a skill's code is read in.
func packageOf(name string) string { return strings.ToUpper("passepartout.skills." + name) }

// enter loads one file into its own package. Lines of code loaded without a name
// are not told, so that those of an error are always the skill's own.
func enter(th *lisp.Thread, s *source, file string) error {
	pkg := packageOf(s.name)
	head := fmt.Sprintf(`(passepartout::forget-registrations) (defpackage %q (:use :cl :passepartout)) (in-package %q)`, pkg, pkg)
	if _, err := th.EvalString(s.file, head); err != nil {
		return fmt.Errorf("%s: %w", s.file, err)
	}
	if _, err := th.Load(file, s.code); err != nil {
		return located(s.file, err)
	}
	share := fmt.Sprintf(`(passepartout::share-names %q %q)`, pkg, strings.ToUpper(s.name))
	if _, err := th.EvalString(s.file, share); err != nil {
		return fmt.Errorf("%s: %w", s.file, err)
	}
	return nil
}

// located makes sure an error names the file.
func located(file string, err error) error {
	if strings.HasPrefix(err.Error(), file) {
		return err
	}
	return fmt.Errorf("%s: %w", file, err)
}

// describe asks the jail what was registered, and checks it.
func describe(img *lisp.Image, s *source) (sexp.Plist, error) {
	th := img.Thread(loadBudget)
	th.Drop(allCaps)
	v, err := th.Call("passepartout::describe-skill")
	if err != nil {
		return sexp.Plist{}, fmt.Errorf("%s: what it registers is wrong: %w", s.file, err)
	}
	data, err := th.ToData(v)
	if err != nil {
		return sexp.Plist{}, fmt.Errorf("%s: what it registers is wrong: %w", s.file, err)
	}
	list, _ := data.(sexp.List)
	about, err := sexp.AsPlist(list)
	if err != nil {
		return sexp.Plist{}, fmt.Errorf("%s: what it registers is wrong: %w", s.file, err)
	}
	if n, err := integer(about, "REGISTERED"); err != nil || n > 1 {
		return sexp.Plist{}, fmt.Errorf("%s: want one defskill in a file, found %d", s.file, n)
	}
	return about, nil
}

// selfTest runs the skill's tests; what they change is thrown away.
func selfTest(img *lisp.Image, s *source, caps lisp.Caps) (int, error) {
	th := img.Thread(loadBudget)
	th.Drop(allCaps &^ caps)
	if _, err := th.EvalString(s.file, fmt.Sprintf("(passepartout::show-names) (in-package %q)", packageOf(s.name))); err != nil {
		return 0, fmt.Errorf("%s: %w", s.file, err)
	}
	if _, err := th.Load(s.file, s.tests); err != nil {
		return 0, located(s.file, err)
	}
	v, err := th.Call("passepartout::run-tests")
	if err != nil {
		return 0, located(s.file, err)
	}
	n, _ := v.(lisp.Int)
	return int(n), nil
}

// textList reads a list of strings out of a description.
func textList(p sexp.Plist, k sexp.Keyword) []string {
	v, _ := p.Get(k)
	l, _ := v.(sexp.List)
	var out []string
	for _, x := range l.Items() {
		if s, ok := x.(sexp.String); ok {
			out = append(out, string(s))
		}
	}
	return slices.Clip(out)
}
