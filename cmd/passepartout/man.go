package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"passepartout/internal/config"
)

func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man [DIR]", Short: "Write the manual pages of every command to a folder, or the first to stdout",
		Example: "  passepartout man ~/.local/share/man/man1\n  passepartout man | man -l -",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return manPage(a.out, c.Root())
			}
			return a.manPages(c.Root(), args[0])
		},
	}
}

func (a *app) manPages(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	n := 0
	var failed error
	walkCommands(root, func(c *cobra.Command) {
		if failed != nil || c.Hidden || c.Name() == "help" {
			return
		}
		var b strings.Builder
		if failed = manPage(&b, c); failed == nil {
			failed = os.WriteFile(filepath.Join(dir, manName(c)+".1"), []byte(b.String()), 0o644)
			n++
		}
	})
	fmt.Fprintf(a.errw, "%d pages written to %s\n", n, dir)
	return failed
}

func manName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manPage writes one command in the man macros.
func manPage(w io.Writer, c *cobra.Command) error {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" passepartout\n", strings.ToUpper(roff(manName(c))))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(manName(c)), roff(c.Short))
	b.WriteString(".SH SYNOPSIS\n")
	if c.Runnable() {
		fmt.Fprintf(&b, "%s\n", roff(c.UseLine()))
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, ".br\n%s COMMAND\n", roff(c.CommandPath()))
	}
	if long := c.Long; long != "" {
		b.WriteString(".SH DESCRIPTION\n" + strings.ReplaceAll(roff(long), "\n\n", "\n.PP\n") + "\n")
	}
	if c.HasAvailableSubCommands() {
		b.WriteString(".SH COMMANDS\n")
		for _, sub := range c.Commands() {
			if !sub.Hidden {
				fmt.Fprintf(&b, ".TP\n.B %s\n%s. See %s(1).\n", roff(sub.Name()), roff(sub.Short), roff(manName(sub)))
			}
		}
	}
	manFlags(&b, "OPTIONS", c.LocalFlags())
	manFlags(&b, "OPTIONS OF EVERY COMMAND", c.InheritedFlags())
	if c.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(c.Example))
	}
	if !c.HasParent() {
		manSettings(&b)
	}
	b.WriteString(".SH EXIT STATUS\n" + roff(strings.TrimPrefix(exitCodes, "Exit codes: ")) + "\n")
	if c.HasParent() {
		fmt.Fprintf(&b, ".SH SEE ALSO\n%s(1)\n", roff(manName(c.Parent())))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func manFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
	first := true
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		if first {
			fmt.Fprintf(b, ".SH %s\n", title)
			first = false
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if f.Value.Type() != "bool" {
			name += " " + strings.ToUpper(f.Value.Type())
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(name), roff(f.Usage))
	})
}

// manSettings describes every setting, from the one table.
func manSettings(b *strings.Builder) {
	b.WriteString(".SH ENVIRONMENT\nThe same keys stand in the settings file, which the environment wins over.\n")
	for _, s := range config.Settings() {
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(s.Key), roff(s.Doc))
	}
	b.WriteString(".TP\n.B NO_COLOR\nno colours.\n.SH FILES\n.TP\n.I $XDG_CONFIG_HOME/passepartout/env\nthe settings\n" +
		".TP\n.I $XDG_CONFIG_HOME/passepartout/vault.age\nthe vault\n.TP\n.I $XDG_STATE_HOME/passepartout\njournal, history, undo\n")
}

// roff escapes text so that none of it is a request or an escape.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "“", `\(lq`, "”", `\(rq`, "…", "...", "’", "'").Replace(s)
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
