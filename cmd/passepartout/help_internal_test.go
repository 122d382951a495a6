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
