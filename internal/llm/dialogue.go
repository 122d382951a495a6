package llm

import (
	"fmt"
	"strings"
)

// A part is one piece of a turn as models are shown it: text, a call, or what came
// of a call.
type part struct {
	text   string
	call   *Call
	id     string // binds a result to its call
	tool   string // of a result
	result bool
	ok     bool
}

// A speech is what one side said before the other.
type speech struct {
	assistant bool
	parts     []part
}

// dialogue is the conversation in the form all providers agree on: the two sides
// take turns, the person begins, every call is followed by its result. A result
// whose call is no longer part of the conversation is shown as text. The request's
// tail comes last.
func dialogue(req Request) []speech {
	var out []speech
	add := func(assistant bool, p part) {
		if n := len(out); n > 0 && out[n-1].assistant == assistant {
			out[n-1].parts = append(out[n-1].parts, p)
			return
		}
		if len(out) == 0 && assistant {
			out = append(out, speech{parts: []part{{text: "(The conversation began earlier.)"}}})
		}
		out = append(out, speech{assistant: assistant, parts: []part{p}})
	}
	open, calls := "", 0
	for i, m := range req.Messages {
		answered := open
		open = ""
		switch m.Role {
		case User:
			if m.Text == "" {
				add(false, part{text: empty})
				continue
			}
			add(false, part{text: m.Text})
		case Assistant:
			if m.Text != "" {
				add(true, part{text: m.Text})
			}
			if m.Call == nil {
				continue
			}
			if !answers(req.Messages, i+1) {
				add(true, part{text: fmt.Sprintf("(I proposed to use %s.)", m.Call.Name)})
				continue
			}
			calls++
			open = fmt.Sprintf("call_%d", calls)
			add(true, part{call: m.Call, id: open})
		case ToolResult:
			text := enclose("tool-result", m.Tool, m.Text)
			if answered == "" {
				add(false, part{text: text})
				continue
			}
			add(false, part{result: true, id: answered, tool: m.Tool, text: text, ok: m.OK})
		case Objection:
			text := "The gates refused the last step.\n" + m.Text
			if answered == "" {
				add(false, part{text: text})
				continue
			}
			add(false, part{result: true, id: answered, tool: callName(req.Messages, i-1), text: text})
		case RoleInvalid:
		}
	}
	if len(out) == 0 {
		add(false, part{text: empty})
	}
	if req.Tail != "" {
		add(false, part{text: req.Tail})
	}
	return out
}

// empty stands for a message without text, which providers refuse.
const empty = "(an empty message)"

func answers(ms []Message, i int) bool {
	return i < len(ms) && (ms[i].Role == ToolResult || ms[i].Role == Objection)
}

func callName(ms []Message, i int) string {
	if i >= 0 && ms[i].Call != nil {
		return ms[i].Call.Name
	}
	return ""
}

// attachedStart is where what is attached to a message begins.
const attachedStart = "\n\n<attached "

// Attach is a message together with text that goes with it, which is like that of any
// file: not the person's words, and not to be trusted.
func Attach(text, attached string) string {
	if attached == "" {
		return text
	}
	return text + "\n\n" + enclose("attached", "", attached)
}

// words are what the person said in a message, without what is attached.
func words(text string) string {
	text, _, _ = strings.Cut(text, attachedStart)
	return text
}

// enclose marks text that somebody else wrote. Text that tries to end its own mark
// has that end broken.
func enclose(tag, name, text string) string {
	text = strings.ReplaceAll(text, "</"+tag, "<\\/"+tag)
	if name != "" {
		name = fmt.Sprintf(" name=%q", name)
	}
	return fmt.Sprintf("<%s%s trust=\"untrusted\">\n%s\n</%s>", tag, name, text, tag)
}

// joined is the text of a speech's text parts.
func (s speech) joined() string {
	var texts []string
	for _, p := range s.parts {
		if !p.result && p.call == nil {
			texts = append(texts, p.text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// explanation is the argument every call must carry.
var explanation = Param{Name: "explanation", Type: "string", Required: true, Doc: "One sentence: why this step serves what the person asked for."}

// schema describes a tool's arguments. Gemini wants type names in upper case and
// knows no additionalProperties.
func schema(t Tool, gemini bool) map[string]any {
	word := func(s string) string {
		if gemini {
			return strings.ToUpper(s)
		}
		return s
	}
	props := map[string]any{}
	required := []string{}
	for _, p := range append(append([]Param(nil), t.Params...), explanation) {
		prop := map[string]any{"type": word(p.Type)}
		if p.Doc != "" {
			prop["description"] = p.Doc
		}
		switch p.Type {
		case "array":
			prop["items"] = map[string]any{"type": word("string")}
		case "steps": // calls of other tools, in the words of this one
			prop["type"] = word("array")
			prop["items"] = map[string]any{
				"type": word("object"), "required": []string{"tool", "args"},
				"properties": map[string]any{
					"tool": map[string]any{"type": word("string")}, "args": map[string]any{"type": word("object")},
					"explanation": map[string]any{"type": word("string")},
				},
			}
		}
		props[p.Name] = prop
		if p.Required {
			required = append(required, p.Name)
		}
	}
	s := map[string]any{"type": word("object"), "properties": props, "required": required}
	if !gemini {
		s["additionalProperties"] = false
	}
	return s
}

// inWords describes the tools to a model that knows no native calls.
func inWords(tools []Tool) string {
	if len(tools) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n\nTo use a tool, answer with one property list and nothing else:\n" +
		"(:TARGET :TOOL :PAYLOAD (:TOOL \"name\" :ARGS (:KEY \"value\") :EXPLANATION \"why\"))\nTools:")
	for _, t := range tools {
		fmt.Fprintf(&b, "\n%s: %s", t.Name, t.Doc)
		for _, p := range t.Params {
			need := ""
			if p.Required {
				need = ", required"
			}
			fmt.Fprintf(&b, "\n  :%s (%s%s) %s", strings.ToUpper(p.Name), p.Type, need, p.Doc)
		}
	}
	return b.String()
}

// replyTokens is how long an answer may be when nobody says otherwise.
const replyTokens = 4096

func (r Request) replyLimit() int {
	if r.MaxReply > 0 {
		return r.MaxReply
	}
	return replyTokens
}
