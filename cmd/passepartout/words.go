package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"passepartout/internal/sexp"
)

// A slashWord is what can be said with a slash at the plain prompt.
type slashWord struct {
	name string
	argv []string // the command it is; nil goes to the daemon, which knows it
	doc  string
}

// slashWords is the whole list. What is not in it is not sent: it might be a slip
// in a word that gives an approval.
var slashWords = []slashWord{
	{"approvals", nil, "what waits for you"},
	{"approve", nil, "[TOKEN] [once|session|rule]: allow it"},
	{"deny", nil, "[TOKEN] [REASON]: refuse it"},
	{"answer", nil, "[TOKEN] TEXT: answer a question of the agent"},
	{"why", []string{"why"}, "[ID]: every gate's verdict on the last action, or on one"},
	{"undo", []string{"undo"}, "[N|ID]: take back what the agent changed"},
	{"redo", []string{"redo"}, "[N]: bring back what was undone"},
	{"agenda", []string{"agenda"}, "appointments, scheduled tasks and deadlines"},
	{"memory", []string{"memory", "show"}, "NODE: its text"},
	{"history", []string{"memory", "history"}, "NODE: what became of it"},
	{"changes", []string{"changed"}, "what changed in the memex lately"},
	{"search", []string{"recall"}, "TEXT: the notes it is about"},
	{"focus", nil, "[NODE]: what project the conversation is about"},
	{"unfocus", nil, "look at no project any more"},
	{"context", nil, "[why NODE|dropped]: what of the memex a model was shown"},
	{"new", nil, "forget this conversation and begin another"},
	{"distill", nil, "keep the last good exchange as a template note"},
	{"status", nil, "what the daemon says about itself"},
	{"models", nil, "[TIER/SLOT=NAME]: which model does what"},
	{"cost", nil, "what models have cost"},
	{"skills", []string{"skill", "list"}, "the skills there are"},
	{"jobs", []string{"schedule", "list"}, "jobs and hooks"},
	{"rules", []string{"rules", "list"}, "the rules in force and on trial"},
	{"permissions", []string{"memory", "show", "system/permissions.org"}, "what each tool may do"},
	{"identity", []string{"memory", "show", "system/identity.org"}, "who the assistant is to be"},
	{"config", []string{"config", "list"}, "the settings"},
	{"doctor", []string{"doctor"}, "what is wrong with the installation"},
	{"audit", []string{"journal", "tail"}, "the end of the record"},
	{"help", nil, "this"},
	{"quit", nil, "leave"},
}

// word takes a line that begins with a slash, unless the daemon is to have it. A path
// such as /etc/hosts is no word.
func (a *app) word(ctx context.Context, line string) (taken bool) {
	words := strings.Fields(line)
	if !strings.HasPrefix(line, "/") || len(words) == 0 || strings.Contains(words[0][1:], "/") {
		return false
	}
	name := words[0][1:]
	var names []string
	for _, w := range slashWords {
		if w.name == name && w.name != "help" {
			if w.argv == nil {
				return false
			}
			a.carryOut(ctx, append(w.argv[:len(w.argv):len(w.argv)], words[1:]...))
			return true
		}
		names = append(names, w.name)
	}
	if name == "help" {
		for _, w := range slashWords {
			fmt.Fprintf(a.out, "/%-12s %s\n", w.name, w.doc)
		}
		fmt.Fprintln(a.out, "Say `help` for what I understand in plain sentences.")
		return true
	}
	if near, ok := sexp.Nearest(name, names); ok {
		fmt.Fprintf(a.errw, "There is no /%s. Did you mean /%s?\n", printable(name), near)
	} else {
		fmt.Fprintf(a.errw, "There is no /%s. /help lists what there is.\n", printable(name))
	}
	return true
}

// carryOut runs a command of this program and comes back.
func (a *app) carryOut(ctx context.Context, argv []string) {
	b := *a
	root := b.root()
	b.demo, b.noStart, b.plain, b.format = a.demo, a.noStart, a.plain, ""
	b.in = strings.NewReader("") // the prompt's input is the prompt's
	root.SetArgs(argv)
	root.SetOut(a.out)
	root.SetErr(a.errw)
	err := root.ExecuteContext(ctx)
	if ee := (*exitError)(nil); errors.As(err, &ee) {
		err = ee.err
	}
	if err != nil {
		fmt.Fprintf(a.errw, "passepartout: %v\n", err)
	}
}
