package main_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// documents are those whose console blocks are typed, each in a home of its own.
var documents = []string{"README.md", "docs/manual.md", "docs/policy.md", "docs/settings.md", "docs/skills-tutorial.md"}

// TestDocumentsShowWhatHappens types every command of a document's console blocks
// into a real shell, in order, and wants the lines shown to be among those printed.
// A line `…` stands for lines left out, `…` in a line for part of one; days, numbers
// and identifiers differ from run to run and stand for any. A block after a comment
// that says `saved as FILE` or `added to FILE` is put there first.
func TestDocumentsShowWhatHappens(t *testing.T) {
	if testing.Short() {
		t.Skip("types whole documents")
	}
	for _, doc := range documents {
		t.Run(filepath.Base(doc), func(t *testing.T) {
			t.Parallel()
			blocks := consoleBlocks(t, filepath.Join("..", "..", doc))
			if len(blocks) == 0 {
				t.Fatalf("%s has no console blocks", doc)
			}
			env := newcomer(t)
			for _, b := range blocks {
				b.check(t, env)
			}
		})
	}
}

// A consoleBlock is one block of a document: commands, and what each is said to print.
type consoleBlock struct {
	where    string
	file     string // where its text goes, for one that is no commands
	commands []string
	shown    [][]string
}

func consoleBlocks(t *testing.T, path string) []consoleBlock {
	t.Helper()
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []consoleBlock
	in, file := false, ""
	for i, line := range strings.Split(string(src), "\n") {
		switch m := savedAs.FindStringSubmatch(line); {
		case m != nil:
			file = map[string]string{"saved as": ">", "added to": ">>"}[m[1]] + " " + m[2]
		case line == "```console" || file != "" && strings.HasPrefix(line, "```") && !in:
			in = true
			b := consoleBlock{where: fmt.Sprintf("%s:%d", filepath.Base(path), i+2), file: file}
			if file != "" {
				b.commands, b.shown = []string{"cat " + file + " <<'END OF BLOCK'\n"}, [][]string{nil}
			}
			blocks = append(blocks, b)
		case line == "```":
			if in && file != "" {
				blocks[len(blocks)-1].commands[0] += "END OF BLOCK\n"
			}
			in, file = false, ""
		case in:
			blocks[len(blocks)-1].add(line)
		}
	}
	return blocks
}

var savedAs = regexp.MustCompile(`^<!-- (saved as|added to) (\S+) -->$`)

func (b *consoleBlock) add(line string) {
	last := len(b.commands) - 1
	switch {
	case b.file != "":
		b.commands[0] += line + "\n"
	case strings.HasPrefix(line, "$ "):
		b.commands = append(b.commands, line[2:])
		b.shown = append(b.shown, nil)
	case strings.HasPrefix(line, "> ") && last >= 0 && len(b.shown[last]) == 0: // a command goes on
		b.commands[last] += "\n" + line[2:]
	case last >= 0 && strings.TrimSpace(line) != "":
		b.shown[last] = append(b.shown[last], line)
	}
}

// token finds the plan a command speaks of: documents print one, runs make another.
var token = regexp.MustCompile(`\b[as]-[a-z0-9]{10}\b`)

// check types the block's commands one after the other. $? is kept from one to the
// next; what a command calls by an identifier is what was printed last.
func (b consoleBlock) check(t *testing.T, env *newcomerEnv) {
	t.Helper()
	for i, command := range b.commands {
		command = token.ReplaceAllStringFunc(command, func(doc string) string {
			if env.last[doc[:2]] != "" {
				return env.last[doc[:2]]
			}
			return doc
		})
		out := env.types(t, command)
		for _, id := range token.FindAllString(out, -1) {
			env.last[id[:2]] = id
		}
		if missing := missingLine(b.shown[i], strings.Split(out, "\n")); missing != "" {
			t.Fatalf("%s: %s\ndoes not print\n\t%s\nbut\n%s", b.where, command, missing, out)
		}
	}
}

// missingLine is the first line that is not among those printed, in order.
func missingLine(shown, printed []string) string {
	for _, want := range shown {
		if strings.TrimSpace(want) == "…" {
			continue
		}
		pattern := lineShape(want)
		found := false
		for len(printed) > 0 && !found {
			found = pattern.MatchString(strings.TrimRight(printed[0], " "))
			printed = printed[1:]
		}
		if !found {
			return want
		}
	}
	return ""
}

var variable = regexp.MustCompile(`…|\b[as]-[a-z0-9]{10}\b|\b(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b|\b(?:January|February|March|April|May|June|July|August|September|October|November|December|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b|\b[0-9a-f]{32,}\b|[0-9]+|\s+`)

// lineShape is the pattern of what a printed line may be.
func lineShape(line string) *regexp.Regexp {
	var b strings.Builder
	at := 0
	for _, m := range variable.FindAllStringIndex(line, -1) {
		b.WriteString(regexp.QuoteMeta(line[at:m[0]]))
		switch word := line[m[0]:m[1]]; {
		case word == "…":
			b.WriteString(".*")
		case strings.TrimSpace(word) == "":
			b.WriteString(`\s+`)
		case strings.Trim(word, "0123456789") == "":
			b.WriteString(`[0-9]+`)
		default:
			b.WriteString(`[\w-]+`)
		}
		at = m[1]
	}
	b.WriteString(regexp.QuoteMeta(line[at:]))
	return regexp.MustCompile("^" + b.String() + "$")
}

// TestTheRulesInDocumentsLoad runs the examples of every rule a document shows.
func TestTheRulesInDocumentsLoad(t *testing.T) {
	env := newcomer(t)
	for _, doc := range []string{"policy.md", "gates.md"} {
		src, err := os.ReadFile(filepath.Join("..", "..", "docs", doc))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for i, block := range regexp.MustCompile("(?s)```org\n(.*?)\n```").FindAllStringSubmatch(string(src), -1) {
			if !strings.Contains(block[1], ":DECISION:") || strings.Contains(block[1], "rsync ...") { // the one that is shown to fail
				continue
			}
			file := filepath.Join(env.home, fmt.Sprintf("%s-%d.org", doc, i))
			if err := os.WriteFile(file, []byte(block[1]), 0o600); err != nil {
				t.Fatal(err)
			}
			if out := env.types(t, "passepartout policy test "+file); env.status != 0 {
				t.Errorf("%s: %s", doc, out)
			}
			n++
		}
		if n == 0 {
			t.Errorf("%s shows no rules", doc)
		}
	}
}

// A newcomerEnv is somebody's machine on which the binary is installed, and nothing
// else was done yet.
type newcomerEnv struct {
	home, tree string
	env        []string
	status     int
	last       map[string]string
}

func newcomer(t *testing.T) *newcomerEnv {
	t.Helper()
	run, err := os.MkdirTemp("", "pp") // short: socket paths are limited
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(t.TempDir(), "home")
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	tree, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	e := &newcomerEnv{home: home, tree: tree, last: map[string]string{}}
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, "GO") || name == "LANG" || name == "TERM" {
			e.env = append(e.env, v)
		}
	}
	e.env = append(e.env, "HOME="+home, "XDG_RUNTIME_DIR="+run, "TMPDIR="+run, "EDITOR=true", "SHELL=/bin/bash",
		"GOCACHE="+goEnv(t, "GOCACHE"), "GOMODCACHE="+goEnv(t, "GOMODCACHE"),
		"PATH="+filepath.Dir(binary)+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Cleanup(func() {
		stopDaemon(filepath.Join(home, ".local", "state", "passepartout", "daemon.lock"))
		locks, _ := filepath.Glob(filepath.Join(run, "*", "*", "*", "daemon.lock"))
		for _, l := range locks {
			stopDaemon(l)
		}
		os.RemoveAll(run)
	})
	return e
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// types runs one command line in the home, or in the tree if it calls make.
func (e *newcomerEnv) types(t *testing.T, command string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "--norc", "--noprofile", "-c", fmt.Sprintf("(exit %d)\n%s", e.status, command))
	cmd.Dir, cmd.Env = e.home, e.env
	if strings.Contains(command, "make ") {
		cmd.Dir = e.tree
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if ee := (*exec.ExitError)(nil); err != nil && !errors.As(err, &ee) {
		t.Fatalf("%s: %v", command, err)
	}
	e.status = cmd.ProcessState.ExitCode()
	return out.String()
}
