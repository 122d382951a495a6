package main_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Somebody approves an action while another turn of its conversation still speaks: what
// is printed, and the exit code, are those of the approved one.
func TestApprovePrintsTheEndOfItsOwnTurn(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a daemon: run by make test")
	}
	t.Parallel()
	env, _ := editorHome(t)
	pp := func(args ...string) *exec.Cmd {
		c := exec.Command(binary, args...)
		c.Env = env
		return c
	}
	if out, err := pp("chat", "keep the lamp in mind").CombinedOutput(); err == nil {
		t.Fatalf("nothing is asked: %s", out)
	}
	raw, err := pp("approvals", "--json").Output()
	var open []struct{ Token string }
	if err := json.Unmarshal(raw, &open); err != nil || len(open) != 1 {
		t.Fatalf("%s: %v", raw, err)
	}
	if err != nil {
		t.Fatal(err)
	}

	story := pp("chat", "--stream", "tell me a long story")
	told, err := story.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := story.Start(); err != nil {
		t.Fatal(err)
	}
	spoken := bufio.NewReader(told)
	if _, err := spoken.ReadString('.'); err != nil { // it is being told
		t.Fatal(err)
	}
	approve := pp("approve", open[0].Token)
	says, err := approve.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	approve.Stdout = &out
	if err := approve.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(says).ReadString('\n'); err != nil || !strings.HasPrefix(line, "Approved ") {
		t.Fatalf("%q, %v", line, err)
	}
	for _, kv := range env {
		if file, ok := strings.CutPrefix(kv, "GO_ON="); ok {
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := approve.Wait(); err != nil || strings.TrimSpace(out.String()) != "That is done." {
		t.Errorf("approve prints %q and ends with %v", out.String(), err)
	}
	if _, err := spoken.WriteTo(&out); err != nil {
		t.Error(err)
	}
	if err := story.Wait(); err != nil {
		t.Error(err)
	}
}
