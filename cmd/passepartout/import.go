package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"passepartout/internal/durable"
	"passepartout/internal/org"
	"passepartout/internal/secret"
)

// An importCall is how import was called.
type importCall struct {
	into    string
	dry     bool
	mine    bool
	secrets bool
}

// An imported is what became of one file.
type imported struct {
	From string `json:"from"`
	To   string `json:"to"`   // relative to the memex
	Done string `json:"done"` // new, updated, same, edited, secret, unreadable
	Note string `json:"note,omitempty"`
	text []byte
}

func (a *app) importCommand() *cobra.Command {
	var call importCall
	c := &cobra.Command{
		Use: "import [PATH…]", Short: "Turn Markdown notes, MEMORY.md, CLAUDE.md into Org files of the memex",
		Long: `Turn Markdown files, and folders of them, into Org files below resources/imported in
the memex. Org files are taken as they are. What is imported is labelled as not your
own (:ORIGIN:), so that nothing in it can give orders; with --mine it is not.

Importing the same again changes nothing; what changed at its source is imported anew,
unless you edited it meanwhile, which is said and left alone. Files that hold
credentials are left out. Without a PATH, memories of other agents in their usual
places are listed.

A large folder shows how far it is, here and in every open terminal client. Ctrl-C
stops between two files; the same command goes on from there.`,
		Example: `  passepartout import                         # what is there
  passepartout import ~/.claude/CLAUDE.md --dry-run
  passepartout import ~/Obsidian --mine`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.importable()
			}
			return a.importNotes(cmd.Context(), args, call)
		},
	}
	f := c.Flags()
	f.StringVar(&call.into, "into", "resources/imported", "folder of the memex it goes to")
	f.BoolVarP(&call.dry, "dry-run", "n", false, "say what would be written, and write nothing")
	f.BoolVar(&call.mine, "mine", false, "these are your own words: no :ORIGIN:")
	f.Var(&a.format, "format", "text, json, or stream-json: a line for each step, and one for the result")
	f.BoolVar(&call.secrets, "keep-secrets", false, "also import files that hold credentials")
	return c
}

// memories are where other agents keep what they know, relative to the home.
var memories = []string{
	".claude/CLAUDE.md", ".claude/projects/*/memory/*.md", ".codex/AGENTS.md", ".config/AGENTS.md", ".config/opencode/AGENTS.md",
	".gemini/GEMINI.md", ".openclaw/workspace/*.md", ".openclaw/workspace/memory/*.md", ".hermes/memories/*.md", ".picoclaw/workspace/memory/*.md",
}

func (a *app) importable() error {
	found := []string{}
	for _, pattern := range memories {
		names, err := filepath.Glob(filepath.Join(a.getenv("HOME"), pattern))
		if err == nil {
			found = append(found, names...)
		}
	}
	if a.json {
		return a.printJSON(found)
	}
	for _, name := range found {
		fmt.Fprintln(a.out, printable(name))
	}
	if len(found) == 0 {
		fmt.Fprintln(a.errw, "No memories of other agents were found; give a file or a folder.")
	}
	return nil
}

func (a *app) importNotes(ctx context.Context, paths []string, call importCall) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	if !filepath.IsLocal(call.into) || path.Clean(call.into) == "system" || strings.HasPrefix(path.Clean(call.into), "system/") {
		return usageError("--into: want a folder inside the memex other than system, found %q", call.into)
	}
	root, err := os.OpenRoot(cfg.MemexDir)
	if err != nil {
		return fmt.Errorf("memex: %w", err)
	}
	defer root.Close()
	var all []imported
	for _, p := range paths {
		found, err := gather(p, path.Clean(filepath.ToSlash(call.into)))
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	var done, total atomic.Int64
	total.Store(int64(len(all)))
	far, over := a.announced(ctx, counting("importing", &done, &total))
	defer over()
	err = a.during(ctx, far, func(ctx context.Context) error {
		for i := range all {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := all[i].take(root, call); err != nil {
				return err
			}
			done.Add(1)
		}
		return nil
	})
	looked := all[:done.Load()]
	if terr := a.tellImported(looked, call.dry); terr != nil {
		return errors.Join(err, terr)
	}
	failed := 0
	for _, it := range looked {
		if it.Done == "edited" || it.Done == "unreadable" {
			failed++
		}
	}
	switch {
	case errors.Is(err, errStopped):
		return fmt.Errorf("stopped after %d of %d files; the same command goes on from there", len(looked), len(all))
	case err != nil:
		return err
	case failed > 0:
		return fmt.Errorf("%d of %d were not imported", failed, len(all))
	}
	return nil
}

// take brings one file into the memex, if it belongs there.
func (it *imported) take(root *os.Root, call importCall) error {
	it.consider(root, call)
	if call.dry || it.Done != "new" && it.Done != "updated" {
		return nil
	}
	if err := durable.PutIn(root, filepath.FromSlash(it.To), it.text, 0o600, it.Done == "new"); err != nil {
		return fmt.Errorf("%s: %w", it.To, err)
	}
	it.text = nil // a large folder would be held in memory otherwise
	return nil
}

func (a *app) tellImported(all []imported, dry bool) error {
	result := map[string]any{"dry_run": dry, "files": append([]imported{}, all...)}
	switch {
	case a.format == "stream-json":
		result["type"] = "result"
		enc := json.NewEncoder(a.out)
		enc.SetEscapeHTML(false)
		return enc.Encode(result)
	case a.json || a.format == "json":
		return a.printJSON(result)
	}
	for _, it := range all {
		line := fmt.Sprintf("%-10s %s -> %s", it.Done, it.From, it.To)
		if it.Note != "" {
			line += ": " + it.Note
		}
		fmt.Fprintln(a.out, printable(line))
		if dry && (it.Done == "new" || it.Done == "updated") {
			fmt.Fprintln(a.out, "  | "+strings.ReplaceAll(printable(strings.TrimRight(string(it.text), "\n")), "\n", "\n  | "))
		}
	}
	return nil
}

// noteNames are the endings of what can be imported.
var noteNames = []string{".md", ".markdown", ".org", ".txt"}

// gather lists what a path stands for. Links and hidden files are not followed.
func gather(p, into string) ([]imported, error) {
	st, err := os.Stat(p)
	if err != nil {
		return nil, err
	}
	base := filepath.Base(p)
	if base == "." || base == ".." || base == "/" {
		abs, err := filepath.Abs(p)
		if err != nil {
			return nil, err
		}
		base = filepath.Base(abs)
	}
	if !st.IsDir() {
		return []imported{{From: p, To: path.Join(into, orgName(base))}}, nil
	}
	var out []imported
	err = filepath.WalkDir(p, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if strings.HasPrefix(d.Name(), ".") && name != p || d.IsDir() && d.Name() == "node_modules" {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || !slices.Contains(noteNames, strings.ToLower(filepath.Ext(name))) {
			return nil
		}
		rel, err := filepath.Rel(p, name)
		if err == nil {
			out = append(out, imported{From: name, To: path.Join(into, base, orgName(filepath.ToSlash(rel)))})
		}
		return err
	})
	return distinct(out), err
}

// distinct gives files that differ only in their ending names of their own.
func distinct(all []imported) []imported {
	seen := map[string]bool{}
	for i := range all {
		if seen[all[i].To] {
			all[i].To = strings.TrimSuffix(all[i].To, ".org") + "-" + strings.TrimPrefix(filepath.Ext(all[i].From), ".") + ".org"
		}
		seen[all[i].To] = true
	}
	return all
}

func orgName(name string) string { return strings.TrimSuffix(name, path.Ext(name)) + ".org" }

// maxNote is the largest file that is imported.
const maxNote = 16 << 20

// consider decides what to do with a file, and makes its new text.
func (it *imported) consider(root *os.Root, call importCall) {
	st, err := os.Stat(it.From)
	if err != nil || !st.Mode().IsRegular() || st.Size() > maxNote {
		it.Done, it.Note = "unreadable", "want a file of at most 16 MiB"
		return
	}
	raw, err := os.ReadFile(it.From)
	if err != nil || !utf8.Valid(raw) {
		it.Done, it.Note = "unreadable", "it is not UTF-8 text"
		return
	}
	if found := secret.Default().Scan(string(raw)); len(found) > 0 && !call.secrets {
		it.Done, it.Note = "secret", fmt.Sprintf("it holds what looks like a credential (%s); --keep-secrets takes it all the same", found[0].Rule)
		return
	}
	it.text = noteText(it.From, raw, call.mine)
	have, err := readNote(root, it.To)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		it.Done = "new"
	case err != nil:
		it.Done, it.Note = "unreadable", err.Error()
	case bytes.Equal(have, it.text):
		it.Done = "same"
	case untouched(have):
		it.Done = "updated"
	default:
		it.Done, it.Note = "edited", "it was changed in the memex since it was imported, or is not an import; left alone"
	}
}

// importedKey holds the digest of what import wrote below it, so that a later one
// can tell whether anybody edited it.
const importedKey = ":IMPORTED: "

// noteText is the Org file made of a source.
func noteText(from string, raw []byte, mine bool) []byte {
	body := string(raw)
	ending := strings.ToLower(filepath.Ext(from))
	switch ending {
	case ".md", ".markdown":
		body = string(org.FromMarkdown(raw))
	case ".txt":
		body = org.EscapeBody(body)
	}
	name := filepath.Base(from)
	var props string
	if rest, ok := strings.CutPrefix(body, ":PROPERTIES:\n"); ok { // an Org file's own drawer goes on
		if inner, after, closed := strings.Cut(rest, "\n:END:\n"); closed {
			props, body = inner+"\n", after
		}
	}
	if ending != ".org" && !strings.HasPrefix(body, "#+TITLE:") {
		body = "#+TITLE: " + strings.TrimSuffix(name, filepath.Ext(name)) + "\n\n" + body
	}
	if !mine {
		props += ":ORIGIN: import of " + name + "\n"
	}
	sum := sha256.Sum256([]byte(props + body))
	return []byte(":PROPERTIES:\n" + props + importedKey + hex.EncodeToString(sum[:8]) + "\n:END:\n" + body)
}

// untouched reports whether a note is still as import wrote it.
func untouched(text []byte) bool {
	head, body, ok := strings.Cut(string(text), "\n:END:\n")
	props, sum, marked := strings.Cut(head, importedKey)
	if !ok || !marked {
		return false
	}
	want := sha256.Sum256([]byte(strings.TrimPrefix(props, ":PROPERTIES:\n") + body))
	return sum == hex.EncodeToString(want[:8])
}

func readNote(root *os.Root, name string) ([]byte, error) {
	f, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 2*maxNote))
}
