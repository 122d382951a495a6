package daemon_test

import (
	"strings"
	"testing"
)

func TestINV12ACommandDoesNotCarryAPrivateNoteToACloud(t *testing.T) {
	for _, cmd := range []string{"cat diary.org", "grep -rh canary .", "cat d*", "python3 -c 'print(open(\"diary.org\").read())'", "head -c 999 $(ls | grep dia)", "cat ./../*/diary.org", "wc -c diary.org; tail -n 2 < diary.org", "tar cf - . | strings"} {
		t.Run(cmd, func(t *testing.T) {
			m := newModel(t, inTurn(
				call("shell", map[string]any{"cmd": cmd, "explanation": "The person asked to look at the files."}, 1),
				speak("summary")))
			s := m.cloud(settings(t))
			s.PrivacyTags = []string{"@personal"}
			write(t, s, "diary.org", "#+FILETAGS: :@personal:\n* Monday\nThe canary sings.\n")
			h := open(t, s)
			r := h.connect().request(say("main", "look at the files")).Payload
			t.Log(r.Word("STATUS"), r.Text("TEXT"))
			for i, b := range m.heard() {
				if strings.Contains(b, "canary sings") {
					t.Errorf("request %d carries the note", i)
				}
			}
		})
	}
}
