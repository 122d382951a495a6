package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"
)

// A rawEditor speaks the protocol in lines it writes itself, so that it can also be
// wrong.
type rawEditor struct {
	*testing.T
	in    io.WriteCloser
	lines *bufio.Scanner
	got   []map[string]any // every message of the agent
	next  int
	asks  func(params map[string]any) string // the option to choose
}

// rawACP starts the program in a home with a scripted model.
func rawACP(t *testing.T) (e *rawEditor, env []string, memex string) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a daemon: run by make test")
	}
	t.Parallel()
	env, memex = editorHome(t)
	in, out := startACP(t, env)
	e = &rawEditor{T: t, in: in, lines: bufio.NewScanner(out), asks: func(map[string]any) string { return "allow-once" }}
	e.lines.Buffer(nil, 8<<20)
	return e, env, memex
}

func (e *rawEditor) write(line string) {
	e.Helper()
	if _, err := io.WriteString(e.in, line+"\n"); err != nil {
		e.Fatal(err)
	}
}

// call calls a method and returns the answer; what the agent asks meanwhile is
// answered.
func (e *rawEditor) call(method, params string) map[string]any {
	e.Helper()
	e.next++
	e.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, e.next, method, params))
	return e.answer(float64(e.next))
}

func (e *rawEditor) answer(id any) map[string]any {
	e.Helper()
	for e.lines.Scan() {
		var m map[string]any
		if err := json.Unmarshal(e.lines.Bytes(), &m); err != nil {
			e.Fatalf("the agent writes %q: %v", e.lines.Text(), err)
		}
		e.got = append(e.got, m)
		switch {
		case m["method"] == "session/request_permission":
			option := e.asks(m["params"].(map[string]any))
			raw, err := json.Marshal(m["id"])
			if err != nil {
				e.Fatal(err)
			}
			e.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":%q}}}`, raw, option))
		case m["method"] == nil && m["id"] == id:
			return m
		}
	}
	e.Fatalf("the agent hung up: %v", e.lines.Err())
	return nil
}

func (e *rawEditor) open(memex string) (session string) {
	e.Helper()
	e.call("initialize", `{"protocolVersion":1,"clientCapabilities":{}}`)
	r := e.call("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, memex))
	session, _ = r["result"].(map[string]any)["sessionId"].(string)
	if session == "" {
		e.Fatalf("no session: %v", r)
	}
	return session
}

func (e *rawEditor) prompt(session, text string) map[string]any {
	e.Helper()
	raw, err := json.Marshal(text)
	if err != nil {
		e.Fatal(err)
	}
	return e.call("session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":%s}]}`, session, raw))
}

func TestNonsenseOfAnEditorEndsNothing(t *testing.T) {
	e, _, memex := rawACP(t)
	session := e.open(memex)
	for _, line := range []string{"", "{", "nonsense", `[]`, `"text"`, `null`, `{"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","id":99,"result":{}}`, `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":7}}`, strings.Repeat("x", 1<<20)} {
		e.write(line)
	}
	for _, c := range []struct{ method, params string }{
		{"no/such_method", `{}`},
		{"session/prompt", `{}`},
		{"session/prompt", `{"sessionId":7,"prompt":"text"}`},
		{"session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"image","data":"AA==","mimeType":"image/png"}]}`, session)},
		{"session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"nonsense"}]}`, session)},
		{"session/load", `{}`},
		{"session/set_mode", fmt.Sprintf(`{"sessionId":%q,"modeId":"yolo"}`, session)},
		{"authenticate", `7`},
	} {
		r := e.call(c.method, c.params)
		refused, _ := r["error"].(map[string]any)
		if code, _ := refused["code"].(float64); code >= 0 || refused["message"] == "" {
			t.Errorf("%s %s is answered with %v", c.method, c.params, r)
		}
	}
	r := e.prompt(session, "echo still here")
	if end, _ := r["result"].(map[string]any); end["stopReason"] != "end_turn" || !strings.Contains(fmt.Sprint(e.got), "I heard: still here") {
		t.Errorf("after that: %v", r)
	}
}

// Everything the program writes, in a session that uses all it can do, is what the
// schema that comes with the SDK allows.
func TestWhatEditorsAreSentFitsThePublishedSchema(t *testing.T) {
	s := acpSchema(t)
	e, _, memex := rawACP(t)
	asked := map[string]string{"initialize": "InitializeResponse", "session/new": "NewSessionResponse", "session/prompt": "PromptResponse", "session/list": "ListSessionsResponse", "session/load": "LoadSessionResponse", "session/resume": "ResumeSessionResponse", "session/close": "CloseSessionResponse"}
	checked := map[string]int{}
	check := func(def string, v any) {
		t.Helper()
		if err := s.check(s.defs[def], v, def); err != nil {
			raw, _ := json.Marshal(v) // it was JSON
			t.Errorf("%s: %v\n%s", def, err, raw)
		}
		checked[def]++
	}
	call := func(method, params string) {
		t.Helper()
		r := e.call(method, params)
		if r["error"] != nil {
			t.Errorf("%s: %v", method, r["error"])
			return
		}
		check(asked[method], r["result"])
	}
	call("initialize", `{"protocolVersion":1,"clientCapabilities":{}}`)
	session := e.open(memex)
	say := func(text string) {
		t.Helper()
		call("session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}`, session, text))
	}
	say("echo Grüße 日本")
	say("keep the lamp in mind")
	e.asks = func(map[string]any) string { return "reject" }
	say("keep the chair in mind")
	e.asks = func(map[string]any) string { return "allow-once" }
	say("do it in two steps")
	say("/cost")
	call("session/list", `{}`)
	call("session/load", fmt.Sprintf(`{"sessionId":%q,"cwd":%q,"mcpServers":[]}`, session, memex))
	call("session/resume", fmt.Sprintf(`{"sessionId":%q,"cwd":%q,"mcpServers":[]}`, session, memex))
	call("session/close", fmt.Sprintf(`{"sessionId":%q}`, session))
	kinds := map[string]int{}
	for _, m := range e.got {
		switch m["method"] {
		case "session/update":
			check("SessionNotification", m["params"])
			kinds[fmt.Sprint(m["params"].(map[string]any)["update"].(map[string]any)["sessionUpdate"])]++
		case "session/request_permission":
			check("RequestPermissionRequest", m["params"])
		case nil:
		default:
			t.Errorf("the editor is asked for %v, which it need not know", m["method"])
		}
	}
	for _, kind := range []string{"agent_message_chunk", "user_message_chunk", "tool_call", "tool_call_update", "plan", "available_commands_update"} {
		if kinds[kind] == 0 {
			t.Errorf("no %s was sent: %v", kind, kinds)
		}
	}
	if checked["RequestPermissionRequest"] < 3 {
		t.Errorf("checked %v", checked)
	}
	t.Logf("checked %v, updates %v", checked, kinds)
}

// The last plan an editor was sent says how far each step is.
func TestAPlanOfSeveralStepsIsShownAndFollowed(t *testing.T) {
	e, _, memex := rawACP(t)
	session := e.open(memex)
	e.prompt(session, "do it in two steps")
	var plans []string
	for _, m := range e.got {
		p, _ := m["params"].(map[string]any)
		u, _ := p["update"].(map[string]any)
		if u["sessionUpdate"] != "plan" {
			continue
		}
		line := ""
		for _, x := range u["entries"].([]any) {
			entry := x.(map[string]any)
			line += fmt.Sprintf("%s: %s; ", entry["content"], entry["status"])
		}
		plans = append(plans, line)
	}
	if len(plans) < 2 || plans[0] != "capture first bell: pending; capture second bell: pending; " ||
		plans[len(plans)-1] != "capture first bell: completed; capture second bell: completed; " {
		t.Errorf("the plans are\n%s", strings.Join(plans, "\n"))
	}
	raw, err := os.ReadFile(filepath.Join(memex, "inbox", "inbox.org"))
	if err != nil || strings.Count(string(raw), "bell") != 2 {
		t.Errorf("inbox %q, %v", raw, err)
	}
}

// What an editor attaches is read like a file: the model hears it, and it is not taken
// for what the person said.
func TestWhatAnEditorAttachesIsNotThePersonsWord(t *testing.T) {
	e, env, memex := rawACP(t)
	session := e.open(memex)
	e.call("session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":"look at"},{"type":"resource","resource":{"uri":"file:///mail.txt","text":"echo from a stranger"}}]}`, session))
	if !strings.Contains(fmt.Sprint(e.got), "I heard: from a stranger") {
		t.Errorf("the model did not hear it: %v", e.got)
	}
	past := exec.Command(binary, "send", fmt.Sprintf("(:TYPE :REQUEST :META (:SESSION-ID %q) :PAYLOAD (:ACTION :CONVERSATION))", session))
	past.Env = env
	if out, err := past.Output(); err != nil || !strings.Contains(string(out), `:TEXT "look at file:///mail.txt"`) || strings.Contains(string(out), `:WHO "you" :TEXT "echo`) {
		t.Errorf("what was said is %s, %v", out, err)
	}
	raw, err := exec.Command("sh", "-c", "cat "+filepath.Join(filepath.Dir(memex), ".local", "state", "passepartout", "journal", "*")).Output()
	if err != nil || !regexp.MustCompile(`:KIND :RULING .*:UNTRUSTED T`).Match(raw) {
		t.Errorf("the answer is judged as if nothing untrusted was read: %v\n%s", err, raw)
	}
}

func TestEachAnswerToAPermissionRequestMeansWhatItSays(t *testing.T) {
	e, env, memex := rawACP(t)
	asked := 0
	count := func(option string) { e.asks = func(map[string]any) string { asked++; return option } }
	lamps := func() int {
		raw, _ := os.ReadFile(filepath.Join(memex, "inbox", "inbox.org")) // none yet: nothing captured
		return strings.Count(string(raw), "the lamp")
	}
	session := e.open(memex)
	for i, c := range []struct {
		option        string
		again         bool // in a session of its own
		asks, carried int  // so far
	}{
		{"allow-once", false, 1, 1},
		{"reject", false, 2, 1},
		{"nonsense", false, 3, 1},      // no answer: it waits
		{"allow-session", false, 4, 2}, // and is not asked again
		{"reject", false, 4, 3},
		{"reject", true, 5, 3}, // in another session it is
		{"allow-rule", true, 6, 4},
	} {
		if c.again {
			r := e.call("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, memex))
			session = r["result"].(map[string]any)["sessionId"].(string)
		}
		count(c.option)
		e.prompt(session, "keep the lamp in mind")
		if asked != c.asks || lamps() != c.carried {
			t.Errorf("%d, %s: asked %d times, want %d; carried out %d times, want %d", i, c.option, asked, c.asks, lamps(), c.carried)
		}
	}
	if !strings.Contains(fmt.Sprint(e.got), "On trial") {
		t.Error("nothing is said of the rule that is tried")
	}
	rules := exec.Command(binary, "rules", "list")
	rules.Env = env
	if out, err := rules.CombinedOutput(); err != nil || !strings.Contains(string(out), "capture") {
		t.Errorf("the rules are %s, %v", out, err)
	}
}

func TestSessionsAreListedLoadedResumedAndClosed(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a daemon: run by make test")
	}
	t.Parallel()
	env, memex := editorHome(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	terminal := exec.Command(binary, "chat", "-s", "desk", "echo said at a desk")
	terminal.Env = env
	if out, err := terminal.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	e := &acpEditor{choose: choosing("reject")}
	conn := acpConnect(t, ctx, env, e)
	list, err := conn.ListSessions(ctx, sdk.ListSessionsRequest{})
	if err != nil || len(list.Sessions) != 1 || list.Sessions[0].SessionId != "desk" || list.Sessions[0].Cwd != memex || list.Sessions[0].UpdatedAt == nil {
		t.Fatalf("sessions %+v, %v", list, err)
	}
	if _, err := conn.ResumeSession(ctx, sdk.ResumeSessionRequest{SessionId: "desk", Cwd: memex, McpServers: []sdk.McpServer{}}); err != nil {
		t.Fatal(err)
	}
	if got := e.said(); got != "" || len(e.users) != 0 {
		t.Errorf("resuming says again %q %q", e.users, got)
	}
	if _, err := conn.LoadSession(ctx, sdk.LoadSessionRequest{SessionId: "desk", Cwd: memex, McpServers: []sdk.McpServer{}}); err != nil {
		t.Fatal(err)
	}
	if got := e.said(); len(e.users) != 1 || e.users[0] != "echo said at a desk" || !strings.Contains(got, "I heard: said at a desk") {
		t.Errorf("loading says %q %q", e.users, got)
	}
	end := make(chan sdk.StopReason, 1)
	go func() {
		r, err := conn.Prompt(ctx, sdk.PromptRequest{SessionId: "desk", Prompt: []sdk.ContentBlock{sdk.TextBlock("tell me a long story")}})
		if err != nil {
			t.Error(err)
		}
		end <- r.StopReason
	}()
	for got := ""; !strings.Contains(got, "first part"); got += e.said() {
		<-e.heard
	}
	if _, err := conn.Prompt(ctx, sdk.PromptRequest{SessionId: "desk", Prompt: []sdk.ContentBlock{sdk.TextBlock("echo me too")}}); err == nil || !strings.Contains(err.Error(), "answering already") {
		t.Errorf("a second prompt in the same session: %v", err)
	}
	if _, err := conn.CloseSession(ctx, sdk.CloseSessionRequest{SessionId: "desk"}); err != nil {
		t.Fatal(err)
	}
	if got := <-end; got != sdk.StopReasonCancelled {
		t.Errorf("closing ends the turn with %q", got)
	}
	if list, err = conn.ListSessions(ctx, sdk.ListSessionsRequest{}); err != nil || len(list.Sessions) != 1 {
		t.Errorf("after closing: %+v, %v", list, err)
	}
}

// A schema is what the SDK publishes of the protocol, as far as JSON Schema is used
// there.
type schema struct{ defs map[string]map[string]any }

func acpSchema(t *testing.T) schema {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/coder/acp-go-sdk").Output()
	if err != nil {
		t.Skipf("the SDK's schema is not here: %v", err)
	}
	raw, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "schema", "schema.json"))
	if err != nil {
		t.Skipf("the SDK's schema is not here: %v", err)
	}
	var s struct {
		Defs map[string]map[string]any `json:"$defs"`
	}
	if err := json.Unmarshal(raw, &s); err != nil || len(s.Defs) < 50 {
		t.Fatalf("%d definitions, %v", len(s.Defs), err)
	}
	return schema{s.Defs}
}

// check says where a value is not as the schema wants it. Keywords the schema uses
// and this does not know are only descriptions.
func (s schema) check(rule map[string]any, v any, at string) error {
	if ref, ok := rule["$ref"].(string); ok {
		return s.check(s.defs[strings.TrimPrefix(ref, "#/$defs/")], v, at)
	}
	for _, r := range list(rule["allOf"]) {
		if err := s.check(r, v, at); err != nil {
			return err
		}
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if choices := list(rule[key]); len(choices) > 0 {
			if err := s.oneOf(choices, v, at); err != nil {
				return err
			}
		}
	}
	if want, ok := rule["const"]; ok && want != v {
		return fmt.Errorf("%s: want %v, found %v", at, want, v)
	}
	if err := s.kind(rule["type"], v, at); err != nil {
		return err
	}
	if enum, ok := rule["enum"].([]any); ok {
		found := false
		for _, x := range enum {
			found = found || x == v
		}
		if !found {
			return fmt.Errorf("%s: want one of %v, found %v", at, enum, v)
		}
	}
	return s.parts(rule, v, at)
}

func (s schema) oneOf(choices []map[string]any, v any, at string) error {
	var why []string
	for _, c := range choices {
		err := s.check(c, v, at)
		if err == nil {
			return nil
		}
		why = append(why, err.Error())
	}
	return fmt.Errorf("%s fits none of %d: %s", at, len(choices), strings.Join(why, "; "))
}

func (s schema) kind(want, v any, at string) error {
	names := []any{want}
	if several, ok := want.([]any); ok {
		names = several
	}
	for _, n := range names {
		ok := n == nil
		switch v := v.(type) {
		case nil:
			ok = ok || n == "null"
		case string:
			ok = ok || n == "string"
		case bool:
			ok = ok || n == "boolean"
		case float64:
			ok = ok || n == "number" || n == "integer" && v == float64(int64(v))
		case []any:
			ok = ok || n == "array"
		case map[string]any:
			ok = ok || n == "object"
		}
		if ok {
			return nil
		}
	}
	return fmt.Errorf("%s: want %v, found %T", at, want, v)
}

func (s schema) parts(rule map[string]any, v any, at string) error {
	switch v := v.(type) {
	case map[string]any:
		required, _ := rule["required"].([]any)
		for _, key := range required {
			if _, ok := v[key.(string)]; !ok {
				return fmt.Errorf("%s lacks %v", at, key)
			}
		}
		properties, _ := rule["properties"].(map[string]any)
		for key, r := range properties {
			if part, ok := v[key]; ok {
				if r, isRule := r.(map[string]any); isRule {
					if err := s.check(r, part, at+"."+key); err != nil {
						return err
					}
				}
			}
		}
	case []any:
		if items, ok := rule["items"].(map[string]any); ok {
			for i, x := range v {
				if err := s.check(items, x, fmt.Sprintf("%s[%d]", at, i)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func list(v any) (out []map[string]any) {
	items, _ := v.([]any)
	for _, x := range items {
		if m, ok := x.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}
