package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"passepartout/internal/memory"
)

// memexHome is a home with a memex in it.
func memexHome(t *testing.T, files map[string]string) (environ []string, dir, state string) {
	t.Helper()
	home := t.TempDir()
	dir, state = filepath.Join(home, "memex"), filepath.Join(home, "state")
	for p, text := range files {
		name := filepath.Join(dir, p)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"HOME=" + home, "MEMEX_DIR=" + dir, "PASSEPARTOUT_STATE_DIR=" + state, "PASSEPARTOUT_SOCKET=" + filepath.Join(os.TempDir(), "pp.sock")}, dir, state
}

// callMemory runs one of the commands of this file's neighbours.
func callMemory(environ []string, args ...string) (out, errw string, err error) {
	var o, e bytes.Buffer
	a := &app{in: strings.NewReader(""), out: &o, errw: &e, environ: environ}
	root := &cobra.Command{Use: "passepartout", SilenceErrors: true, SilenceUsage: true}
	root.PersistentFlags().BoolVar(&a.json, "json", false, "")
	root.AddCommand(a.memoryCommand(), a.agendaCommand())
	root.SetArgs(args)
	root.SetContext(context.Background())
	err = root.Execute()
	return o.String(), e.String(), err
}

// agentEdit is one edit by the agent, made and closed before a command runs.
func agentEdit(t *testing.T, dir, state string) {
	t.Helper()
	s, err := memory.Open(t.Context(), dir, memory.Options{State: filepath.Join(state, "memory")})
	if err != nil {
		t.Fatal(err)
	}
	o, ok := s.View().Lookup("a.org:1")
	if !ok {
		t.Fatal("no headline")
	}
	_, err = s.Apply(t.Context(), memory.Tx{Actor: "agent", Turn: "t7", Edits: []memory.Edit{{
		Object: o.ID, Expect: o.Hash, Change: memory.Change{Kind: memory.SetBody, Value: "changed\n"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestMemoryFindPrintsPlacesAndHintsAtMisspeltTags(t *testing.T) {
	env, _, _ := memexHome(t, map[string]string{"a.org": "* TODO One :work:\n* Two :home:\n"})
	out, _, err := callMemory(env, "memory", "find", "+work")
	if err != nil || out != "a.org:1: * TODO One :work:\n" {
		t.Errorf("found %q, %v", out, err)
	}
	if _, errw, err := callMemory(env, "memory", "find", "wrok"); err != nil || !strings.Contains(errw, `did you mean "work"`) {
		t.Errorf("hint %q, %v", errw, err)
	}
	if _, _, err := callMemory(env, "memory", "find", "tdo:NEXT"); err == nil || !strings.Contains(err.Error(), `did you mean "todo"`) {
		t.Errorf("error %v", err)
	}
	out, _, err = callMemory(env, "--json", "memory", "find", "is:open")
	var objs []objectJSON
	if err != nil || json.Unmarshal([]byte(out), &objs) != nil || len(objs) != 1 || objs[0].Title != "One" {
		t.Errorf("json %q, %v", out, err)
	}
}

func TestMemoryUndoRedoAndRewindRestoreTheFile(t *testing.T) {
	const before = "* One\nfirst\n"
	env, dir, state := memexHome(t, map[string]string{"a.org": before})
	agentEdit(t, dir, state)
	read := func() string {
		b, err := os.ReadFile(filepath.Join(dir, "a.org"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	const after = "* One\nchanged\n"
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"memory", "undo"}, before},
		{[]string{"memory", "redo"}, after},
		{[]string{"memory", "undo", "t7"}, before}, // a redo stands under the turn of what it brought back
		{[]string{"memory", "redo"}, after},
		{[]string{"memory", "rewind", "0"}, before},
	} {
		out, errw, err := callMemory(env, tt.args...)
		if err != nil || out == "" {
			t.Fatalf("%q: %q %v %s", tt.args, out, err, errw)
		}
		if got := read(); got != tt.want {
			t.Errorf("%q: want %q, found %q", tt.args, tt.want, got)
		}
	}
	out, _, err := callMemory(env, "memory", "history", "a.org:1")
	if err != nil || strings.Count(out, "| changed") != 3 {
		t.Errorf("history %q, %v", out, err)
	}
	if out, _, err := callMemory(env, "memory", "diff", "1"); err != nil || !strings.Contains(out, "-first") || !strings.Contains(out, "+changed") {
		t.Errorf("diff %q, %v", out, err)
	}
}

func TestMemoryUndoRefusesAndShowsTheDiffWhenTheUserChangedTheSamePlace(t *testing.T) {
	env, dir, state := memexHome(t, map[string]string{"a.org": "* One\nfirst\n"})
	agentEdit(t, dir, state)
	if err := os.WriteFile(filepath.Join(dir, "a.org"), []byte("* One\nchanged by me\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, errw, err := callMemory(env, "memory", "undo")
	if err == nil || !strings.Contains(errw, "changed by me") && !strings.Contains(errw, "+changed") {
		t.Errorf("want a refusal with a diff, found %v, %q", err, errw)
	}
}

func TestMemoryReadsBesideADaemonButDoesNotWrite(t *testing.T) {
	env, dir, state := memexHome(t, map[string]string{"a.org": "* One\nfirst\n"})
	agentEdit(t, dir, state)
	s, err := memory.Open(t.Context(), dir, memory.Options{State: filepath.Join(state, "memory")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, _, err := callMemory(env, "memory", "stats"); err != nil {
		t.Errorf("stats: %v", err)
	}
	if _, _, err := callMemory(env, "memory", "undo"); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("undo: %v", err)
	}
}

func TestAgendaPrintsDaysAndNotes(t *testing.T) {
	env, _, _ := memexHome(t, map[string]string{"a.org": "* TODO Pay\nDEADLINE: <2026-12-24 Thu>\n* Meet <2026-12-24 Thu 10:30>\n"})
	out, _, err := callMemory(env, "agenda", "day", "--from", "2026-12-24")
	if err != nil || !strings.Contains(out, "Thursday 24 December 2026") || !strings.Contains(out, "10:30") || !strings.Contains(out, "Deadline       TODO Pay") {
		t.Errorf("agenda %q, %v", out, err)
	}
	if _, _, err := callMemory(env, "agenda", "year"); err == nil {
		t.Error("want an error for an unknown span")
	}
}
