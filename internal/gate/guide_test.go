package gate_test

import (
	"slices"
	"strings"
	"testing"

	"passepartout/internal/gate"
)

func TestAGuideHoldsATurnToItsTools(t *testing.T) {
	c := standard(t, policy())
	for _, x := range []struct {
		only string // separated by commas, "-" for no guide
		verb string
		args []string
		pass bool
	}{
		{"-", "shell.run", []string{"CMD", "ls"}, true},
		{"", "shell.run", []string{"CMD", "ls"}, false},
		{"", "cli.message", []string{"TEXT", "hello"}, true},
		{"shell", "shell.run", []string{"CMD", "ls"}, true},
		{"shell", "tool.read-file", []string{"FILEPATH", "/home/ada/work/x"}, false},
		{"shel", "shell.run", []string{"CMD", "ls"}, false},
		{"SHELL", "shell.run", []string{"CMD", "ls"}, false},
		{"read-file,shell(git:*)", "shell.run", []string{"CMD", "git log --oneline"}, true},
		{"shell(git:*)", "shell.run", []string{"CMD", "git"}, true},
		{"shell(git:*)", "shell.run", []string{"CMD", "gitk"}, false},
		{"shell(git:*)", "shell.run", []string{"CMD", "ls; git log"}, false},
		{"shell(git:*)", "shell.run", []string{"CMD", "git log; ls"}, false},
		{"shell(git:*)", "shell.run", []string{"CMD", "git log\nls"}, false},
		{"shell(git:*)", "shell.run", []string{"CMD", "git log $(ls)"}, false},
		{"shell(git:*)", "shell.run", []string{"CMD", "git log `ls`"}, false},
		{"shell(git log)", "shell.run", []string{"CMD", "git log"}, true},
		{"shell(git log)", "shell.run", []string{"CMD", "git log -p"}, false},
		{"telegram.send", "telegram.send", []string{"TO", "grace", "TEXT", "hello"}, true},
		{"shell", "telegram.send", []string{"TO", "grace", "TEXT", "hello"}, false},
	} {
		f := facts()
		if x.only != "-" {
			f.Only = slices.DeleteFunc(strings.Split(x.only, ","), func(s string) bool { return s == "" })
		}
		r := c.Decide(action(t, x.verb, x.args...), f)
		v := verdictOf(t, r, "guide")
		if (v.Code == "pass") != x.pass || !x.pass && (v.Code != "guide.outside" || r.Decision() != gate.Deny) {
			t.Errorf("held to %q, %s %q: %+v", x.only, x.verb, x.args, v)
		}
		again, err := gate.Replay(c, r.Action(), r.Facts())
		if err != nil || again.Decision() != r.Decision() || !slices.Equal(again.Verdicts(), r.Verdicts()) {
			t.Errorf("held to %q, %s %q: the record says %+v, %v", x.only, x.verb, x.args, again.Verdicts(), err)
		}
	}
}

// TestFollowingAFurtherGuideNeverWidens compares with the plain meaning: an action is
// within both lists or refused.
func TestFollowingAFurtherGuideNeverWidens(t *testing.T) {
	lists := [][]string{nil, {}, {"shell"}, {"shell(git:*)"}, {"shell(git log)"}, {"read-file"}, {"shell", "read-file"}, {"shell(ls:*)", "read-file"}, {"shell(git:*)", "shell(ls:*)"}}
	c := standard(t, policy())
	passes := func(only []string, verb string, args ...string) bool {
		f := facts()
		f.Only = only
		return verdictOf(t, c.Decide(action(t, verb, args...), f), "guide").Code == "pass"
	}
	for _, a := range lists {
		for _, b := range lists {
			both := gate.Narrow(a, b)
			for _, x := range [][]string{{"shell.run", "CMD", "git log"}, {"shell.run", "CMD", "ls"}, {"shell.run", "CMD", "date"}, {"tool.read-file", "FILEPATH", "/home/ada/work/x"}, {"cli.message", "TEXT", "hi"}} {
				got, want := passes(both, x[0], x[1:]...), passes(a, x[0], x[1:]...) && passes(b, x[0], x[1:]...)
				if got && !want {
					t.Errorf("%q and then %q gives %q, which lets %q pass", a, b, both, x)
				}
			}
		}
	}
}
