package pattern_test

import (
	"sync"
	"testing"

	"passepartout/internal/pattern"
)

func TestAPatternIsCompiledOnceHoweverManyAskAtOnce(t *testing.T) {
	p := pattern.New(`^(\w+) (\d+)$`)
	var wait sync.WaitGroup
	for range 16 {
		wait.Go(func() {
			if m := p.FindStringSubmatch("page 12"); len(m) != 3 || m[2] != "12" {
				t.Errorf("found %q", m)
			}
			first := p.Regexp()
			if again := p.Regexp(); again != first {
				t.Error("compiled twice")
			}
		})
	}
	wait.Wait()
}

func TestAWrongExpressionPanicsAtItsFirstUse(t *testing.T) {
	p := pattern.New(`(`)
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	p.MatchString("x")
}

func TestMakingAPatternCostsNothing(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { sink = pattern.New(`a(b|c)*d`) }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

var sink *pattern.Pattern

func TestAPatternWithoutItsWordsIsNotLookedFor(t *testing.T) {
	p := pattern.Needing(`<(b|i)>x+`, "<b>", "<i>")
	for text, want := range map[string]bool{"": false, "xxx": false, "<b>": false, "a <i>xx": true, "<u>x": false} {
		if p.MatchString(text) != want || (p.FindStringSubmatchIndex(text) != nil) != want {
			t.Errorf("%q: want %v", text, want)
		}
	}
}
