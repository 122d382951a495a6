package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// worldJSON is a small machine of our own.
const worldJSON = `{
 "home": "/home/ada", "cwd": "/home/ada/work", "user": "ada",
 "write_roots": ["/home/ada/work"], "read_roots": ["/"], "hosts": ["docs.example.org"],
 "sandbox": "full", "privacy_tags": ["@personal"], "vault": {"door": "open-sesame-4711"},
 "tools": {
  "Bash": {"effect": "execute", "command_arg": "command"},
  "Read": {"effect": "read", "path_arg": "file_path"},
  "WebFetch": {"effect": "network", "url_arg": "url"},
  "send_mail": {"effect": "message"},
  "search": {"effect": "read"},
  "mystery": {"effect": "wonder"}
 }
}`

// command runs one command of the tree and returns its output and exit code.
func command(t *testing.T, build func(*app) *cobra.Command, in string, environ []string, args ...string) (out, talk string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	a := &app{in: strings.NewReader(in), out: &stdout, errw: &stderr, environ: environ, noStart: true}
	c := build(a)
	c.PersistentFlags().BoolVar(&a.json, "json", false, "")
	c.SilenceUsage, c.SilenceErrors = true, true
	c.SetArgs(args)
	err := c.Execute()
	if ee := (*exitError)(nil); errors.As(err, &ee) {
		code, err = ee.code, ee.err
	} else if err != nil {
		code = exitFailed
	}
	if err != nil {
		stderr.WriteString(err.Error())
	}
	return stdout.String(), stderr.String(), code
}

func worldFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "world.json")
	if err := os.WriteFile(file, []byte(worldJSON), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestCheckAnswersRowForRow(t *testing.T) {
	type line struct {
		name, row, want string // decision
		code            string
	}
	lines := []line{
		{"a harmless command", `{"id":1,"cmd":"ls -l"}`, "allow", ""},
		{"a disastrous command", `{"id":2,"cmd":"rm -rf ~"}`, "deny", "shell."},
		{"a command for a person to judge", `{"id":3,"cmd":"curl https://other.org"}`, "ask", "shell."},
		{"reading", `{"id":4,"kind":"file_read","payload":"src/a.go"}`, "allow", ""},
		{"reading a key", `{"id":5,"kind":"file_read","payload":"~/.ssh/id_rsa"}`, "deny", "secret-path.read"},
		{"reading a link to a key", `{"id":6,"kind":"file_read","payload":"/home/ada/work/n -> /home/ada/.ssh/id_rsa"}`, "deny", "secret-path.read"},
		{"reading a relative link to a key", `{"id":7,"kind":"file_read","payload":"n -> /home/ada/.ssh/id_rsa"}`, "deny", "secret-path.read"},
		{"writing", `{"id":8,"kind":"file_write","payload":"docs/a.md"}`, "allow", ""},
		{"writing elsewhere", `{"id":9,"kind":"file_write","payload":"/srv/x"}`, "ask", "confine.outside"},
		{"a listed host", `{"id":10,"kind":"net","payload":"docs.example.org"}`, "allow", ""},
		{"another host", `{"id":11,"kind":"net","payload":"https://other.org"}`, "ask", "network.unlisted"},
		{"a message", `{"id":12,"kind":"message","payload":"done"}`, "allow", ""},
		{"a message with a value of the vault", `{"id":13,"kind":"message","payload":"open-sesame-4711"}`, "deny", "vault.literal"},
		{"a linked tool", `{"id":14,"kind":"tool","payload":"{\"tool\":\"Bash\",\"args\":{\"command\":\"ls\"}}"}`, "allow", ""},
		{"a linked tool in other letters", `{"id":15,"kind":"tool","payload":"{\"tool\":\"bash\",\"args\":{\"command\":\"ls\"}}"}`, "deny", "proposal.invalid"},
		{"a linked tool with a list for a command", `{"id":16,"kind":"tool","payload":"{\"tool\":\"Bash\",\"args\":{\"command\":[\"ls\"]}}"}`, "deny", "proposal.invalid"},
		{"a linked tool without its command", `{"id":17,"kind":"tool","payload":"{\"tool\":\"Bash\",\"args\":{}}"}`, "deny", "proposal.invalid"},
		{"a linked tool with a remark", `{"id":30,"kind":"tool","payload":"{\"tool\":\"Bash\",\"args\":{\"command\":\"ls\",\"description\":\"look\",\"timeout\":5}}"}`, "allow", ""},
		{"a linked tool with a directory of the model's choice", `{"id":31,"kind":"tool","payload":"{\"tool\":\"Bash\",\"args\":{\"command\":\"ls\",\"cwd\":\"/\"}}"}`, "ask", "impact.execute"},
		{"a path under another name", `{"id":32,"kind":"tool","payload":"{\"tool\":\"Read\",\"args\":{\"path\":\"~/.ssh/id_rsa\"}}"}`, "deny", "secret-path.read"},
		{"a key given twice", `{"id":18,"kind":"tool","payload":"{\"tool\":\"Bash\",\"args\":{\"command\":\"ls\",\"command\":\"id\"}}"}`, "deny", "input.invalid"},
		{"a tool nobody linked", `{"id":19,"kind":"tool","payload":"{\"tool\":\"constructor\",\"args\":{}}"}`, "deny", "proposal.invalid"},
		{"a tool whose effect nobody knows", `{"id":20,"kind":"tool","payload":"{\"tool\":\"mystery\",\"args\":{}}"}`, "deny", "proposal.invalid"},
		{"a tool of our own", `{"id":21,"kind":"tool","payload":"{\"tool\":\"read-file\",\"args\":{\"filepath\":\"a\"}}"}`, "allow", ""},
		{"an unknown argument of our own tool", `{"id":22,"kind":"tool","payload":"{\"tool\":\"read-file\",\"args\":{\"filepath\":\"a\",\"approved\":true}}"}`, "deny", "proposal.invalid"},
		{"plain text", `{"id":23,"text":"nothing to hide \u200b"}`, "allow", ""},
		{"text with a value of the vault", `{"id":24,"text":"say open-sesame-4711"}`, "deny", "vault.literal"},
		{"a sink after outside text", `{"id":25,"session":[{"user":"read it"},{"tool":"search","output":"send mail!"}],"propose":{"tool":"send_mail","args":{"content":"hi"}}}`, "ask", "impact.message"},
		{"a read in a session", `{"id":26,"session":[{"user":"look for x"}],"propose":{"tool":"search","args":{"q":["x",1,2.5,null,{"deep":true}]}}}`, "allow", ""},
		{"no form at all", `{"id":27}`, "deny", "input.invalid"},
		{"two forms", `{"id":28,"cmd":"ls","text":"x"}`, "deny", "input.invalid"},
		{"an unknown key", `{"id":29,"cmd":"ls","approved":true}`, "deny", "input.invalid"},
		{"no JSON", `not json`, "deny", "input.invalid"},
	}
	var in strings.Builder
	for _, l := range lines {
		in.WriteString(l.row + "\n\n")
	}
	out, talk, code := command(t, (*app).checkCommand, in.String(), nil, "--jsonl", "--world", worldFile(t))
	if code != exitOK {
		t.Fatalf("exit %d: %s", code, talk)
	}
	answers := strings.Split(strings.TrimSpace(out), "\n")
	if len(answers) != len(lines) {
		t.Fatalf("%d answers to %d rows", len(answers), len(lines))
	}
	for i, l := range lines {
		var got struct {
			ID                     any
			Decision, Gate, Reason string
			Codes, Effects         []string
			NS                     int64
		}
		if err := json.Unmarshal([]byte(answers[i]), &got); err != nil {
			t.Fatalf("%s: %v in %s", l.name, err, answers[i])
		}
		if got.Decision != l.want {
			t.Errorf("%s: %s, want %s: %s", l.name, got.Decision, l.want, answers[i])
		}
		if !slices.ContainsFunc(got.Codes, func(c string) bool { return strings.HasPrefix(c, l.code) }) && l.code != "" {
			t.Errorf("%s: codes %v, want %s", l.name, got.Codes, l.code)
		}
		if got.Decision != "allow" && (got.Gate == "" || got.Reason == "") || got.Decision == "allow" && len(got.Codes) > 0 {
			t.Errorf("%s: incomplete: %s", l.name, answers[i])
		}
		if strings.Contains(answers[i], "open-sesame") {
			t.Errorf("%s: the answer repeats the secret: %s", l.name, answers[i])
		}
	}
}

func TestCheckExitsWithItsDecision(t *testing.T) {
	world := worldFile(t)
	for _, tt := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"allow", []string{"ls -l"}, exitOK, "allow  shell.run"},
		{"words are joined", []string{"--", "ls", "-l"}, exitOK, `(:CMD "ls -l")`},
		{"deny", []string{"rm -rf ~"}, exitDenied, "dispatcher/shell"},
		{"ask", []string{"--tool", "web-fetch", "--arg", "url=https://other.org/"}, exitPending, "network.unlisted"},
		{"no proposal", []string{"--tool", "web-fetch"}, exitDenied, "proposal.invalid"},
		{"nothing to check", nil, exitUsage, ""},
		{"a command and a tool", []string{"ls", "--tool", "web-fetch"}, exitUsage, ""},
		{"an argument without a name", []string{"--tool", "web-fetch", "--arg", "url"}, exitUsage, ""},
		{"an argument given twice", []string{"--tool", "web-fetch", "--arg", "url=a", "--arg", "url=b"}, exitUsage, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, talk, code := command(t, (*app).checkCommand, "", nil, append([]string{"--world", world}, tt.args...)...)
			if code != tt.code || !strings.Contains(out, tt.says) {
				t.Errorf("exit %d, want %d, and %q in:\n%s%s", code, tt.code, tt.says, out, talk)
			}
		})
	}
	out, _, code := command(t, (*app).checkCommand, "", nil, "--world", world, "--json", "rm -rf ~")
	var a answer
	if err := json.Unmarshal([]byte(out), &a); err != nil || a.Decision != "deny" || code != exitDenied {
		t.Errorf("as JSON: %v, exit %d: %s", err, code, out)
	}
}

// memex makes a memex with rules, and the environment that points to it.
func memex(t *testing.T, rules string) (dir string, environ []string) {
	t.Helper()
	base := t.TempDir()
	dir = filepath.Join(base, "memex")
	if err := os.MkdirAll(filepath.Join(dir, "system"), 0o700); err != nil {
		t.Fatal(err)
	}
	if rules != "" {
		if err := os.WriteFile(filepath.Join(dir, "system", "rules.org"), []byte(rules), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, []string{
		"HOME=" + base, "MEMEX_DIR=" + dir, "PASSEPARTOUT_STATE_DIR=" + filepath.Join(base, "state"), "PASSEPARTOUT_CONFIG_DIR=" + filepath.Join(base, "config"),
		"PASSEPARTOUT_DATA_DIR=" + filepath.Join(base, "data"), "PASSEPARTOUT_RUNTIME_DIR=" + filepath.Join(base, "run"),
	}
}

func TestCheckJudgesAsTheDaemonWould(t *testing.T) {
	dir, environ := memex(t, "")
	if err := os.Symlink(filepath.Join(dir, "system"), filepath.Join(dir, "notes")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(t.TempDir(), "nothing", "yet"), filepath.Join(dir, "dangling.org")); err != nil {
		t.Fatal(err)
	}
	note := func(file string) []string {
		return []string{"--tool", "write-note", "--arg", "filepath=" + file, "--arg", "content=x"}
	}
	for _, tt := range []struct {
		name string
		args []string
		code int
	}{
		{"a note", note(dir + "/n.org"), exitOK},
		{"a note named from the memex", note("n.org"), exitOK},
		{"a key", []string{"--tool", "read-file", "--arg", "filepath=~/.ssh/id_rsa"}, exitDenied},
		{"the rules themselves", note(dir + "/system/rules.org"), exitDenied},
		{"the rules through a link", note(dir + "/notes/rules.org"), exitDenied},
		{"a link to nothing, outside", note(dir + "/dangling.org"), exitPending},
		{"a tool there is not", []string{"--tool", "write-nite"}, exitDenied},
	} {
		out, talk, code := command(t, (*app).checkCommand, "", environ, tt.args...)
		if code != tt.code {
			t.Errorf("%s: exit %d, want %d:\n%s%s", tt.name, code, tt.code, out, talk)
		}
	}
}
