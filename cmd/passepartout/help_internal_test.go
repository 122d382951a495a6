package main

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestEveryCommandExplainsItself(t *testing.T) {
	a := &app{out: &bytes.Buffer{}, errw: &bytes.Buffer{}}
	root := a.root()
	n := 0
	walkCommands(root, func(c *cobra.Command) {
		if c.Hidden {
			return
		}
		n++
		path := c.CommandPath()
		switch {
		case c.Short == "" || strings.HasSuffix(c.Short, "."):
			t.Errorf("%s: want a short description without a full stop, found %q", path, c.Short)
		case c.Example == "":
			t.Errorf("%s: want an example", path)
		}
		for line := range strings.SplitSeq(c.Example, "\n") {
			if !strings.Contains(c.Example, "passepartout") || strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "  ") {
				t.Errorf("%s: want examples that call passepartout, indented by two, found %q", path, line)
			}
		}
		var help bytes.Buffer
		c.SetOut(&help)
		if err := c.Help(); err != nil || !strings.Contains(help.String(), exitCodes) || !strings.Contains(help.String(), "passepartout") {
			t.Errorf("%s --help: %v\n%s", path, err, help.String())
		}
	})
	if n < 60 {
		t.Errorf("found only %d commands", n)
	}
	for path := range examples {
		if c, rest, err := root.Find(strings.Fields(path)); err != nil || len(rest) > 0 || c == root {
			t.Errorf("there is an example for %q, which is no command", path)
		}
	}
}

func TestManualPagesAreWhatTroffReads(t *testing.T) {
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Log("groff is not installed: the pages are only made")
	}
	a := &app{out: &bytes.Buffer{}, errw: &bytes.Buffer{}}
	var all bytes.Buffer
	walkCommands(a.root(), func(c *cobra.Command) {
		var page bytes.Buffer
		if err := manPage(&page, c); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{".TH ", ".SH NAME\n", ".SH EXIT STATUS\n"} {
			if !strings.Contains(page.String(), want) {
				t.Errorf("the page of %s lacks %q", c.CommandPath(), want)
			}
		}
		all.Write(page.Bytes())
	})
	if groff == "" {
		return
	}
	var complaints bytes.Buffer
	cmd := exec.Command(groff, "-man", "-ww", "-Kutf8", "-Tutf8")
	cmd.Stdin, cmd.Stderr = &all, &complaints
	if out, err := cmd.Output(); err != nil || complaints.Len() > 0 || len(out) < 10_000 {
		t.Errorf("groff: %v, %d bytes: %s", err, len(out), complaints.String())
	}
}

func TestTextCannotDriveTroff(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{".so /etc/passwd", `\&.so /etc/passwd`},
		{"'br\nx", "\\&'br\nx"},
		{`a\fBb`, `a\efBb`},
		{"--flag", `\-\-flag`},
	} {
		if got := roff(tt.in); got != tt.want {
			t.Errorf("roff(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestWordsOfThePlainPromptAreCommands(t *testing.T) {
	a := &app{out: &bytes.Buffer{}, errw: &bytes.Buffer{}}
	root := a.root()
	for _, w := range slashWords {
		if w.argv == nil {
			continue
		}
		if c, rest, err := root.Find(w.argv); err != nil || c == root || !c.Runnable() || len(rest) > 1 {
			t.Errorf("/%s is %v, which is no command: %v", w.name, w.argv, err)
		}
	}
}

// designed are the commands the design names, but for hook, mcp and mcp-proxy, which
// wait for the guard of other agents.
const designed = `chat, tui, daemon, send, approvals, approve, deny, why, journal tail, journal verify, journal replay, check,
policy test, policy replay, policy diff, rules, memory find, memory show, memory history, memory undo, memory redo, memory rewind, agenda,
recall, context, org dump, org lint, skill list, skill new, skill test, skill reload, skill install, lisp, schedule,
gateway list, gateway link, gateway unlink, gateway pair, vault set, vault get, vault list, vault rotate, config get, config set, config list,
setup, doctor, backup, restore, service install, service uninstall, acp, completion bash, completion zsh, completion fish, version, import, export`

// Every command the design names is there, with help that has an example, --json,
// completion and a manual page.
func TestEveryDesignedCommandIsWhole(t *testing.T) {
	for name := range strings.SplitSeq(designed, ",") {
		words := strings.Fields(name)
		path := strings.Join(words, " ")
		out := &bytes.Buffer{}
		a := &app{in: strings.NewReader(""), out: out, errw: &bytes.Buffer{}, environ: []string{"HOME=" + t.TempDir()}}
		root := a.root()
		c, rest, err := root.Find(words)
		if err != nil || len(rest) > 0 || c == root || c.Hidden {
			t.Errorf("there is no command %s: %v", path, err)
			continue
		}
		if c.Example == "" || !strings.Contains(c.Example, "passepartout "+words[0]) && words[0] != "chat" {
			t.Errorf("%s: its help has no example of it: %q", path, c.Example)
		}
		if c.InheritedFlags().Lookup("json") == nil {
			t.Errorf("%s knows no --json", path)
		}
		var page bytes.Buffer
		if err := manPage(&page, c); err != nil || !strings.Contains(page.String(), ".SH EXAMPLES\n") {
			t.Errorf("%s: its manual page: %v", path, err)
		}
		root.SetArgs(append(append([]string{"__complete"}, words...), "--"))
		root.SetOut(out)
		root.SetErr(&bytes.Buffer{})
		if err := root.Execute(); err != nil || !strings.Contains(out.String(), "--json") {
			t.Errorf("%s: completing its flags: %v: %s", path, err, out)
		}
	}
}
