package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"passepartout/internal/daemon"
	"passepartout/internal/sexp"
	"passepartout/internal/skill"
)

// skillCommand is everything about skills. It works on the files; a running daemon
// notices what changed before its next decision.
func (a *app) skillCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "skill", Short: "List, write, test and grant skills",
		Long: `Skills are Org files whose Lisp blocks add gates, prompts and tools.

They lie in the data directory; some come with the program. Saving a file is
enough: the daemon loads it, runs its tests, and puts it into force before its
next decision. A version that does not load leaves the one before in force. See
docs/skills.md.`,
	}
	c.AddCommand(
		&cobra.Command{Use: "list", Short: "List the skills and what is wrong with any", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return a.skillList() }},
		&cobra.Command{Use: "show NAME", Short: "Show one skill and its text", Args: cobra.ExactArgs(1), RunE: func(_ *cobra.Command, args []string) error { return a.skillShow(args[0]) }},
		a.skillNewCommand(),
		&cobra.Command{Use: "test [NAME|FILE]…", Short: "Load skills afresh and run their own tests", RunE: func(_ *cobra.Command, args []string) error { return a.skillTest(args) }},
		&cobra.Command{Use: "reload", Short: "Load all skills as they are on disk, and say what does not", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return a.skillTest(nil) }},
		&cobra.Command{Use: "install FILE|EXAMPLE", Short: "Test a skill and put it among the installed ones", Example: "  passepartout skill install my-skill.org\n  passepartout skill install example-gate", Args: cobra.ExactArgs(1), RunE: func(_ *cobra.Command, args []string) error { return a.skillInstall(args[0]) }},
		a.skillDistillCommand(),
		&cobra.Command{Use: "grant NAME CAPABILITY…", Short: "Let this version of a skill use capabilities", Args: cobra.MinimumNArgs(2), RunE: func(_ *cobra.Command, args []string) error { return a.skillGrant(args[0], args[1:]) }},
		&cobra.Command{Use: "revoke NAME", Short: "Take all capabilities from a skill", Args: cobra.ExactArgs(1), RunE: func(_ *cobra.Command, args []string) error { return a.skillGrant(args[0], nil) }},
	)
	for _, sub := range c.Commands() {
		switch sub.Name() {
		case "show", "test", "grant", "revoke", "install":
			sub.ValidArgsFunction = a.completeSkill
		}
	}
	return c
}

func (a *app) skillDistillCommand() *cobra.Command {
	var session string
	var dry bool
	c := &cobra.Command{
		Use: "distill", Short: "Make a reusable template note of the last good exchange",
		Long: `Make a template of the last question that was answered well: the request with
blanks, the steps that led to the answer, and what a good answer looks like. A
model writes it where one may read the conversation, and else rules do. The note
goes to the inbox through the gates, marked TODO: look through it, change it, move
it. Recall finds it like any other note when a similar question comes.`,
		Example: "  passepartout chat 'what did I promise Ana, and by when?'\n  passepartout skill distill --dry-run\n  passepartout skill distill",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text := "/distill"
			if dry {
				text += " --dry-run"
			}
			return a.ask(cmd.Context(), session, input{text: text})
		},
	}
	c.Flags().StringVarP(&session, "session", "s", "", "the conversation to learn from (default main)")
	c.Flags().BoolVar(&dry, "dry-run", false, "show the template and keep nothing")
	return c
}

// completeSkill offers the names of skills, then of capabilities where they follow.
func (a *app) completeSkill(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if cmd.Name() == "grant" && len(args) > 0 {
		return skill.Capabilities(), cobra.ShellCompDirectiveNoFileComp
	}
	if cmd.Name() == "install" {
		return skill.Examples(), cobra.ShellCompDirectiveDefault
	}
	l, _, _, err := a.skills()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, k := range l.Set().Skills {
		names = append(names, k.Name)
	}
	return names, cobra.ShellCompDirectiveDefault
}

// skills opens the library as the daemon does, without a memex behind it.
func (a *app) skills() (l *skill.Library, dir, grants string, err error) {
	cfg, err := a.config()
	if err != nil {
		return nil, "", "", err
	}
	dir, grants = filepath.Join(cfg.DataDir, "skills"), daemon.SkillGrants(cfg.StateDir)
	l, err = skill.Open(skill.Options{Dir: dir, Grants: grants, Bundled: skill.Bundled(), Now: time.Now})
	return l, dir, grants, err
}

// skillRow is one line of skill list.
type skillRow struct {
	Name         string   `json:"name"`
	File         string   `json:"file"`
	Digest       string   `json:"digest"`
	Priority     int      `json:"priority"`
	Gate         bool     `json:"gate"`
	Tools        []string `json:"tools,omitempty"`
	Tests        int      `json:"tests"`
	Hooks        []string `json:"hooks,omitempty"`
	Prompt       bool     `json:"prompt"`
	Capabilities []string `json:"capabilities,omitempty"`
	Granted      []string `json:"granted,omitempty"`
	Usage        *usage   `json:"usage,omitempty"` // of the running daemon's
}

// usage is what a running daemon says about a skill.
type usage struct {
	Calls       int    `json:"calls"`
	Failures    int    `json:"failures"`
	Steps       int    `json:"steps"`
	Quarantined bool   `json:"quarantined"`
	LastFailure string `json:"last_failure,omitempty"`
}

func (u *usage) String() string {
	if u == nil || u.Calls == 0 {
		return ""
	}
	text := fmt.Sprintf("%d calls", u.Calls)
	if u.Failures > 0 {
		text += fmt.Sprintf(", %d failed", u.Failures)
	}
	if u.Quarantined {
		text += ", in quarantine"
	}
	return text
}

// usages asks a daemon that runs what the skills have done; it starts none.
func (a *app) usages() map[string]*usage {
	started := a.noStart
	a.noStart = true
	defer func() { a.noStart = started }()
	p, err := a.inquire(context.Background(), "", sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("SKILLS")))
	if err != nil {
		return nil // none runs
	}
	out := map[string]*usage{}
	for _, r := range rows(p, "SKILLS") {
		quarantined, _ := r.Get("QUARANTINED")
		out[r.Text("NAME")] = &usage{
			Calls: r.Number("CALLS"), Failures: r.Number("FAILURES"), Steps: r.Number("STEPS"),
			Quarantined: !sexp.IsNil(quarantined), LastFailure: printable(r.Text("LAST-FAILURE")),
		}
	}
	return out
}

func skillRowOf(k *skill.Skill) skillRow {
	r := skillRow{
		Name: k.Name, File: k.File, Digest: k.Digest.String(), Priority: k.Priority, Gate: k.Gate() != nil, Tests: k.Tests,
		Capabilities: k.Wants, Granted: k.Has, Prompt: k.Speaks(), Hooks: k.Events(),
	}
	if tools, err := k.Tools(); err == nil {
		for _, t := range tools {
			r.Tools = append(r.Tools, t.Name)
		}
	}
	return r
}

func (a *app) skillList() error {
	l, _, _, err := a.skills()
	if err != nil {
		return err
	}
	set := l.Set()
	all := skillRows(set, a.usages())
	if a.json {
		return a.printJSON(struct {
			Skills   []skillRow `json:"skills"`
			Guides   []string   `json:"guides"`
			Problems []string   `json:"problems"`
		}{all, guideNames(set), problemTexts(set)})
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, r := range all {
		fmt.Fprintf(w, "%s\t%s\t%d tests\t%s\t%s\n", r.Name, strings.Join(parts(r), ", "), r.Tests, r.Usage, r.File)
	}
	for _, e := range skill.Examples() {
		if _, installed := set.Find(e); !installed {
			fmt.Fprintf(w, "%s\texample, not in force\t\t\texamples/%s.org\n", e, e)
		}
	}
	for _, g := range set.Guides {
		fmt.Fprintf(w, "%s\tguide\t\t\t%s\n", g.Name, g.File)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return a.tellProblems(set)
}

func skillRows(set *skill.Set, used map[string]*usage) []skillRow {
	out := make([]skillRow, 0, len(set.Skills))
	for _, k := range set.Skills {
		r := skillRowOf(k)
		r.Usage = used[k.Name]
		out = append(out, r)
	}
	return out
}

func guideNames(set *skill.Set) []string {
	out := make([]string, 0, len(set.Guides))
	for _, g := range set.Guides {
		out = append(out, g.Name)
	}
	return out
}

func problemTexts(set *skill.Set) []string {
	out := make([]string, 0, len(set.Problems))
	for _, p := range set.Problems {
		out = append(out, p.Error())
	}
	return out
}

// parts is what a skill consists of, in words.
func parts(r skillRow) []string {
	var out []string
	if r.Gate {
		out = append(out, fmt.Sprintf("gate at %d", r.Priority))
	}
	if len(r.Tools) > 0 {
		out = append(out, "tools "+strings.Join(r.Tools, " "))
	}
	switch {
	case len(r.Capabilities) > 0 && len(r.Granted) == 0:
		out = append(out, "wants "+strings.Join(r.Capabilities, " "))
	case len(r.Granted) > 0:
		out = append(out, "may use "+strings.Join(r.Granted, " "))
	}
	if len(r.Hooks) > 0 {
		out = append(out, "hooks "+strings.Join(r.Hooks, " "))
	}
	if r.Prompt {
		out = append(out, "prompt")
	}
	if len(out) == 0 {
		out = append(out, "library")
	}
	return out
}

// tellProblems makes what does not load the command's failure.
func (a *app) tellProblems(set *skill.Set) error {
	for _, p := range problemTexts(set) {
		fmt.Fprintln(a.errw, p)
	}
	if n := len(set.Problems); n > 0 {
		return fmt.Errorf("%d of the skills are not in force as they stand", n)
	}
	return nil
}

func findSkill(set *skill.Set, name string) (*skill.Skill, error) {
	if k, ok := set.Find(name); ok {
		return k, nil
	}
	var all []string
	for _, k := range set.Skills {
		all = append(all, k.Name)
	}
	for _, p := range set.Problems {
		if p.Name == name {
			return nil, p
		}
	}
	return nil, usageError("no skill %s, want one of: %s", name, strings.Join(all, ", "))
}

func (a *app) skillShow(name string) error {
	l, _, _, err := a.skills()
	if err != nil {
		return err
	}
	if g, err := l.Set().Guide(name); err == nil {
		_, err = fmt.Fprintf(a.out, "%s: %s\n\n%s\n", g.Name, g.Description, g.Text)
		return err
	}
	if text, ok := skill.Example(name); ok {
		if _, installed := l.Set().Find(name); !installed {
			_, err = fmt.Fprintf(a.out, "# %s: an example, not in force; to use it: passepartout skill install %s\n%s", name, name, text)
			return err
		}
	}
	k, err := findSkill(l.Set(), name)
	if err != nil {
		return err
	}
	r := skillRowOf(k)
	r.Usage = a.usages()[name]
	if a.json {
		return a.printJSON(r)
	}
	fmt.Fprintf(a.out, "# %s: %s; %d tests; sha256 %s\n", k.Name, strings.Join(parts(r), ", "), k.Tests, k.Digest)
	if text := r.Usage.String(); text != "" {
		fmt.Fprintf(a.out, "# %s; %d steps\n", text, r.Usage.Steps)
	}
	if r.Usage != nil && r.Usage.LastFailure != "" {
		fmt.Fprintf(a.out, "# last failure: %s\n", r.Usage.LastFailure)
	}
	_, err = a.out.Write(k.Source())
	return err
}

func (a *app) skillNewCommand() *cobra.Command {
	kind := "gate"
	c := &cobra.Command{
		Use: "new NAME", Short: "Write a small working skill to begin from", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.skillNew(args[0], kind) },
	}
	c.Flags().StringVar(&kind, "kind", kind, "what it is to be: "+strings.Join(skill.TemplateKinds(), ", "))
	return c
}

func (a *app) skillNew(name, kind string) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	if _, err := skill.NameOf(name + ".org"); err != nil {
		return &exitError{exitUsage, err}
	}
	text, err := skill.Template(name, kind)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	path := filepath.Join(cfg.DataDir, "skills", name+".org")
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is there already", path)
	}
	if err := skill.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.out, path)
	return err
}

// skillTest loads skills, which runs their tests. Names are of skills in force,
// anything with a slash or an ending is a file.
func (a *app) skillTest(args []string) error {
	l, _, _, err := a.skills()
	if err != nil {
		return err
	}
	if len(args) == 0 {
		for _, k := range l.Set().Skills {
			fmt.Fprintf(a.out, "ok  %s  %d tests\n", k.Name, k.Tests)
		}
		return a.tellProblems(l.Set())
	}
	var failed error
	for _, arg := range args {
		var k *skill.Skill
		if strings.ContainsAny(arg, "./") {
			k, err = l.Try(arg)
		} else {
			k, err = findSkill(l.Set(), arg)
		}
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		fmt.Fprintf(a.out, "ok  %s  %d tests\n", k.Name, k.Tests)
	}
	return failed
}

func (a *app) skillInstall(file string) error {
	l, dir, grants, err := a.skills()
	if err != nil {
		return err
	}
	var k *skill.Skill
	if text, ok := skill.Example(file); ok {
		k, err = l.Set().Draft(file, text)
	} else {
		k, err = l.Try(file)
	}
	if err != nil {
		return err
	}
	path := filepath.Join(dir, k.Name+".org")
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, k.Source()) {
		_, err = fmt.Fprintf(a.out, "%s is installed already\n", k.Name)
		return err
	}
	had, err := skill.Forget(grants, k.Name)
	if err != nil {
		return err
	}
	if err := skill.WriteFile(path, k.Source(), 0o600); err != nil {
		return err
	}
	if had {
		fmt.Fprintf(a.out, "what was granted to the version before is not granted to this one\n")
	}
	fmt.Fprintf(a.out, "installed %s: %s; %d tests\n", k.Name, strings.Join(parts(skillRowOf(k)), ", "), k.Tests)
	if len(k.Wants) > 0 {
		fmt.Fprintf(a.out, "it asks for: %s\nto grant that: passepartout skill grant %s %s\n", strings.Join(k.Wants, ", "), k.Name, strings.Join(k.Wants, " "))
	}
	return nil
}

func (a *app) skillGrant(name string, caps []string) error {
	l, _, grants, err := a.skills()
	if err != nil {
		return err
	}
	k, ok, err := l.OnDisk(name)
	if !ok {
		_, err = findSkill(l.Set(), name)
	}
	if err != nil {
		return err
	}
	g, err := skill.LoadGrants(grants)
	if err != nil {
		return err
	}
	if err := g.Set(skill.Grant{Name: name, Digest: k.Digest, Capabilities: caps, Source: k.Source()}); err != nil {
		return &exitError{exitUsage, err}
	}
	if err := g.Save(grants); err != nil {
		return err
	}
	if len(caps) == 0 {
		_, err = fmt.Fprintf(a.out, "%s may use nothing\n", name)
		return err
	}
	_, err = fmt.Fprintf(a.out, "%s may use %s, as long as its file stays as it is\n", name, strings.Join(caps, ", "))
	return err
}
