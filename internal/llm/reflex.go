package llm

import (
	"context"
	"fmt"
	"strings"
	"time"

	"passepartout/internal/pattern"
)

// Reflex answers by rules. It is deterministic: the same conversation at the same
// time gives the same proposal. The zero Reflex is ready to use.
type Reflex struct{}

var _ Backend = Reflex{}

// Info implements [Backend].
func (Reflex) Info() Info { return Info{Name: "reflex", Local: true} }

// Complete implements [Backend]: the person's words become one proposal; what a
// tool returned becomes the reply; what the gates objected to is passed on.
func (Reflex) Complete(_ context.Context, req Request, sink func(string)) (Reply, error) {
	if len(req.Messages) == 0 {
		return Reply{}, errNoConversation
	}
	var reply Reply
	switch last := req.Messages[len(req.Messages)-1]; last.Role {
	case ToolResult:
		reply.Text = present(last, said(req.Messages))
	case Objection:
		reply.Text = "I may not do that.\n" + last.Text
	case User, Assistant, RoleInvalid:
		reply = propose(strings.TrimSpace(words(last.Text)), req)
	}
	if sink != nil && reply.Text != "" {
		sink(reply.Text)
	}
	return reply, nil
}

// said is the person's last message.
func said(ms []Message) string {
	for i := len(ms) - 1; i >= 0; i-- {
		if ms[i].Role == User {
			return words(ms[i].Text)
		}
	}
	return ""
}

// NoModel is the honest sentence about what is missing.
const NoModel = "No language model is configured, so I answer by rules. To add one, set a provider key or run Ollama; `passepartout config list` shows the settings."

// An intent is one thing a person may say. The first that matches decides.
type intent struct {
	name    string
	example string
	pattern *pattern.Pattern
	propose func(m []string, now time.Time) Reply // nil: show the help
}

func re(s string) *pattern.Pattern {
	return pattern.New(`(?is)^\s*(?:please\s+)?` + s + `\s*[.!?]*\s*$`)
}

// intents are tried in order. Adding one means adding its example, which help
// shows and a test runs.
var intents = []intent{
	{"help", "help", re(`(?:/?help|\?|what can you do|how does this work|commands)`), nil},
	{"greet", "hello", re(`(?:hi|hello|hey|good (?:morning|evening|day)|thanks|thank you)(?: there)?`), func([]string, time.Time) Reply {
		return Reply{Text: "Hello. Ask me what is due, or say `help` for everything I understand.\n" + NoModel}
	}},
	{"run", "run `ls -la`", re("(?:run|execute|shell)(?: the)?(?: command)?:?\\s+`(.+)`"), runCommand},
	{"run", "$ git status", re(`[$!]\s*(.+)`), runCommand},
	{"run", "run make test in the shell", re(`(?:run|execute)(?: the)?(?: command)?:?\s+(.+?)\s+in (?:the|a) (?:shell|terminal)`), runCommand},
	{"run", "run git log -1", re(`(?:run|execute)(?: the)?(?: command)?:?\s+(.+)`), runCommand},
	{"done", "mark call the plumber done", re(`(?:mark|set)\s+(.+?)\s+(?:as\s+)?(?:to\s+)?(done|finished|complete|completed|cancelled|canceled)`), markState},
	{"done", "finish call the plumber", re(`(?:finish|complete|done(?: with)?|close)[:\s]+(.+)`), func(m []string, now time.Time) Reply { return markState([]string{"", m[1], "done"}, now) }},
	{"capture", "remind me to call Ana by friday", re(`(?:remind me to|add(?: a)? (?:task|todo)(?: to)?|todo|new task|capture(?: a)? task)[:\s]+(.+)`), captureTask},
	{"capture", "note that the server moved", re(`(?:add a note|note(?: that)?|take a note|remember(?: that)?|capture(?: a note)?|jot down)[:\s]+(.+)`), captureNote},
	{"due", "what is overdue?", re(`(?:what(?:'s| is| are)?|show|list)?\s*(?:my |the )?(?:tasks? |items? |things? )?(?:is |are )?overdue(?: tasks?| items?)?`), span("overdue")},
	{"due", "what is due this week?", re(`(?:what(?:'s| is| do i have)?|show|list|anything)?\s*(?:me )?(?:my |the )?(?:agenda|due|scheduled|deadlines?|coming up|planned|on(?: my)? (?:agenda|calendar|plate)|to do)\s*(?:for |in |on |by )?(?:(?:the )?(today|tomorrow|(?:this|next|coming) week|this month|next month|the next \d+ days|next \d+ days|week|month))?`), agenda},
	{"due", "agenda", re(`(?:my |the )?(?:agenda|schedule|calendar)(?: for)?\s*(today|tomorrow|(?:this|next) week|this month|week|month)?`), agenda},
	{"todos", "list my todos tagged work", re(`(?:list|show|what are|what're|find|give me)?\s*(?:me )?(?:all )?(?:my |the )?(?:open |active )?(?:todos?|to-dos?|tasks?|next actions|todo list)(?:\s+(?:tagged|with tag|about|for|in)\s+(.+))?`), listTodos},
	{"projects", "list my projects", re(`(?:list|show|what are)?\s*(?:me )?(?:my |the |all )?(?:active )?projects`), func([]string, time.Time) Reply {
		return call("org-find-headline", "The user asked for the projects, so I list them.", "tag", "project")
	}},
	{"read", "read file notes/garden.org", re(`(?:read|cat|open|show)(?: me)?(?: the)? file\s+(.+)`), func(m []string, _ time.Time) Reply {
		return call("read-file", "The user asked to read this file.", "filepath", unquote(m[1]))
	}},
	{"list", "list directory notes", re(`(?:list|ls|show)(?: the)?(?: files in)?(?: directory| folder| dir)\s*(.*)`), listDirectory},
	{"list", "ls notes", re(`ls(?:\s+(.*))?`), listDirectory},
	{"show", "show note garden", re(`(?:show|open|display)(?: me)?(?: the| my)?\s+(?:note|heading|entry|node|item)s?\s+(?:about |on |called |named )?(.+)`), showNote},
	{"search", "search for invoices", re(`(?:search|find|look)(?: for| up)?(?: notes?)?(?: about| on| for)?\s+(.+)`), search},
	{"search", "what do I know about tomatoes?", re(`(?:what do (?:i|we|you) (?:know|have) (?:about|on)|notes? (?:about|on)|tell me about|where is|who is|what is|when is)\s+(.+)`), search},
}

func propose(text string, req Request) Reply {
	if text == "" {
		return Reply{Text: "You said nothing. Say `help` to see what I understand."}
	}
	for _, in := range intents {
		m := in.pattern.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		if in.propose == nil {
			return Reply{Text: Help()}
		}
		if r := in.propose(m, req.Now); r.Call == nil || offered(req.Tools, r.Call.Name) {
			return r
		}
		return Reply{Text: fmt.Sprintf("I understand (%s), but that tool is not permitted here.", in.name)}
	}
	if !offered(req.Tools, "memory-search") {
		return Reply{Text: "I do not understand that. Say `help` to see what I understand.\n" + NoModel}
	}
	return call("memory-search", "No rule matched the user's words, so I look them up in the memex.", "query", text)
}

func offered(tools []Tool, name string) bool {
	for _, t := range tools {
		if t.Name == name {
			return true
		}
	}
	return false
}

// Help lists one example of everything the reflex engine understands.
func Help() string {
	var b strings.Builder
	b.WriteString("I understand plain sentences such as:\n")
	for _, in := range intents {
		fmt.Fprintf(&b, "  %-9s %s\n", in.name, in.example)
	}
	b.WriteString(NoModel)
	return b.String()
}

func call(tool, why string, args ...any) Reply {
	m := map[string]any{"explanation": why}
	for i := 0; i+1 < len(args); i += 2 {
		if s, ok := args[i+1].(string); ok && s == "" {
			continue
		}
		m[args[i].(string)] = args[i+1]
	}
	return Reply{Call: &Call{Name: tool, Args: m}}
}

func runCommand(m []string, _ time.Time) Reply {
	return call("shell", "The user asked to run this very command.", "cmd", strings.TrimSpace(m[1]))
}

func markState(m []string, _ time.Time) Reply {
	state := "DONE"
	if strings.HasPrefix(strings.ToLower(m[2]), "cancel") {
		state = "CANCELLED"
	}
	return call("org-edit", "The user asked to change the state of this heading.", "heading", unquote(m[1]), "todo", state)
}

func captureTask(m []string, now time.Time) Reply {
	title, deadline := when(m[1], now)
	return call("capture", "The user asked to remember this task.", "title", title, "todo", "TODO", "deadline", deadline)
}

func captureNote(m []string, _ time.Time) Reply {
	return call("capture", "The user asked to keep this note.", "title", unquote(m[1]))
}

func span(name string) func([]string, time.Time) Reply {
	return func([]string, time.Time) Reply {
		return call("agenda", "The user asked what is "+name+", so I look at the agenda.", "span", name)
	}
}

func agenda(m []string, _ time.Time) Reply {
	name := "week"
	if len(m) > 1 && m[1] != "" {
		name = strings.ToLower(strings.TrimPrefix(strings.TrimPrefix(strings.ToLower(m[1]), "this "), "the "))
	}
	return call("agenda", "The user asked what is due, so I look at the agenda.", "span", name)
}

func listTodos(m []string, _ time.Time) Reply {
	tag := strings.Trim(strings.TrimSpace(m[1]), ":")
	if strings.ContainsAny(tag, " \t") {
		return call("org-find-headline", "The user asked for open tasks about this.", "todo", "open", "text", tag)
	}
	return call("org-find-headline", "The user asked for the open tasks, so I list them.", "todo", "open", "tag", tag)
}

func listDirectory(m []string, _ time.Time) Reply {
	dir := unquote(m[1])
	if dir == "" {
		dir = "."
	}
	return call("list-directory", "The user asked what is in this directory.", "path", dir)
}

func showNote(m []string, _ time.Time) Reply {
	return call("org-find-headline", "The user asked to see this note.", "text", topic(m[1]), "full", true)
}

func search(m []string, _ time.Time) Reply {
	return call("memory-search", "The user asked what the memex holds about this.", "query", topic(m[1]))
}

// present turns a tool's result into the reply.
func present(m Message, asked string) string {
	text := strings.TrimRight(m.Text, "\n")
	if !m.OK {
		return fmt.Sprintf("That did not work: %s", text)
	}
	if m.Tool == "memory-search" && !matchesAny(asked) {
		return text + "\n\nI did not recognise a request in that, so I searched your notes. " + NoModel
	}
	return text
}

func matchesAny(text string) bool {
	for _, in := range intents {
		if in.pattern.MatchString(strings.TrimSpace(text)) {
			return true
		}
	}
	return false
}

// topic is what a question is about: its closing mark is not part of it.
func topic(s string) string { return unquote(strings.TrimRight(s, " ?!.")) }

func unquote(s string) string { return strings.Trim(strings.TrimSpace(s), "`\"'“”‘’") }
