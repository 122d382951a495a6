package act

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"passepartout/internal/memory"
)

// A private note does not stand in its own file alone. Editors keep backups beside it,
// Org moves what is archived into a neighbour, and git has every version there was.

// A Seclusion is where private text stands, while a command runs.
type Seclusion struct {
	Files  []string // of private text
	Stores []string // hold the past of such files among that of others
	Done   func()   // to be called when the command has ended
}

// original is the note that a file beside it is a copy of, or was cut out of; "" for
// names that say no such thing.
func original(path string) string {
	dir, name := filepath.Split(path)
	switch {
	case strings.HasSuffix(name, ".org_archive"):
		name = strings.TrimSuffix(name, "_archive")
	case strings.HasPrefix(name, "#") && strings.HasSuffix(name, "#"): // Emacs saves by itself
		name = strings.Trim(name, "#")
	case strings.HasPrefix(name, ".") && len(name) > 5 && strings.HasPrefix(filepath.Ext(name), ".sw"): // Vim's
		name = strings.TrimSuffix(name[1:], filepath.Ext(name))
	default:
		_, at, _ := strings.Cut(name, ".org")
		i := strings.LastIndex(name, ".org")
		if i < 0 || at == "" { // a note itself, or none
			return ""
		}
		name = strings.TrimPrefix(name[:i+len(".org")], ".") // note.org~, note.org.~2~, note.org.bak, .note.org.un~
	}
	if !isNote(name) {
		return ""
	}
	return dir + name
}

// copies are the files beside private notes that hold what they hold, or held.
func copies(v *memory.View, root string, private []string) []string {
	var out []string
	seen := map[string]bool{}
	for _, f := range private {
		dir := filepath.Join(root, filepath.FromSlash(filepath.Dir(f)))
		if seen[dir] {
			continue
		}
		seen[dir] = true
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // gone meanwhile
		}
		for _, e := range entries {
			o := original(filepath.Join(dir, e.Name()))
			if o == "" || !e.Type().IsRegular() {
				continue
			}
			if rel, err := filepath.Rel(root, o); err == nil && v.Private(filepath.ToSlash(rel)) {
				out = append(out, filepath.Join(dir, e.Name()))
			}
		}
	}
	return out
}

// stores are git's, of every repository that a private note lies in.
func stores(root string, private []string) []string {
	var out []string
	seen := map[string]bool{}
	for _, f := range private {
		for dir := filepath.Dir(filepath.Join(root, filepath.FromSlash(f))); !seen[dir]; dir = filepath.Dir(dir) {
			seen[dir] = true
			out = append(out, objects(filepath.Join(dir, ".git"))...)
		}
	}
	return out
}

// objects are the directories of a repository that hold texts.
func objects(git string) []string {
	if raw, err := os.ReadFile(git); err == nil { // a worktree's: it says where the rest is
		at := strings.TrimSpace(strings.TrimPrefix(string(raw), "gitdir:"))
		if !filepath.IsAbs(at) {
			at = filepath.Join(filepath.Dir(git), at)
		}
		if common, err := os.ReadFile(filepath.Join(at, "commondir")); err == nil {
			at = filepath.Join(at, strings.TrimSpace(string(common)))
		}
		git = at
	}
	entries, err := os.ReadDir(filepath.Join(git, "objects"))
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() && e.Name() != "info" {
			out = append(out, filepath.Join(git, "objects", e.Name()))
		}
	}
	return out
}

// reticent are the commands of git that print nothing of what is in the files, and give
// it no other name.
var reticent = []string{
	"add", "branch", "checkout", "clean", "commit", "fetch", "gc", "init", "log", "ls-files", "merge", "prune", "pull", "push",
	"rebase", "remote", "restore", "rev-parse", "rm", "status", "switch", "tag",
}

// mute are the options that leave them so. Any other may make them print it all the
// same: git has many words for a patch.
var (
	mute = []string{
		"--", "-A", "-a", "-am", "-b", "-d", "-f", "-m", "-n", "-q", "-s", "--all", "--amend", "--branch", "--ff-only", "--no-edit",
		"--porcelain", "--prune", "--quiet", "--rebase", "--set-upstream", "--short", "--tags",
	}
	muteLog = []string{"--", "-n", "--all", "--decorate", "--graph", "--name-only", "--name-status", "--oneline", "--stat"}
)

// watchedBy lists what a command is watched for.
func (s Seclusion) watchedBy(argv []string) []string {
	n := len(bash)
	isLine := len(argv) == n+1 && slices.Equal(argv[:n], bash)
	if isLine && !prints(argv[n]) || !isLine && len(argv) > 1 && quietCall(argv) {
		return nil // git looks into every file, and keeps it to itself
	}
	return slices.Concat(s.Files, s.Stores)
}

// prints reports whether a command line may print something of what git keeps: all do
// but lists of plain commands of git that are known not to.
func prints(line string) bool {
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil {
		return true
	}
	for _, s := range f.Stmts {
		if !quiet(s) {
			return true
		}
	}
	return false
}

func quiet(s *syntax.Stmt) bool {
	if s.Negated || s.Background || s.Coprocess || len(s.Redirs) > 0 {
		return false
	}
	switch c := s.Cmd.(type) {
	case *syntax.BinaryCmd:
		return (c.Op == syntax.AndStmt || c.Op == syntax.OrStmt) && quiet(c.X) && quiet(c.Y)
	case *syntax.CallExpr:
		words, ok := literals(c)
		return ok && len(words) > 1 && quietCall(words)
	}
	return false
}

func quietCall(words []string) bool {
	if words[0] == "cd" || words[0] == "echo" {
		return true
	}
	if words[0] != "git" || !slices.Contains(reticent, words[1]) {
		return false
	}
	allowed := mute
	if words[1] == "log" {
		allowed = muteLog
	}
	return !slices.ContainsFunc(words[2:], func(w string) bool {
		isCount := len(w) > 1 && strings.Trim(w[1:], "0123456789") == ""
		return strings.HasPrefix(w, "-") && !slices.Contains(allowed, w) && !isCount
	})
}

// literals are the words of a call when it has nothing in it that the shell would
// work out.
func literals(c *syntax.CallExpr) (words []string, ok bool) {
	if len(c.Assigns) > 0 {
		return nil, false
	}
	for _, w := range c.Args {
		var b strings.Builder
		for _, p := range w.Parts {
			switch p := p.(type) {
			case *syntax.Lit:
				b.WriteString(p.Value)
			case *syntax.SglQuoted:
				b.WriteString(p.Value)
			case *syntax.DblQuoted:
				for _, q := range p.Parts {
					l, plain := q.(*syntax.Lit)
					if !plain {
						return nil, false
					}
					b.WriteString(l.Value)
				}
			default:
				return nil, false
			}
		}
		words = append(words, b.String())
	}
	return words, true
}
