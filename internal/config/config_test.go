package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"passepartout/internal/config"
)

var update = flag.Bool("update", false, "rewrite the generated example file")

var environ = []string{"HOME=/home/jean", "XDG_RUNTIME_DIR=/run/user/7", "PATH=/bin", "LANG=C"}

// reading returns a ReadFunc for one settings file, wherever it is looked for.
func reading(text string, mode fs.FileMode) config.ReadFunc {
	return func(string) ([]byte, fs.FileMode, error) { return []byte(text), mode, nil }
}

func load(t *testing.T, env []string, text string) config.Config {
	t.Helper()
	c, err := config.Load(env, reading(text, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func shown(c config.Config, key string) string {
	for _, it := range c.List() {
		if it.Setting.Key == key {
			return it.Value
		}
	}
	return "no such setting"
}

// notes returns the comments of a fixture that start with a word.
func notes(text, word string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if note, ok := strings.CutPrefix(strings.TrimSpace(line), "# "+word+": "); ok {
			out = append(out, note)
		}
	}
	return out
}

func fixtures(t *testing.T, pattern string, check func(t *testing.T, text string)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures %s: %v", pattern, err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			check(t, string(text))
		})
	}
}

func TestGoodFilesLoad(t *testing.T) {
	fixtures(t, "*.good.env", func(t *testing.T, text string) {
		c := load(t, environ, text)
		for _, note := range notes(text, "have") {
			key, want, _ := strings.Cut(note, " ")
			if got := shown(c, key); got != want {
				t.Errorf("%s is %q, want %q", key, got, want)
			}
		}
	})
}

func TestBadFilesAreRefusedWithEveryReason(t *testing.T) {
	fixtures(t, "*.bad.env", func(t *testing.T, text string) {
		_, err := config.Load(environ, reading(text, 0o600))
		if err == nil {
			t.Fatal("no error")
		}
		for _, want := range notes(text, "want") {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("no complaint says %q", want)
			}
		}
		if got, want := strings.Count(err.Error(), "\n")+1, len(notes(text, "want")); got != want || t.Failed() {
			t.Errorf("%d complaints, want %d:\n%v", got, want, err)
		}
		if strings.Contains(err.Error(), "canary") {
			t.Errorf("an error repeats what may be a secret:\n%v", err)
		}
	})
}

func TestDefaultsAreValidAndFollowXDG(t *testing.T) {
	c, err := config.Default(append(environ, "XDG_STATE_HOME=/var/state", "XDG_DATA_HOME=relative", "MEMEX_DIR=/ignored", "PASSEPARTOUT_TYPO=1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ got, want string }{
		{c.MemexDir, "/home/jean/memex"},
		{c.ConfigDir, "/home/jean/.config/passepartout"},
		{c.StateDir, "/var/state/passepartout"},
		{c.DataDir, "/home/jean/.local/share/passepartout"},
		{c.RuntimeDir, "/run/user/7"},
		{c.SocketPath, "/run/user/7/passepartout.sock"},
		{c.TokenFile, "/var/state/passepartout/token"},
		{strings.Join(c.WriteRoots, ":"), "/home/jean/memex"},
		{strings.Join(c.Cascade, ","), "reflex"},
		{strings.Join(c.PrivacyTags, ","), "@personal"},
		{c.TCPAddr, ""},
		{c.ApprovalExpiry.String(), "24h0m0s"},
	} {
		if tt.got != tt.want {
			t.Errorf("default %q, want %q", tt.got, tt.want)
		}
	}
	if len(c.Keys) != 0 {
		t.Errorf("keys by default: %v", c.Keys)
	}
	c, err = config.Default([]string{"HOME=/home/jean"})
	if err != nil || c.SocketPath != "/home/jean/.local/state/passepartout/run/passepartout.sock" {
		t.Errorf("without a runtime directory the socket is %q, %v", c.SocketPath, err)
	}
	_, err = config.Default(nil)
	if err == nil || strings.Count(err.Error(), "HOME") != 1 {
		t.Errorf("without HOME: %v; want it said once", err)
	}
}

func TestTheEnvironmentWinsOverTheFileAndTheFileOverDefaults(t *testing.T) {
	c := load(t, append(environ, "MEMEX_USER=env", "MEMEX_ASSISTANT="), "MEMEX_USER=file\n\nMEMEX_ASSISTANT=file\n")
	if c.User != "env" || c.Assistant != "file" || c.LogLevel != "info" {
		t.Errorf("user %q, assistant %q, log level %q", c.User, c.Assistant, c.LogLevel)
	}
	file := filepath.Join("/home/jean/.config/passepartout", "env")
	for key, want := range map[string]string{"MEMEX_USER": "environment", "MEMEX_ASSISTANT": file + ":3", "PASSEPARTOUT_LOG_LEVEL": "default"} {
		if got := c.Origin(key).String(); got != want {
			t.Errorf("origin of %s is %q, want %q", key, got, want)
		}
	}
}

func TestTheFileIsLookedForWhereTheEnvironmentSays(t *testing.T) {
	for _, tt := range []struct{ env, want string }{
		{"", "/home/jean/.config/passepartout/env"},
		{"XDG_CONFIG_HOME=/etc/xdg", "/etc/xdg/passepartout/env"},
		{"PASSEPARTOUT_CONFIG_DIR=~/conf", "/home/jean/conf/env"},
	} {
		var asked string
		_, err := config.Load(append(environ, tt.env), func(name string) ([]byte, fs.FileMode, error) {
			asked = name
			return nil, 0, fs.ErrNotExist
		})
		if err != nil || asked != tt.want {
			t.Errorf("with %q the file is %q, %v; want %q", tt.env, asked, err, tt.want)
		}
	}
}

func TestTheEnvironmentIsAsStrictAsTheFile(t *testing.T) {
	for _, tt := range []struct{ env, want string }{
		{"PASSEPARTOUT_SOKET=/x", "environment: there is no setting PASSEPARTOUT_SOKET: did you mean PASSEPARTOUT_SOCKET?"},
		{"PASSEPARTOUT_X=1", "environment: there is no setting PASSEPARTOUT_X"},
		{"PASSEPARTOUT_MAX_CLIENTS=many", `environment: PASSEPARTOUT_MAX_CLIENTS: want a number from 1 to 65536, found "many"`},
		{"OPENAI_API_KEY=canary canary", "environment: OPENAI_API_KEY: want a key of printable characters without blanks, found a value of 13 characters"},
		{"MEMEX_DIR=memex", "environment: MEMEX_DIR: want a path that is absolute"},
		{"PASSEPARTOUT_CONFIG_DIR=conf", "environment: PASSEPARTOUT_CONFIG_DIR: want a path that is absolute"},
	} {
		_, err := config.Load(append(environ, tt.env), reading("", 0o600))
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "canary") {
			t.Errorf("with %s: %v; want %q", tt.env, err, tt.want)
		}
	}
	if _, err := config.Load(append(environ, "PASSEPARTOUT_SHARED=/x", "MEMEXES=1"), reading("", 0o600)); err != nil {
		t.Errorf("variables that are not settings: %v", err)
	}
}

func TestAFileWithSecretsMustBeForItsOwnerAlone(t *testing.T) {
	const secret, plain = "OPENAI_API_KEY=sk-canary\n", "MEMEX_USER=Jean\nOPENAI_API_KEY=\n"
	for _, tt := range []struct {
		text string
		mode fs.FileMode
		ok   bool
	}{
		{secret, 0o600, true},
		{secret, 0o400, true},
		{secret, 0o640, false},
		{secret, 0o604, false},
		{secret, 0o644, false},
		{plain, 0o644, true},
		{plain, 0o664, true},
		{plain, 0o646, false},
		{plain, 0o666, false},
	} {
		_, err := config.Load(environ, reading(tt.text, tt.mode))
		if (err == nil) != tt.ok {
			t.Errorf("%q with mode %04o: %v", tt.text, tt.mode, err)
		}
		if err != nil && (!strings.Contains(err.Error(), "chmod 600 ") || strings.Contains(err.Error(), "canary")) {
			t.Errorf("the error is %v", err)
		}
	}
	// A key in the environment does not excuse the file.
	if _, err := config.Load(append(environ, "OPENAI_API_KEY=x"), reading(secret, 0o644)); err == nil {
		t.Error("a readable secret was overlooked because the environment overrides it")
	}
}

func TestNothingThatPrintsASettingShowsASecret(t *testing.T) {
	const canary = "sk-canary-7f3a"
	c := load(t, append(environ, "GROQ_API_KEY="+canary), "OPENAI_API_KEY="+canary+"\n")
	if c.Keys["openai"].Reveal() != canary || c.Keys["groq"].Reveal() != canary || c.Keys["anthropic"].IsSet() {
		t.Fatal("the keys were not loaded")
	}
	hidden := struct{ c config.Config }{c}
	j, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	logger.Info("loaded", "config", c, "key", c.Keys["openai"])
	slog.New(slog.NewJSONHandler(&log, nil)).Info("loaded", "config", c, "key", c.Keys["openai"])
	out := []string{
		fmt.Sprint(c), fmt.Sprintf("%+v", c), fmt.Sprintf("%#v", c), fmt.Sprintf("%v %+v %#v", hidden, hidden, &hidden),
		fmt.Sprintf("%s %q %x %d", c.Keys["openai"], c.Keys["openai"], c.Keys["openai"], c.Keys["openai"]),
		fmt.Sprint(c.List()), fmt.Sprintf("%#v", c.List()), string(j), log.String(),
	}
	hexed := fmt.Sprintf("%x", canary)
	for _, s := range out {
		if strings.Contains(s, canary) || strings.Contains(s, hexed) {
			t.Errorf("a secret in %s", s)
		}
	}
	if got := shown(c, "OPENAI_API_KEY"); got != "set" {
		t.Errorf("the list says %q", got)
	}
}

func TestEverySettingIsDocumentedAndSane(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range config.Settings() {
		if seen[s.Key] {
			t.Errorf("%s is there twice", s.Key)
		}
		seen[s.Key] = true
		if s.Doc == "" || s.Group == "" || s.Kind == 0 || s.Kind.String() == "invalid" {
			t.Errorf("%s lacks a description, group or kind", s.Key)
		}
		if s.Secret != (strings.HasSuffix(s.Key, "_API_KEY") || strings.HasSuffix(s.Key, "_BOT_TOKEN")) || s.Secret && (s.Default != "" || s.Example != "" || s.Kind != config.Token) {
			t.Errorf("%s: a secret must be called so, and have no default and no example", s.Key)
		}
		if (s.Kind == config.Choice || s.Kind == config.Choices) != (len(s.Choices) > 0) {
			t.Errorf("%s: a %v with choices %v", s.Key, s.Kind, s.Choices)
		}
	}
	if got := config.Kind(200).String(); got != "invalid" {
		t.Errorf("an unknown kind is called %q", got)
	}
}

func TestTheExampleFileIsCurrent(t *testing.T) {
	name := filepath.Join("..", "..", ".env.example")
	if *update {
		if err := os.WriteFile(name, []byte(config.Example()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != config.Example() {
		t.Error(".env.example is not what the table says: go test ./internal/config -update")
	}
}

func TestTheExampleFileLoadsWithEverythingTurnedOn(t *testing.T) {
	load(t, environ, config.Example())
	on := strings.ReplaceAll(config.Example(), "\n#", "\n")
	var settings []string
	for line := range strings.Lines(on) {
		if key, _, ok := strings.Cut(line, "="); ok && !strings.Contains(key, " ") {
			settings = append(settings, line)
		}
	}
	if want := len(config.Settings()) - 1; len(settings) != want { // one cannot be in a file
		t.Fatalf("the example has %d settings, want %d", len(settings), want)
	}
	c := load(t, environ, strings.Join(settings, ""))
	if c.TCPAddr != "127.0.0.1:9105" || c.RequestTimeout != 30*time.Second {
		t.Errorf("loaded %+v", c)
	}
}

func TestReadFileReturnsContentsAndMode(t *testing.T) {
	name := filepath.Join(t.TempDir(), "env")
	if _, _, err := config.ReadFile(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if err := os.WriteFile(name, []byte("MEMEX_USER=Jean\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	text, mode, err := config.ReadFile(name)
	if err != nil || string(text) != "MEMEX_USER=Jean\n" || mode.Perm()&0o077 == 0 {
		t.Errorf("ReadFile = %q, %v, %v", text, mode, err)
	}
	if err := os.WriteFile(name, bytes.Repeat([]byte("#\n"), 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(append(environ, "PASSEPARTOUT_CONFIG_DIR="+filepath.Dir(name)), config.ReadFile); err == nil || !strings.Contains(err.Error(), "bytes: want at most") {
		t.Errorf("a file of 2 MB: %v", err)
	}
	if _, err := config.Load(environ, func(string) ([]byte, fs.FileMode, error) { return nil, 0, fs.ErrPermission }); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("an unreadable file: %v", err)
	}
}

// FuzzLoad: whatever the file holds, loading neither panics nor repeats the
// value of a secret.
func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.env"))
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := config.Load(environ, reading("OPENAI_API_KEY=canary-7f3a\n"+text, 0o600))
		if err != nil {
			if strings.Contains(err.Error(), "canary-7f3a") && !strings.Contains(text, "canary") {
				t.Fatalf("an error shows a secret: %v", err)
			}
			return
		}
		if c.SocketPath == "" || c.MemexDir == "" || c.Keys["openai"].Reveal() != "canary-7f3a" {
			t.Fatalf("loaded without an error, but %+v", c)
		}
	})
}
