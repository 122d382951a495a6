package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// looking are the commands that show the memex, the past, and what the daemon has.
func looking() []command {
	return []command{
		{name: "agenda", args: "[day|week|month] [DATE]", doc: "appointments, scheduled tasks and deadlines", run: (*Model).agenda, words: func(*Model) []string { return []string{"day", "week", "month"} }},
		{name: "memory", args: "[NODE]", doc: "browse the memex: outline, text, history, undo", run: (*Model).memory, takes: "NODE"},
		{name: "history", args: "[NODE]", doc: "what became of a node; or the agent's last changes", run: (*Model).history, takes: "NODE"},
		{name: "changes", doc: "the agent's last changes, newest first", run: (*Model).changes},
		{name: "undo", args: "[N|ID]", doc: "take back the agent's last changes, or those of a turn or an action", run: (*Model).undo, words: (*Model).traceIDs},
		{name: "redo", args: "[N]", doc: "bring back what was undone last", run: (*Model).redo},
		{name: "rewind", args: "[N]", doc: "take back what was done since your n-th last message, and edit it", run: (*Model).rewind},
		{name: "sessions", doc: "the conversations there were; Enter goes on with one", run: (*Model).sessions},
		{name: "resume", args: "[SESSION]", doc: "go on with a conversation and show what was said in it", run: (*Model).resume, takes: "SESSION"},
		{name: "focus", args: "[NODE|pop|clear|pin NODE]", doc: "what project the conversation is about", run: forward("focus"), takes: "NODE"},
		{name: "scope", args: "[NODE]", doc: "the same as /focus", run: forward("focus"), takes: "NODE"},
		{name: "unfocus", doc: "look at no project any more", run: forward("unfocus")},
		{name: "context", args: "[why NODE|dropped]", doc: "what of the memex a model was shown, and why", run: forward("context"), takes: "NODE"},
		{name: "model", args: "[TIER/SLOT=NAME]", doc: "the same as /models", run: forward("models")},
		{name: "skills", doc: "what each skill has done since it was loaded", run: (*Model).skills},
		{name: "jobs", doc: "jobs and hooks, when they are due and how they went", run: (*Model).jobs},
		{name: "tags", doc: "the tags of the memex, and which of them are private", run: (*Model).tags},
		{name: "eval", args: "EXPRESSION", doc: "evaluate Lisp in a jail without any capability", run: (*Model).eval},
		{name: "identity", doc: "who the assistant is to be: system/identity.org", run: file("system/identity.org")},
		{name: "permissions", doc: "what each tool may do: system/permissions.org", run: file("system/permissions.org")},
		{name: "rules", doc: "the rules in force and on trial: system/rules.org", run: file("system/rules.org")},
	}
}

// file is a command that opens one file of the memex.
func file(name string) func(*Model, []string) tea.Cmd {
	return func(m *Model, _ []string) tea.Cmd { return m.memory([]string{name}) }
}

// elsewhere are names people expect whose work is done outside a conversation, or
// by itself. Each says where.
func elsewhere() []command {
	var out []command
	for _, c := range []struct{ name, doc, say string }{
		{"compact", "make room in the context", "The context makes room by itself: old results go first, then the oldest exchanges. /context says what a model is shown; /new begins without any of it."},
		{"setup", "the first settings", "`passepartout setup` asks for them, in a shell: what it writes is not the agent's to write."},
		{"config", "settings", "`passepartout config list` and `config set`, in a shell: settings are not the agent's to write."},
		{"doctor", "what is wrong with the installation", "`passepartout doctor` looks, in a shell; `--fix` mends what it can."},
		{"mcp", "tools of other programs", "Servers of the Model Context Protocol are not connected here. Editors join by `passepartout acp`; new tools are skills, which /skills lists."},
		{"audit", "the record of everything that was decided", "`passepartout journal verify` proves the record whole, `journal tail` shows it; /why ID explains one action."},
		{"skill-load", "load a skill", "Skills are loaded when their file changes. `passepartout skill install` and `skill test` are in a shell; /skills shows what is loaded."},
		{"commit", "save", "There is nothing to save: notes are on disk when the answer comes, with their history. /changes lists it."},
		{"init", "begin in a folder", "A folder needs no file of its own here. AGENTS.md beside your notes is read as advice; /identity is who the assistant is to be."},
	} {
		out = append(out, command{name: c.name, doc: c.doc + ": says where", run: func(m *Model, _ []string) tea.Cmd {
			m.note(c.say)
			return nil
		}})
	}
	return out
}

func (m *Model) skills([]string) tea.Cmd { m.ask("skills"); return nil }
func (m *Model) jobs([]string) tea.Cmd   { m.ask("schedule"); return nil }
func (m *Model) tags([]string) tea.Cmd   { m.ask("tags"); return nil }

func (m *Model) eval(args []string) tea.Cmd {
	code := strings.Join(args, " ")
	if code == "" {
		m.note("Say what to evaluate: /eval (+ 1 2).")
		return nil
	}
	m.note("`" + clean(code) + "`")
	m.send(proto.Message{Kind: proto.Request, Payload: sexp.P(word("ACTION"), word("REPL-EVAL"), word("CODE"), code)}, request{what: "repl-eval"})
	return nil
}

// told shows the answer to a question a command asked.
func (m *Model) told(what string, p sexp.Plist) {
	switch what {
	case "skills":
		m.note(listed(plists(p, "SKILLS"), "No skill is loaded.", "Skill", "NAME", "Calls", "CALLS", "Failures", "FAILURES"))
	case "schedule":
		jobs := append(plists(p, "JOBS"), plists(p, "HOOKS")...)
		m.note(listed(jobs, "There are no jobs. `passepartout schedule --help` tells how to make one.", "Job", "NAME", "Due", "NEXT", "State", "STATE"))
	case "tags":
		m.note(listed(plists(p, "TAGS"), "No heading has a tag.", "Tag", "NAME", "Headings", "COUNT", "Leaves the machine", "LEAVES"))
	case "repl-eval":
		out := clean(p.Text("OUTPUT"))
		if e := p.Text("ERROR"); e != "" {
			out += clean(e)
		} else {
			out += strings.Join(texts(p, "VALUES"), "\n")
		}
		m.note("```lisp\n" + strings.TrimRight(out, "\n") + "\n```")
	}
}

// listed is a table of rows; heads and keys alternate.
func listed(rows []sexp.Plist, none string, heads ...string) string {
	if len(rows) == 0 {
		return none
	}
	var b strings.Builder
	for i := 0; i < len(heads); i += 2 {
		fmt.Fprintf(&b, "| %s ", heads[i])
	}
	b.WriteString("|\n" + strings.Repeat("|---", len(heads)/2) + "|\n")
	for _, r := range rows {
		for i := 1; i < len(heads); i += 2 {
			v, _ := r.Get(sexp.Keyword(heads[i]))
			text, ok := v.(sexp.String)
			if !ok && v != nil {
				text = sexp.String(v.String())
			}
			fmt.Fprintf(&b, "| %s ", cell(string(text)))
		}
		b.WriteString("|\n")
	}
	return b.String()
}
