package agent_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"passepartout/internal/agent"
	"passepartout/internal/llm"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

var update = flag.Bool("update", false, "write the golden files")

func vocabulary(t testing.TB) *proto.Vocabulary {
	t.Helper()
	tool := func(name string, e proto.Effect, ps ...proto.Param) proto.Verb {
		return proto.Verb{Target: "tool", Name: name, Tool: name, Effect: e, Params: ps}
	}
	text := func(n sexp.Keyword) proto.Param { return proto.Param{Name: n, Type: proto.Text} }
	v, err := proto.NewVocabulary(
		tool("agenda", proto.ReadLocal, proto.Param{Name: "SPAN", Type: proto.Text, Required: true}, proto.Param{Name: "LIMIT", Type: proto.Number}, proto.Param{Name: "DEEP", Type: proto.Flag}, proto.Param{Name: "TAGS", Type: proto.Texts}),
		tool("capture", proto.WriteMemory, text("TITLE"), text("TODO")),
		proto.Verb{Target: "shell", Name: "run", Tool: "shell", Effect: proto.Execute, Params: []proto.Param{text("CMD")}},
		proto.Verb{Target: "cli", Name: "message", Effect: proto.Speak, Params: []proto.Param{text("TEXT")}},
	)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// understood is what a reply is taken for, on one line.
func understood(v *proto.Vocabulary, r llm.Reply) string {
	data, text, err := agent.ReadReply(r)
	if err != nil {
		return "refused: " + err.Error()
	}
	if data == nil {
		return "message: " + strings.Join(strings.Fields(text), " ")
	}
	a, err := v.Decode(data, proto.Cause{})
	if err != nil {
		return "refused: " + err.Error()
	}
	return fmt.Sprintf("action: %s %s %q", a.Name(), a.Args(), a.Why())
}

const why = "The person asked what is due."

// meant is what every one of the forms says.
var meant = fmt.Sprintf(`action: tool.agenda (:SPAN "week") %q`, why)

// A written form is one way to write that proposal, and its language.
type written struct {
	name, text string
	json       bool
}

var forms = []written{
	{"as the seeds write it", `(:TYPE :REQUEST :TARGET :TOOL :PAYLOAD (:TOOL "agenda" :ARGS (:SPAN "week") :EXPLANATION "` + why + `"))`, false},
	{"lower case", `(:type :request :target :tool :payload (:tool "agenda" :args (:span "week") :explanation "` + why + `"))`, false},
	{"no colons", `(type request target tool payload (tool "agenda" args (span "week") explanation "` + why + `"))`, false},
	{"mixed case", `(:Type :Request :Target "tool" :Payload (:Tool Agenda :Args (:Span "week") :Explanation "` + why + `"))`, false},
	{"over many lines", "(:TYPE :REQUEST\n :TARGET :TOOL\n :PAYLOAD (:TOOL \"agenda\"\n           :ARGS (:SPAN \"week\")\n           :EXPLANATION \"" + why + "\"))", false},
	{"without a type", `(:TARGET :TOOL :PAYLOAD (:TOOL :AGENDA :ARGS (:SPAN "week") :EXPLANATION "` + why + `"))`, false},
	{"only the call", `(:TOOL "agenda" :ARGS (:SPAN "week") :EXPLANATION "` + why + `")`, false},
	{"the explanation first", `(:EXPLANATION "` + why + `" :TOOL "agenda" :ARGS (:SPAN "week"))`, false},
	{"no target", `(:TYPE :REQUEST :PAYLOAD (:TOOL "agenda" :ARGS (:SPAN "week") :EXPLANATION "` + why + `"))`, false},
	{"quoted", `'(:TARGET :TOOL :PAYLOAD (:TOOL "agenda" :ARGS (:SPAN "week") :EXPLANATION "` + why + `"))`, false},
	{"with a comment", "(:TARGET :TOOL ; the tool\n :PAYLOAD (:TOOL \"agenda\" :ARGS (:SPAN \"week\") :EXPLANATION \"" + why + "\"))", false},
	{"JSON envelope", `{"type":"REQUEST","target":"tool","payload":{"tool":"agenda","args":{"span":"week"},"explanation":"` + why + `"}}`, true},
	{"JSON payload alone", `{"payload":{"tool":"agenda","args":{"span":"week"},"explanation":"` + why + `"}}`, true},
	{"JSON tool and args", `{"tool":"agenda","args":{"span":"week"},"explanation":"` + why + `"}`, true},
	{"JSON name and arguments", `{"name":"agenda","arguments":{"span":"week","explanation":"` + why + `"}}`, true},
	{"JSON name and parameters", `{"name": "agenda", "parameters": {"span": "week", "explanation": "` + why + `"}}`, true},
	{"JSON arguments in a string", `{"name":"agenda","arguments":"{\"span\":\"week\",\"explanation\":\"` + why + `\"}"}`, true},
	{"JSON as in a response", `{"tool_calls":[{"id":"call_1","type":"function","function":{"name":"agenda","arguments":"{\"span\":\"week\",\"explanation\":\"` + why + `\"}"}}]}`, true},
	{"JSON function", `{"type":"function","function":{"name":"agenda","arguments":{"span":"week","explanation":"` + why + `"}}}`, true},
	{"JSON list of one", `[{"name":"agenda","arguments":{"span":"week","explanation":"` + why + `"}}]`, true},
	{"JSON action and input", `{"action":"agenda","action_input":{"span":"week","explanation":"` + why + `"}}`, true},
	{"JSON with nulls", `{"name":"agenda","arguments":{"span":"week","limit":null,"explanation":"` + why + `"}}`, true},
	{"JSON over many lines", "{\n  \"tool\": \"agenda\",\n  \"args\": {\n    \"span\": \"week\"\n  },\n  \"explanation\": \"" + why + "\"\n}", true},
	{"JSON upper case", `{"TOOL":"agenda","ARGS":{"SPAN":"week"},"EXPLANATION":"` + why + `"}`, true},
}

func fence(lang, s string) string { return "```" + lang + "\n" + s + "\n```" }

func language(w written) string {
	if w.json {
		return "json"
	}
	return "lisp"
}

// harmless are ways to wrap a proposal that leave no doubt about it.
var harmless = map[string]func(w written) string{
	"bare":          func(w written) string { return w.text },
	"blank around":  func(w written) string { return "\n\n  " + w.text + "\n\n" },
	"a fence":       func(w written) string { return fence("", w.text) },
	"a named fence": func(w written) string { return fence(language(w), w.text) },
	"prose before":  func(w written) string { return "Sure! Let me check your agenda.\n\n" + w.text },
	"prose after":   func(w written) string { return w.text + "\n\nThis will list what is due." },
	"prose around":  func(w written) string { return "Okay.\n" + w.text + "\nLet me know if you need more." },
	"a fence in prose": func(w written) string {
		return "I will look it up:\n\n" + fence(language(w), w.text) + "\n\nOne moment."
	},
	"after a thought": func(w written) string {
		return "<think>\nThe user wants (:target :shell) no wait.\n</think>\n\n" + w.text
	},
	"half a thought":     func(w written) string { return "they want the agenda.\n</think>\n" + w.text },
	"a byte order mark":  func(w written) string { return "\ufeff" + w.text },
	"CR LF":              func(w written) string { return "Okay.\r\n\r\n" + strings.ReplaceAll(w.text, "\n", "\r\n") + "\r\n" },
	"a tool_call mark":   func(w written) string { return "<tool_call>\n" + w.text + "\n</tool_call>" },
	"a mark not closed":  func(w written) string { return "<tool_call>\n" + w.text },
	"a fence not closed": func(w written) string { return "```\n" + w.text },
}

// doubtful are ways to write it that must not act.
var doubtful = map[string]func(w written) llm.Reply{
	"twice":           func(w written) llm.Reply { return llm.Reply{Text: w.text + "\n" + w.text} },
	"twice in fences": func(w written) llm.Reply { return llm.Reply{Text: fence("", w.text) + "\nor\n" + fence("", w.text)} },
	"as an example":   func(w written) llm.Reply { return llm.Reply{Text: "For example, you could send:\n" + w.text} },
	"as syntax": func(w written) llm.Reply {
		return llm.Reply{Text: "The syntax for this is as follows.\n" + fence("", w.text)}
	},
	"in a sentence": func(w written) llm.Reply { return llm.Reply{Text: "I could send " + w.text + " but I will not."} },
	"in a quotation": func(w written) llm.Reply {
		return llm.Reply{Text: "The page says:\n> " + strings.ReplaceAll(w.text, "\n", "\n> ")}
	},
	"cut in the middle":  func(w written) llm.Reply { return llm.Reply{Text: w.text[:len(w.text)*2/3], Cut: true} },
	"broken in a string": func(w written) llm.Reply { return llm.Reply{Text: w.text[:strings.Index(w.text, "asked")]} },
	"only thought":       func(w written) llm.Reply { return llm.Reply{Text: "<think>\n" + w.text} },
	"approved": func(w written) llm.Reply {
		return llm.Reply{Text: strings.NewReplacer(`"week"`, `"week" :APPROVED T`, `"span":"week"`, `"span":"week","approved":true`, `"span": "week"`, `"span": "week", "approved": true`, `\"week\"`, `\"week\",\"approved\":true`, `"SPAN":"week"`, `"SPAN":"week","APPROVED":true`).Replace(w.text)}
	},
}

func TestAProposalIsUnderstoodHoweverItIsWrapped(t *testing.T) {
	v := vocabulary(t)
	for _, w := range forms {
		for name, wrap := range harmless {
			text := wrap(w)
			if got := understood(v, llm.Reply{Text: text}); got != meant {
				t.Errorf("%s, %s:\n%s\ntaken for %s", w.name, name, text, got)
			}
		}
	}
}

func TestADoubtfulProposalNeverActs(t *testing.T) {
	v := vocabulary(t)
	for _, w := range forms {
		for name, spoil := range doubtful {
			r := spoil(w)
			if got := understood(v, r); strings.HasPrefix(got, "action:") {
				t.Errorf("%s, %s:\n%s\ntaken for %s", w.name, name, r.Text, got)
			}
		}
	}
}

func TestMissingParenthesesAreAddedOnlyWhenTheModelEndedByItself(t *testing.T) {
	v := vocabulary(t)
	for _, w := range forms {
		short := strings.TrimRight(w.text, ")")
		if w.json || short == w.text {
			continue
		}
		if got := understood(v, llm.Reply{Text: short}); got != meant {
			t.Errorf("%s without its end: %s", w.name, got)
		}
		if got := understood(v, llm.Reply{Text: short, Cut: true}); !strings.HasPrefix(got, "refused:") {
			t.Errorf("%s cut off: %s", w.name, got)
		}
		if got := understood(v, llm.Reply{Text: w.text + "))"}); got != meant {
			t.Errorf("%s with too many: %s", w.name, got)
		}
	}
	for _, open := range []string{
		`(:TOOL "agenda" :EXPLANATION "why not then" :ARGS (:SPAN "week" :LIMIT 1`, // may have been 10
		`(:TOOL "agenda" :EXPLANATION "why not then" :ARGS (:SPAN "week" :DEEP T`,
		`(:TOOL "agenda" :EXPLANATION "why not then" :ARGS (:SPAN "we`,
		`(:TOOL "agenda" :EXPLANATION "why not then" :ARGS (:SPAN`,
	} {
		if got := understood(v, llm.Reply{Text: open}); strings.HasPrefix(got, "action:") {
			t.Errorf("%s was completed to %s", open, got)
		}
	}
}

// TestCorpus compares what is understood of outputs as models really write them
// with golden files that were read by a person. An output that begins with #not must
// never act, whatever the golden file says; one that begins with #cut was cut off.
func TestCorpus(t *testing.T) {
	n := corpus(t, "corpus") + corpus(t, "corpus-models")
	t.Logf("%d outputs written down, and %d made from %d forms", n, len(forms)*(len(harmless)+len(doubtful))+3*11, len(forms))
	if n < 300 {
		t.Errorf("only %d outputs", n)
	}
}

func corpus(t *testing.T, name string) (n int) {
	t.Helper()
	v := vocabulary(t)
	raw, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, entry := range strings.Split(string(raw), "\n====\n") {
		n++
		text := strings.TrimSuffix(entry, "\n")
		text, never := strings.CutPrefix(text, "#not\n")
		text, cut := strings.CutPrefix(text, "#cut\n")
		taken := understood(v, llm.Reply{Text: text, Cut: cut})
		if never && strings.HasPrefix(taken, "action:") {
			t.Errorf("%s %03d acts: %s", name, n, taken)
		}
		fmt.Fprintf(&got, "%03d %s\n", n, taken)
	}
	golden := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	wants, gots := strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")
	for i := range max(len(wants), len(gots)) {
		var w, g string
		if i < len(wants) {
			w = wants[i]
		}
		if i < len(gots) {
			g = gots[i]
		}
		if w != g {
			t.Errorf("%s: want %s\n got %s", name, w, g)
		}
	}
	return n
}

func FuzzParse(f *testing.F) {
	for _, w := range forms {
		f.Add(w.text, false)
		f.Add(harmless["a fence in prose"](w), true)
	}
	f.Add("(:TARGET :SHELL :PAYLOAD (:CMD \"ls\" :EXPLANATION \"look around\"))", false)
	v := vocabulary(f)
	f.Fuzz(func(t *testing.T, text string, cut bool) {
		r := llm.Reply{Text: text, Cut: cut}
		data, _, err := agent.ReadReply(r)
		if err != nil || data == nil {
			return
		}
		a, err := v.Decode(data, proto.Cause{})
		if err != nil {
			return
		}
		// Whatever is understood stands in the text: nothing is made up.
		folded := strings.ToLower(text)
		if !strings.Contains(folded, a.Verb()) && !strings.Contains(folded, a.Spec().Tool) && !strings.Contains(folded, a.Target()) {
			t.Fatalf("%q was taken for %s", text, a.Name())
		}
	})
}

func TestAKeyGivenTwiceIsNotChosenFrom(t *testing.T) {
	v := vocabulary(t)
	for _, src := range []string{
		`{"tool":"capture","args":{"title":"a","Title":"b"},"explanation":"because it was asked for"}`,
		`{"tool":"capture","Tool":"agenda","args":{"title":"a"},"explanation":"because it was asked for"}`,
		`{"payload":{"tool":"capture","args":{"title":"a","TITLE":"b"},"explanation":"because it was asked for"}}`,
		`(:TOOL "capture" :ARGS (:TITLE "a" :title "b") :EXPLANATION "because it was asked for")`,
	} {
		for range 20 { // the order of keys differs from time to time
			if got := understood(v, llm.Reply{Text: src}); !strings.HasPrefix(got, "refused: ") {
				t.Errorf("%s is understood as %s", src, got)
				break
			}
		}
	}
	args := map[string]any{"title": "a", "TITLE": "b", "explanation": "because it was asked for"}
	if got := understood(v, llm.Reply{Call: &llm.Call{Name: "capture", Args: args}}); !strings.HasPrefix(got, "refused: ") {
		t.Errorf("a call is understood as %s", got)
	}
}
