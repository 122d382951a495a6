package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"passepartout/internal/sandbox"
)

// A person is one user of the real binary: a home, a memex, a daemon of their own
// and a model that says what a script tells it to.
type person struct {
	t     *testing.T
	home  string
	memex string
	env   []string
}

// newPerson starts the scripted model; the daemon starts with the first command.
func newPerson(t *testing.T, script ...string) *person {
	t.Helper()
	var said atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/models", func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(rw, `{"object":"list","data":[{"id":"tiny.gguf","meta":{"n_ctx_train":32768}}]}`)
	})
	mux.HandleFunc("/v1/chat/completions", func(rw http.ResponseWriter, _ *http.Request) {
		n := int(said.Add(1)) - 1
		if n >= len(script) {
			http.Error(rw, "the script has ended", http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(rw, "data: {\"choices\":[{\"delta\":%s,\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", script[n])
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	run, err := os.MkdirTemp("", "pp") // short: socket paths are limited
	if err != nil {
		t.Fatal(err)
	}
	p := &person{t: t, home: home, memex: filepath.Join(home, "memex")}
	p.env = []string{
		"HOME=" + home, "PATH=" + os.Getenv("PATH"), "XDG_RUNTIME_DIR=" + run, "MEMEX_DIR=" + p.memex,
		"LOCAL_URL=" + server.URL + "/v1", "OLLAMA_URL=http://127.0.0.1:1", "PROVIDER_CASCADE=local",
	}
	t.Cleanup(func() {
		stopDaemon(filepath.Join(home, ".local", "state", "passepartout", "daemon.lock"))
		os.RemoveAll(run)
	})
	return p
}

// write puts a file into the memex.
func (p *person) write(name, text string) {
	p.t.Helper()
	path := filepath.Join(p.memex, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		p.t.Fatal(err)
	}
}

// types runs a command and wants its exit code.
func (p *person) types(code int, args ...string) (stdout, stderr string) {
	p.t.Helper()
	c := exec.Command(binary, args...)
	c.Env = p.env
	var out, talk strings.Builder
	c.Stdout, c.Stderr = &out, &talk
	err := c.Run()
	got := c.ProcessState.ExitCode()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) || got != code {
		p.t.Fatalf("%q: exit code %d, want %d (%v)\n%s%s", args, got, code, err, out.String(), talk.String())
	}
	return out.String(), talk.String()
}

// tree is a part of the memex: names, modes, bytes, link targets.
func (p *person) tree(sub string) string {
	p.t.Helper()
	var b strings.Builder
	root := filepath.Join(p.memex, sub)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %v", strings.TrimPrefix(path, root), st.Mode())
		var text string
		switch {
		case st.Mode().IsRegular():
			var raw []byte
			raw, err = os.ReadFile(path)
			text = string(raw)
		case st.Mode()&fs.ModeSymlink != 0:
			text, err = os.Readlink(path)
		}
		fmt.Fprintf(&b, " %q\n", text)
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return b.String()
}

// calls is what a model sends to use a tool.
func calls(tool string, args map[string]any) string {
	inner, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":%q,"arguments":%s}}]}`, tool, quoted(string(inner)))
}

// says is what a model sends to end a turn.
func says(text string) string { return fmt.Sprintf(`{"content":%s}`, quoted(text)) }

func quoted(s string) string {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// sandboxed skips where commands cannot run.
func sandboxed(t *testing.T) {
	t.Helper()
	if st := sandbox.Probe(t.Context()); st.Level == sandbox.None {
		t.Skip("no sandbox here: ", st.Missing())
	}
}

// TestEachStepOfATaskIsExplainedAndTakenBackByTheCommand is a whole piece of work
// by the real program: search, read, edit, a command that moves and overwrites, tests,
// answer. `why` explains every step; `undo` takes each one back, byte for byte.
func TestEachStepOfATaskIsExplainedAndTakenBackByTheCommand(t *testing.T) {
	sandboxed(t)
	tests := map[string]any{"cmd": "sh project/test.sh", "explanation": "To see whether it works now."}
	p := newPerson(t,
		calls("search-files", map[string]any{"path": "project", "pattern": "minus", "explanation": "To find where it is defined."}),
		calls("read-file", map[string]any{"filepath": "project/calc.sh", "explanation": "To see what is wrong with it."}),
		calls("replace-in-file", map[string]any{"filepath": "project/calc.sh", "old": "$1 + $2", "new": "$1 - $2", "explanation": "It adds instead of subtracting."}),
		calls("shell", map[string]any{"cmd": "cd project && mv old young && cp test.sh stale && ln -s calc.sh link && echo '# mended' >> calc.sh", "explanation": "To tidy up around it."}),
		calls("run-tests", tests),
		says("minus added its arguments. Now it subtracts them, and the test passes."),
	)
	p.write("project/calc.sh", "minus() { echo $(($1 + $2)); }\n")
	p.write("project/test.sh", ". project/calc.sh\necho running >> project/log\ntest \"$(minus 5 3)\" = 2 && echo 'ok 1 - minus' || { echo 'not ok 1 - minus'; exit 1; }\n")
	p.write("project/log", "")
	p.write("project/stale", "bytes \x00\xff without a newline")
	p.write("project/old/deep/note", "kept\n")
	before := p.tree("project")

	out, _ := p.types(0, "--json", "chat", "sh project/test.sh fails, please mend project/calc.sh")
	var answer struct {
		Status, Text, Turn string
		Actions            []struct{ ID, Action, Decision string }
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		t.Fatal(err)
	}
	var steps []string
	for _, a := range answer.Actions {
		steps = append(steps, a.Action+" "+a.Decision)
	}
	want := []string{"tool.search-files allow", "tool.read-file allow", "tool.replace-in-file allow", "shell.run allow", "tests.run allow", "cli.message allow"}
	if answer.Status != "done" || !strings.Contains(answer.Text, "the test passes") || strings.Join(steps, ", ") != strings.Join(want, ", ") {
		t.Fatalf("answered %s %q by %v", answer.Status, answer.Text, steps)
	}
	done := p.tree("project")
	if done == before || !strings.Contains(done, "$1 - $2") || strings.Contains(done, "/old") {
		t.Fatalf("after the work:\n%s", done)
	}

	for i, a := range answer.Actions {
		text, _ := p.types(0, "why", a.ID)
		for _, part := range []string{a.ID + "  " + a.Action, "because", "proposed by", "decision: ALLOW", "permissions", "outcome: done"} {
			if !strings.Contains(text, part) {
				t.Errorf("why of step %d lacks %q:\n%s", i, part, text)
			}
		}
	}
	for _, a := range answer.Actions[:2] { // looking changed nothing
		if text, _ := p.types(1, "undo", a.ID); !strings.Contains(text, "nothing to be undone") {
			t.Errorf("undo of %s: %s", a.Action, text)
		}
	}
	edit, tidy, run := answer.Actions[2].ID, answer.Actions[3].ID, answer.Actions[4].ID
	p.types(1, "undo", edit) // the command wrote behind it: left alone
	if p.tree("project") != done {
		t.Fatalf("a refused undo changed\n%s", p.tree("project"))
	}
	for _, s := range []struct{ id, gone, back string }{
		{run, `"running\n"`, `/log -rw-r--r-- ""`},
		{tidy, `/young`, `/stale -rw-r--r-- "bytes \x00\xff without a newline"`},
		{edit, `$1 - $2`, `$1 + $2`},
	} {
		p.types(0, "undo", s.id)
		if now := p.tree("project"); strings.Contains(now, s.gone) || !strings.Contains(now, s.back) {
			t.Errorf("after the undo of %s:\n%s", s.id, now)
		}
	}
	if now := p.tree("project"); now != before {
		t.Errorf("after each step was undone:\n%swant\n%s", now, before)
	}
	p.types(0, "redo", "3")
	if now := p.tree("project"); now != done {
		t.Errorf("after redo:\n%swant\n%s", now, done)
	}
	p.types(0, "undo", "--turn", answer.Turn)
	if now := p.tree("project"); now != before {
		t.Errorf("after the turn was undone:\n%swant\n%s", now, before)
	}
	p.types(0, "journal", "verify")
	if text, _ := p.types(0, "policy", "replay", "--verify"); !strings.Contains(text, ", 0 changed, 0 could not") {
		t.Errorf("replay: %s", text)
	}
}

// A command that would run on is seen while it runs and ends with Ctrl-C, and so does
// everything it started.
func TestARunningCommandIsSeenAndStoppedByTheKeyboard(t *testing.T) {
	sandboxed(t)
	mark := fmt.Sprintf("3600.%d", os.Getpid())
	p := newPerson(t, calls("shell", map[string]any{"cmd": "echo it has begun; sleep " + mark + "; echo never", "explanation": "It takes an hour."}))
	p.write("inbox.org", "* Inbox\n")
	c := exec.Command(binary, "chat", "--stream", "wait for an hour")
	c.Env = p.env
	var out strings.Builder
	c.Stdout = &out
	talk, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	seen := ""
	for buf := make([]byte, 4096); !strings.Contains(seen, "it has begun\n"); {
		n, err := talk.Read(buf)
		seen += string(buf[:n])
		if err != nil {
			t.Fatalf("%v after %q; %s", err, seen, out.String())
		}
	}
	pressed := time.Now()
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, talk)
	if err := c.Wait(); c.ProcessState.ExitCode() != 1 || !strings.Contains(out.String(), "Stopped.") {
		t.Errorf("%v: %s", err, out.String())
	}
	t.Logf("stopped after %v", time.Since(pressed))
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, l := range lines {
		if raw, err := os.ReadFile(l); err == nil && strings.Contains(string(raw), "sleep\x00"+mark) {
			t.Errorf("still running: %q", raw)
		}
	}
}
