package daemon_test

import (
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"passepartout/internal/llm"
	"passepartout/internal/sexp"
)

// heardOf counts the requests that carry a text.
func (m *model) heardOf(text string) (n int) {
	for _, b := range m.heard() {
		if strings.Contains(b, text) {
			n++
		}
	}
	return n
}

const secretDiary = "#+FILETAGS: :@personal:\n* Monday\nThe canary sings.\n"

func TestINV12ACommandDoesNotCarryAPrivateNoteToACloud(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run by make test")
	}
	for _, cmd := range []string{
		"cat diary.org", "grep -rh canary .", "cat d*", "head -c 999 $(ls | grep dia)", "cat ./../*/diary.org",
		"wc -c diary.org; tail -n 1 < diary.org", "tar cf - . | strings", "ln diary.org x; tail -n 1 x",
		"tail -n 1 diary.org~", "git show HEAD:diary.org", "git log -p -1 | tail -n 3", "git cat-file -p HEAD:diary.org | tail -n 1",
		"cp diary.org y.txt; rm y.txt", "find . -name '*.org' -exec tail -n 1 {} +", "awk '/canary/' *.org", "sed -n 3p diary.org | rev | rev",
	} {
		t.Run(cmd, func(t *testing.T) {
			t.Parallel()
			m := newModel(t, inTurn(
				call("shell", map[string]any{"cmd": cmd, "explanation": "The person asked to look at the files."}, 1),
				speak("summary")))
			s := m.cloud(settings(t))
			s.PrivacyTags = []string{"@personal"}
			write(t, s, "diary.org", secretDiary)
			write(t, s, "diary.org~", secretDiary)
			commit(t, s.MemexDir)
			r := open(t, s).connect().request(say("main", "look at the files")).Payload
			if m.heardOf("canary sings") > 0 || r.Word("STATUS") == "DONE" {
				t.Errorf("ended %s", r)
			}
		})
	}
}

// commit puts all there is into a repository.
func commit(t *testing.T, dir string) {
	t.Helper()
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "all"}} {
		if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
}

func TestACommandThatOpensNoPrivateFileLeavesTheConversationFree(t *testing.T) {
	m := newModel(t, inTurn(
		call("shell", map[string]any{"cmd": "ls; wc -c plain.txt; cat plain.txt", "explanation": "The person asked to look at the files."}, 1),
		call("shell", map[string]any{"cmd": "git status && git log --oneline", "explanation": "The person asked to look at the files."}, 1),
		speak("summary")))
	s := m.cloud(settings(t))
	s.PrivacyTags = []string{"@personal"}
	write(t, s, "diary.org", secretDiary)
	write(t, s, "plain.txt", "Nothing to hide.\n")
	commit(t, s.MemexDir)
	h := open(t, s)
	if r := h.connect().request(say("main", "look at the files")).Payload; r.Text("TEXT") != "summary" || m.heardOf("Nothing to hide.") == 0 {
		t.Errorf("ended %s", r)
	}
}

// TestACommandBesideADaemonThatReadsPrivateNotesStaysPublic lets a command wait in a
// pipe; meanwhile the daemon, which is this process, reads the diary again and again.
func TestACommandBesideADaemonThatReadsPrivateNotesStaysPublic(t *testing.T) {
	for cmd, public := range map[string]bool{
		"cat door; cat plain.txt":                 true,
		"cat door > copied.txt; cat plain.txt":    true,
		"cat door; cat plain.txt diary.org":       false,
		"cat door; ln diary.org d; cat plain.txt": false,
	} {
		t.Run(cmd, func(t *testing.T) {
			m := newModel(t, inTurn(
				call("shell", map[string]any{"cmd": cmd, "explanation": "The person asked to look at the files."}, 1),
				speak("summary")))
			s := m.cloud(settings(t))
			s.PrivacyTags = []string{"@personal"}
			write(t, s, "diary.org", secretDiary)
			write(t, s, "plain.txt", "Nothing to hide.\n")
			door := filepath.Join(s.MemexDir, "door")
			if err := syscall.Mkfifo(door, 0o600); err != nil {
				t.Fatal(err)
			}
			h := open(t, s)
			read := make(chan bool)
			go func() {
				defer close(read)
				f, err := os.OpenFile(door, os.O_WRONLY, 0) // waits for the command
				if err != nil {
					t.Error(err)
					return
				}
				defer f.Close()
				for range 100 {
					if _, err := os.ReadFile(filepath.Join(s.MemexDir, "diary.org")); err != nil {
						t.Error(err)
					}
				}
			}()
			r := h.connect().request(say("main", "look at the files")).Payload
			if f, err := os.OpenFile(door, os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil { // if the command never came
				defer f.Close()
			}
			<-read
			if got := r.Text("TEXT") == "summary" && m.heardOf("Nothing to hide.") > 0; got != public || m.heardOf("canary") > 0 {
				t.Errorf("public: %t, ended %s", got, r)
			}
		})
	}
}

// TestINV12WhatARunningCommandWritesIsPrivateAtOnce lets a command copy the diary and
// wait: the copy has no label before it ends, and somebody else reads it.
func TestINV12WhatARunningCommandWritesIsPrivateAtOnce(t *testing.T) {
	for tool, args := range map[string]map[string]any{
		"read-file": {"filepath": "copy.txt"}, "search-files": {"path": ".", "pattern": "canary"}, "shell": {"cmd": "tail -n 1 copy.txt"},
	} {
		t.Run(tool, func(t *testing.T) {
			args["explanation"] = "The person asked to look at the file."
			m := newModel(t, inTurn(
				call("shell", map[string]any{"cmd": "tail -n 1 diary.org > copy.txt; cat door", "explanation": "The person asked for a copy."}, 1),
				call(tool, args, 1), speak("summary")))
			s := m.cloud(settings(t))
			s.PrivacyTags = []string{"@personal"}
			write(t, s, "diary.org", secretDiary)
			door := filepath.Join(s.MemexDir, "door")
			if err := syscall.Mkfifo(door, 0o600); err != nil {
				t.Fatal(err)
			}
			h := open(t, s)
			done := make(chan sexp.Keyword)
			go func() { done <- h.connect().request(say("one", "copy it")).Payload.Word("STATUS") }()
			f, err := os.OpenFile(door, os.O_WRONLY, 0) // waits for the command
			if err != nil {
				t.Fatal(err)
			}
			r := h.connect().request(say("two", "what is in the copy?")).Payload
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			if m.heardOf("canary sings") > 0 || r.Word("STATUS") == "DONE" {
				t.Errorf("ended %s", r)
			}
			if status := <-done; status == "DONE" || m.heardOf("canary sings") > 0 {
				t.Errorf("the command's own turn ended %s", status)
			}
		})
	}
}

// TestINV12PrivateTextIsPrivateInWhateverFileItIsWritten has a model on this machine
// copy a private note in three ways, and then one in the cloud look for it.
func TestINV12PrivateTextIsPrivateInWhateverFileItIsWritten(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run by make test")
	}
	because := func(m map[string]any) map[string]any { m["explanation"] = "The person asked for this step."; return m }
	for name, copies := range map[string][]map[string]any{
		"a tool writes a file":          {{"tool": "read-file", "filepath": "diary.org"}, {"tool": "write-file", "filepath": "copy.txt", "content": "The canary sings."}},
		"a command writes a file":       {{"tool": "shell", "cmd": "tail -n 1 diary.org > copy.txt"}},
		"a command renames the note":    {{"tool": "shell", "cmd": "mv diary.org copy.txt"}},
		"a command links the note":      {{"tool": "shell", "cmd": "ln diary.org copy.txt"}},
		"a command writes another note": {{"tool": "shell", "cmd": "tail -n 1 diary.org > copy.org"}},
	} {
		t.Run(name, func(t *testing.T) {
			var script []http.HandlerFunc
			for _, c := range copies {
				args := because(maps.Clone(c))
				delete(args, "tool")
				script = append(script, call(c["tool"].(string), args, 1))
			}
			local := newModel(t, onThisMachine(append(script, speak("copied"))...))
			s := local.cloud(settings(t))
			s.PrivacyTags = []string{"@personal"}
			s.Models.Providers, s.Models.Cascade = []llm.Provider{{Name: "local", Model: "test"}}, []string{"local"}
			write(t, s, "diary.org", secretDiary)
			h := open(t, s)
			if r := h.connect().request(say("one", "copy it")).Payload; r.Text("TEXT") != "copied" {
				t.Fatalf("ended %s", r)
			}
			found, err := filepath.Glob(filepath.Join(s.MemexDir, "copy.*"))
			if err != nil || len(found) != 1 {
				t.Fatalf("copies: %v %v", found, err)
			}
			if raw, err := os.ReadFile(found[0]); err != nil || !strings.Contains(string(raw), "canary sings") {
				t.Fatalf("%s: %q %v", found[0], raw, err)
			}
			h.close()

			base := filepath.Base(found[0])
			for what, look := range map[string]map[string]any{
				"read-file": {"filepath": base}, "search-files": {"path": ".", "pattern": "canary"}, "shell": {"cmd": "tail -n 1 " + base},
			} {
				cloud := newModel(t, inTurn(call(what, because(look), 1), speak("seen")))
				c := cloud.cloud(s)
				h := open(t, c)
				r := h.connect().request(say("two "+what, "what is in the copy?")).Payload
				if cloud.heardOf("canary sings") > 0 || r.Word("STATUS") == "DONE" {
					t.Errorf("%s: ended %s, %d requests carry it", what, r, cloud.heardOf("canary sings"))
				}
				h.close()
			}
		})
	}
}

func TestINV12ACopyBesideAPrivateNoteIsPrivateToo(t *testing.T) {
	for _, name := range []string{"diary.org~", "#diary.org#", "diary.org.bak"} {
		m := newModel(t, inTurn(
			call("read-file", map[string]any{"filepath": name, "explanation": "The person asked to look at the file."}, 1),
			speak("summary")))
		s := m.cloud(settings(t))
		s.PrivacyTags = []string{"@personal"}
		write(t, s, "diary.org", secretDiary)
		write(t, s, name, "The canary sings.\n")
		h := open(t, s)
		r := h.connect().request(say("main", "look at the file")).Payload
		if m.heardOf("canary sings") > 0 || r.Word("STATUS") == "DONE" {
			t.Errorf("%s: ended %s", name, r)
		}
		h.close()
	}
}
