package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// emacsOf is the real editor; tests that need it are skipped without it.
func emacsOf(t *testing.T) string {
	t.Helper()
	emacs, err := exec.LookPath("emacs")
	if err != nil {
		t.Skip("emacs is not installed")
	}
	return emacs
}

// The answers of the scripted model, by what the person said last.
var modelSays = []struct{ heard, said string }{
	{"code please", "Here:\n```emacs-lisp\n(defun x () nil)\n```"},
	{"say a megabyte", strings.Repeat("Sixteen letters. ", 64<<10) + "THE-END"},
	{"keep the lamp in mind", capture("the lamp")},
	{"keep the chair in mind", capture("the chair")},
	{"keep the table in mind", capture("the table")},
	{"keep the stove in mind", capture("the stove")},
	{"Hello, agent!", capture("the bell")},
	{"do it in two steps", `(:TARGET :PLAN :PAYLOAD (:STEPS ((:TOOL "capture" :ARGS (:TITLE "first bell")) (:TOOL "capture" :ARGS (:TITLE "second bell"))) :EXPLANATION "The person wants two bells."))`},
	{"Rewrite this Org subtree", "```org\n* Trip\nnew\n```"},
}

func capture(title string) string {
	return fmt.Sprintf(`(:TARGET :TOOL :PAYLOAD (:TOOL "capture" :ARGS (:TITLE %q) :EXPLANATION "The person asked to keep it."))`, title)
}

// An editorModel is a model server that follows a script. It is one for all
// sessions: what it says depends on what it was told last.
type editorModel struct {
	t     *testing.T
	memex string
	goOn  string // a file; the long story goes on when it is there
}

func (m *editorModel) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/models") {
		_, _ = io.WriteString(rw, `{"object":"list","data":[{"id":"tiny.gguf","meta":{"n_ctx_train":131072}}]}`)
		return
	}
	var req struct {
		Messages []struct{ Role, Content string }
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil || len(req.Messages) == 0 {
		http.Error(rw, "no messages", http.StatusBadRequest)
		return
	}
	say := func(delta string) {
		raw, err := json.Marshal(delta)
		if err != nil {
			m.t.Error(err)
		}
		fmt.Fprintf(rw, "data: {\"choices\":[{\"delta\":{\"content\":%s}}]}\n\n", raw)
		rw.(http.Flusher).Flush()
	}
	last := req.Messages[len(req.Messages)-1]
	m.answer(r.Context(), last.Role, last.Content, say)
	_, _ = io.WriteString(rw, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
}

func (m *editorModel) answer(ctx context.Context, role, text string, say func(string)) {
	m.t.Logf("model hears %s: %.300q", role, text)
	for _, s := range modelSays {
		if role == "user" && strings.Contains(text, s.heard) {
			say(s.said)
			return
		}
	}
	_, echo, found := strings.Cut(text, "echo ")
	switch {
	case role == "user" && strings.Contains(text, "tell me a long story"):
		say(strings.Repeat("This is the first part of it. ", 20))
		for range 6000 {
			if _, err := os.Stat(m.goOn); err == nil || ctx.Err() != nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		say(strings.Repeat("The second part came later. ", 20))
	case role == "user" && strings.Contains(text, "insert a line"):
		say(fmt.Sprintf(`(:TARGET :TOOL :PAYLOAD (:TOOL "emacs-insert" :ARGS (:FILE %q :TEXT "- bread 日本") :EXPLANATION "The person wants bread."))`,
			filepath.Join(m.memex, "notes", "list.org")))
	case role == "user" && found:
		echo, _, _ = strings.Cut(echo, "\n")
		say("I heard: " + echo)
	case strings.Contains(text, "rror") || strings.Contains(text, "refused") || strings.Contains(text, "conflict"):
		say("That did not work.")
	default:
		say("That is done.")
	}
}

// editorHome is a home with a memex, a scripted model and a short runtime
// directory; env is what the program and the editor are given.
func editorHome(t *testing.T) (env []string, memex string) {
	t.Helper()
	home := t.TempDir()
	run, err := os.MkdirTemp("", "pp") // short: socket paths are limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(run) })
	t.Cleanup(func() { stopDaemon(filepath.Join(home, ".local", "state", "passepartout", "daemon.lock")) })
	memex = filepath.Join(home, "memex")
	if err := os.MkdirAll(filepath.Join(memex, "system"), 0o755); err != nil {
		t.Fatal(err)
	}
	permissions := "| tool | level |\n|------+-------|\n| capture | ask |\n| * | allow |\n"
	if err := os.WriteFile(filepath.Join(memex, "system", "permissions.org"), []byte(permissions), 0o600); err != nil {
		t.Fatal(err)
	}
	goOn := filepath.Join(run, "go-on")
	server := httptest.NewServer(&editorModel{t: t, memex: memex, goOn: goOn})
	t.Cleanup(server.Close)
	return []string{
		"HOME=" + home, "PATH=" + os.Getenv("PATH"), "XDG_RUNTIME_DIR=" + run, "MEMEX_DIR=" + memex, "LC_ALL=C.UTF-8",
		"LOCAL_URL=" + server.URL + "/v1", "OLLAMA_URL=http://127.0.0.1:1", "TEST_BINARY=" + binary, "GO_ON=" + goOn, "WAIT=" + os.Getenv("WAIT"),
	}, memex
}

func TestTheEmacsClientAgainstTheRealDaemon(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run by make test")
	}
	emacs := emacsOf(t)
	env, _ := editorHome(t)
	which := "t"
	if s := os.Getenv("ERT"); s != "" {
		which = fmt.Sprintf("%q", s)
	}
	c := exec.Command(emacs, "-Q", "--batch", "-L", filepath.Join("..", "..", "emacs"),
		"-l", filepath.Join("..", "..", "emacs", "test", "passepartout-test.el"),
		"--eval", "(ert-run-tests-batch-and-exit "+which+")")
	c.Env = env
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if testing.Verbose() { // each test as it ends
		both := io.MultiWriter(&out, os.Stderr)
		c.Stdout, c.Stderr = both, both
	}
	if err := c.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
}

// Emacs has one thread: a client that waits in it, or asks from a filter, holds up
// whoever types.
func TestTheEmacsClientHasNothingToWaitWith(t *testing.T) {
	for _, name := range []string{"passepartout.el", "passepartout-wire.el"} {
		raw, err := os.ReadFile(filepath.Join("..", "..", "emacs", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, wait := range []string{"accept-process-output", "sleep-for", "sit-for", "call-process", "process-file", "shell-command", "url-retrieve-synchronously", "(while t"} {
			if strings.Contains(string(raw), wait) {
				t.Errorf("%s uses %s", name, wait)
			}
		}
	}
}

func TestTheEmacsClientCompilesWithoutWarningsAndItsDocumentationIsInOrder(t *testing.T) {
	c := exec.Command(emacsOf(t), "-Q", "--batch", "-L", filepath.Join("..", "..", "emacs"), "-l", filepath.Join("..", "..", "emacs", "test", "lint.el"))
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
