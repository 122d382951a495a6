package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write the generated part of docs/commands.md")

// reference renders every command: what it is called with, what it does, its flags, an
// example.
func reference(root *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nEvery command takes:\n\n%s", flagTable(root.PersistentFlags()))
	walkCommands(root, func(c *cobra.Command) {
		if c.Hidden || c == root || c.HasParent() && c.Parent().Hidden {
			return
		}
		level := "##"
		if c.Parent() != root {
			level = "###"
		}
		path := strings.TrimPrefix(c.CommandPath(), root.Name()+" ")
		long := strings.TrimSpace(c.Long)
		if long == "" || path == "help" || strings.HasPrefix(path, "completion") {
			long = c.Short + "."
		}
		use := ""
		if c.Runnable() {
			use = "`" + strings.TrimSuffix(c.UseLine(), " [flags]") + "`\n\n"
		}
		fmt.Fprintf(&b, "%s %s\n\n%s%s\n\n%s", level, path, use, prose(long), flagTable(c.LocalNonPersistentFlags()))
		fmt.Fprintf(&b, "```sh\n%s\n```\n\n", unindent(c.Example))
	})
	return b.String()
}

// prose is a help text as Markdown: what is indented there stays as it is.
func prose(text string) string {
	var b strings.Builder
	code := false
	for line := range strings.SplitSeq(text, "\n") {
		if indented := strings.HasPrefix(line, "  "); indented != code && strings.TrimSpace(line) != "" {
			b.WriteString("```\n")
			code = indented
		}
		b.WriteString(line + "\n")
	}
	if code {
		b.WriteString("```\n")
	}
	return strings.TrimSpace(b.String())
}

func unindent(text string) string {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return strings.Join(lines, "\n")
}

func flagTable(flags *pflag.FlagSet) string {
	var b strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name, usage := pflag.UnquoteUsage(f)
		said := "`--" + f.Name + "`"
		if name != "" {
			said = "`--" + f.Name + " " + name + "`"
		}
		if f.Shorthand != "" {
			said = "`-" + f.Shorthand + "`, " + said
		}
		fmt.Fprintf(&b, "| %s | %s |\n", said, strings.ReplaceAll(usage, "|", `\|`))
	})
	if b.Len() == 0 {
		return ""
	}
	return "| flag | |\n|---|---|\n" + b.String() + "\n"
}

func TestTheReferenceListsEveryCommandAsItIs(t *testing.T) {
	const begin, end = "<!-- generated: go test ./cmd/passepartout -run Reference -update -->\n", "<!-- end of the generated part -->\n"
	a := &app{out: &bytes.Buffer{}, errw: &bytes.Buffer{}}
	file := filepath.Join("..", "..", "docs", "commands.md")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(raw), begin)
	old, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s lacks its markers", file)
	}
	now := reference(a.root())
	if old == now {
		return
	}
	if !*update {
		t.Fatalf("%s is out of date: go test ./cmd/passepartout -run Reference -update", file)
	}
	if err := os.WriteFile(file, []byte(head+begin+now+end+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestEveryCommandADocumentNamesExists finds commands that documents speak of and the
// program does not have, subcommands included.
func TestEveryCommandADocumentNamesExists(t *testing.T) {
	root := (&app{out: &bytes.Buffer{}, errw: &bytes.Buffer{}}).root()
	called := regexp.MustCompile("(?m)(?:`|^\\$ |^)passepartout ([a-z]+)(?: ([a-z]+))?")
	docs, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, doc := range append(docs, filepath.Join("..", "..", "README.md")) {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range called.FindAllStringSubmatch(string(text), -1) {
			n++
			c, _, err := root.Find(m[1:2])
			if err != nil || c == root {
				t.Errorf("%s: passepartout has no command %s", doc, m[1])
				continue
			}
			if m[2] == "" || !c.HasSubCommands() || c.Runnable() {
				continue
			}
			if sub, _, err := c.Find(m[2:3]); err != nil || sub == c {
				t.Errorf("%s: passepartout %s has no command %s", doc, m[1], m[2])
			}
		}
	}
	if n < 50 {
		t.Errorf("found only %d calls: the pattern has come apart from the documents", n)
	}
}
