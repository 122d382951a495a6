package main_test

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A report is what doctor --json prints.
type report struct {
	OK       bool
	Errors   int
	Warnings int
	Mended   []string
	Findings []struct {
		ID, Severity, Note, Fix string
	}
}

func (r report) find(id string) (severity, fix string) {
	for _, f := range r.Findings {
		if f.ID == id && f.Severity != "ok" {
			return f.Severity, f.Fix
		}
	}
	return "ok", ""
}

func (h *newcomersHome) doctor(args ...string) (report, int) {
	h.t.Helper()
	c := append([]string{"--json", "doctor"}, args...)
	out, code := h.callOut(c...)
	var r report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		h.t.Fatalf("%v printed %q: %v", c, out, err)
	}
	return r, code
}

// file writes a file below the home.
func (h *newcomersHome) file(name, text string, mode os.FileMode) {
	h.t.Helper()
	name = filepath.Join(h.home, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		h.t.Fatal(err)
	}
	h.chmod(name, mode)
}

func (h *newcomersHome) chmod(name string, mode os.FileMode) {
	h.t.Helper()
	if !filepath.IsAbs(name) {
		name = filepath.Join(h.home, name)
	}
	if err := os.Chmod(name, mode); err != nil {
		h.t.Fatal(err)
	}
}

// Places of a home that the faults are planted in.
const (
	confDir  = ".config/passepartout/"
	stateDir = ".local/state/passepartout/"
	dataDir  = ".local/share/passepartout/"
)

// healthy is a home in which nothing is wrong: notes, a vault, a record.
func healthy(t *testing.T) *newcomersHome {
	t.Helper()
	h := bareHome(t, "LANG=C.UTF-8")
	h.file("memex/inbox/inbox.org", "* TODO Something\n:PROPERTIES:\n:ID: one\n:END:\n", 0o600)
	h.file(confDir+"env", "PROVIDER_CASCADE=reflex\n", 0o600)
	if out, code := h.call("sk-canary-11111111", "vault", "set", "TOKEN", "--guard", "file"); code != 0 {
		t.Fatalf("exit %d: %s", code, out)
	}
	h.file(dataDir+"skills/.keep", "", 0o600)
	return h
}

// lived is a healthy home whose daemon has run and ended.
func lived(t *testing.T) *newcomersHome {
	t.Helper()
	h := healthy(t)
	if out, code := h.call("", "list my todos"); code != 0 {
		t.Fatalf("exit %d: %s", code, out)
	}
	stopDaemon(filepath.Join(h.home, stateDir, "daemon.lock"))
	return h
}

// A fault is something wrong, which doctor must find, and mend if it says so.
type fault struct {
	name     string
	id       string
	severity string
	mends    bool
	home     func(*testing.T) *newcomersHome // nil: healthy
	plant    func(h *newcomersHome)
}

func faults() []fault {
	return []fault{
		{name: "a setting that is misspelt", id: "settings", severity: "error", plant: func(h *newcomersHome) {
			h.file(confDir+"env", "MEMEX_USR=Jean\n", 0o600)
		}},
		{name: "a setting that is malformed", id: "settings", severity: "error", plant: func(h *newcomersHome) {
			h.file(confDir+"env", "PASSEPARTOUT_APPROVAL_EXPIRY=forever\n", 0o600)
		}},
		{name: "settings others can read", id: "settings.mode", severity: "error", mends: true, plant: func(h *newcomersHome) { h.chmod(confDir+"env", 0o644) }},
		{name: "a key in settings others can read", id: "settings.mode", severity: "error", mends: true, plant: func(h *newcomersHome) {
			h.file(confDir+"env", "OPENAI_API_KEY=sk-canary-2\nPROVIDER_CASCADE=reflex\n", 0o640)
		}},
		{name: "a key in the settings", id: "settings.secrets", severity: "warning", plant: func(h *newcomersHome) {
			h.file(confDir+"env", "OPENAI_API_KEY=sk-canary-2\nPROVIDER_CASCADE=reflex\n", 0o600)
		}},
		{name: "a settings folder others can write", id: "settings.folder", severity: "error", mends: true, plant: func(h *newcomersHome) { h.chmod(confDir, 0o777) }},
		{name: "a vault others can read", id: "vault.mode", severity: "error", mends: true, plant: func(h *newcomersHome) { h.chmod(confDir+"vault.age", 0o644) }},
		{name: "a vault's key others can read", id: "vault.mode", severity: "error", mends: true, plant: func(h *newcomersHome) { h.chmod(confDir+"vault.key", 0o604) }},
		{name: "a damaged vault", id: "vault", severity: "error", plant: func(h *newcomersHome) { h.file(confDir+"vault.age", "age-encryption.org/v1\n", 0o600) }},
		{name: "a vault without its key", id: "vault", severity: "warning", plant: func(h *newcomersHome) { h.remove(confDir + "vault.key") }},
		{name: "a passphrase others can read", id: "vault.passphrase", severity: "error", mends: true, plant: func(h *newcomersHome) {
			h.file("phrase", "correct horse\n", 0o644)
			h.file(confDir+"env", "PROVIDER_CASCADE=reflex\nPASSEPARTOUT_VAULT_PASSPHRASE_FILE=~/phrase\n", 0o600)
		}},
		{name: "no memex", id: "memex", severity: "error", mends: true, plant: func(h *newcomersHome) { h.remove("memex") }},
		{name: "a memex that is a file", id: "memex", severity: "error", plant: func(h *newcomersHome) { h.remove("memex"); h.file("memex", "", 0o600) }},
		{name: "a file nobody can read", id: "memex.unreadable", severity: "error", plant: func(h *newcomersHome) {
			if err := unix.Mkfifo(filepath.Join(h.home, "memex", "pipe.org"), 0o600); err != nil {
				h.t.Fatal(err)
			}
		}},
		{name: "an identifier that is there twice", id: "memex.ids", severity: "error", plant: func(h *newcomersHome) {
			h.file("memex/notes/other.org", "* Other\n:PROPERTIES:\n:ID: one\n:END:\n", 0o600)
		}},
		{name: "a file that is not text", id: "memex.text", severity: "warning", plant: func(h *newcomersHome) { h.file("memex/latin.org", "* Caf\xe9\n", 0o600) }},
		{name: "a link to nothing", id: "memex.links", severity: "warning", plant: func(h *newcomersHome) { h.link("/nowhere/at/all.org", "memex/gone.org") }},
		{name: "a conflicting copy", id: "memex.copies", severity: "warning", plant: func(h *newcomersHome) {
			h.file("memex/notes.sync-conflict-20261101-ABC.org", "* Copy\n", 0o600)
		}},
		{name: "a policy that does not load", id: "policy", severity: "error", plant: func(h *newcomersHome) {
			h.file("memex/system/permissions.org", "| tool | level |\n|------+-------|\n| read-file | maybe |\n", 0o600)
		}},
		{name: "a policy others can change", id: "policy.mode", severity: "error", mends: true, plant: func(h *newcomersHome) {
			h.file("memex/system/permissions.org", "| tool | level |\n|------+-------|\n| cli.message | allow |\n", 0o666)
		}},
		{name: "a table of tools without answers", id: "policy.mute", severity: "warning", plant: func(h *newcomersHome) {
			h.file("memex/system/permissions.org", "| tool | level |\n|------+-------|\n| read-file | allow |\n", 0o600)
		}},
		{name: "a record that was changed", id: "journal", severity: "error", home: lived, plant: func(h *newcomersHome) {
			h.rewrite(stateDir+"journal", func(s string) string { return strings.Replace(s, ":SEQ 1 ", ":SEQ 9 ", 1) })
		}},
		{name: "a record with a torn end", id: "journal", severity: "warning", home: lived, plant: func(h *newcomersHome) {
			h.rewrite(stateDir+"journal", func(s string) string { return s + "(:SEQ 99 :AT \"20" })
		}},
		{name: "a state directory others can enter", id: "state", severity: "error", mends: true, home: lived, plant: func(h *newcomersHome) { h.chmod(stateDir, 0o755) }},
		{name: "a state directory that is a file", id: "state", severity: "error", plant: func(h *newcomersHome) { h.file(".local/state/passepartout", "", 0o600) }},
		{name: "a state directory in the memex", id: "places", severity: "error", plant: func(h *newcomersHome) {
			h.file(confDir+"env", "PROVIDER_CASCADE=reflex\nPASSEPARTOUT_STATE_DIR=~/memex/state\n", 0o600)
		}},
		{name: "commands that may write anywhere", id: "sandbox.roots", severity: "error", plant: func(h *newcomersHome) {
			h.file(confDir+"env", "PROVIDER_CASCADE=reflex\nPASSEPARTOUT_WRITE_ROOTS=~\n", 0o600)
		}},
		{name: "skills others can put there", id: "skills.folder", severity: "error", mends: true, plant: func(h *newcomersHome) { h.chmod(dataDir+"skills", 0o777) }},
		{name: "a skill that does not load", id: "skills", severity: "error", plant: func(h *newcomersHome) {
			h.file(dataDir+"skills/broken.org", "#+TITLE: broken\n* Code\n#+begin_src lisp\n(defun broken (\n#+end_src\n", 0o600)
		}},
		{name: "grants that make no sense", id: "skills.grants", severity: "error", plant: func(h *newcomersHome) {
			h.file(stateDir+"skills/grants", "(nonsense", 0o600)
			h.chmod(stateDir, 0o700)
		}},
		{name: "a provider without a key", id: "models.key", severity: "warning", plant: func(h *newcomersHome) {
			h.file(confDir+"env", "PROVIDER_CASCADE=anthropic,reflex\n", 0o600)
		}},
		{name: "a budget that is no sum", id: "models", severity: "error", plant: func(h *newcomersHome) {
			h.file(confDir+"env", "PROVIDER_CASCADE=reflex\nDAY_BUDGET_USD=plenty\n", 0o600)
		}},
		{name: "a route that is none", id: "models.routes", severity: "error", plant: func(h *newcomersHome) { h.file(stateDir+"models", "nonsense\n", 0o600) }},
		{name: "a ledger that does not read", id: "models.costs", severity: "error", plant: func(h *newcomersHome) {
			h.file(stateDir+"costs.jsonl", "{\"at\":\n{}\n", 0o600)
		}},
		{name: "plans that cannot be read", id: "plans", severity: "error", home: lived, plant: func(h *newcomersHome) {
			h.file(stateDir+"flight/"+firstFile(h, stateDir+"flight"), "00000002 00000000 ()\n00000002 00000000 ()\n", 0o600)
		}},
		{name: "a socket a dead daemon left", id: "daemon.socket", severity: "warning", mends: true, plant: func(h *newcomersHome) {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: h.socket(), Net: "unix"})
			if err != nil {
				h.t.Fatal(err)
			}
			l.SetUnlinkOnClose(false)
			l.Close()
		}},
		{name: "a file where the socket goes", id: "daemon.socket", severity: "error", plant: func(h *newcomersHome) {
			if err := os.WriteFile(h.socket(), nil, 0o600); err != nil {
				h.t.Fatal(err)
			}
		}},
		{name: "somebody else on the socket", id: "daemon", severity: "error", plant: func(h *newcomersHome) {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: h.socket(), Net: "unix"})
			if err != nil {
				h.t.Fatal(err)
			}
			h.t.Cleanup(func() { l.Close() })
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
					c.Close()
				}
			}()
		}},
		{name: "a token others can read", id: "token", severity: "error", mends: true, plant: func(h *newcomersHome) {
			h.file(confDir+"env", "PROVIDER_CASCADE=reflex\nPASSEPARTOUT_TCP=127.0.0.1:9\n", 0o600)
			h.file(stateDir+"token", "0123456789abcdef0123\n", 0o644)
		}},
		{name: "no signal-cli", id: "gateways.signal", severity: "error", plant: func(h *newcomersHome) {
			h.file(confDir+"env", "PROVIDER_CASCADE=reflex\nSIGNAL_ACCOUNT=+15550001\nSIGNAL_CLI=127.0.0.1:1\n", 0o600)
		}},
		{name: "a webhook nobody listens for", id: "gateways.telegram", severity: "error", plant: func(h *newcomersHome) {
			h.file(confDir+"env", "PROVIDER_CASCADE=reflex\nTELEGRAM_WEBHOOK_URL=https://example.org/t\n", 0o600)
		}},
		{name: "a service for another program", id: "service", severity: "warning", mends: true, plant: func(h *newcomersHome) {
			if out, code := h.call("", "service", "install", "--no-start"); code != 0 {
				h.t.Fatal(out)
			}
			unit := filepath.Join(h.home, ".config/systemd/user/passepartout.service")
			raw, err := os.ReadFile(unit)
			if err != nil {
				h.t.Fatal(err)
			}
			h.file(".config/systemd/user/passepartout.service", strings.Replace(string(raw), "ExecStart=\"", "ExecStart=\"/old", 1), 0o600)
		}},
	}
}

func TestDoctorFindsEveryPlantedFaultAndMendsWhatItSaysItCan(t *testing.T) {
	if testing.Short() {
		t.Skip("plants many faults")
	}
	h := lived(t)
	if r, code := h.doctor("--lint"); code == 2 {
		t.Fatalf("a healthy home is found broken: %+v", r)
	}
	for _, f := range faults() {
		t.Run(strings.ReplaceAll(f.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			home := f.home
			if home == nil {
				home = healthy
			}
			h := home(t)
			f.plant(h)
			r, code := h.doctor("--lint")
			severity, fix := r.find(f.id)
			if severity != f.severity || (fix != "") != f.mends {
				t.Fatalf("%s: found as %q, mended by %q, want %q, mended %v: %+v", f.id, severity, fix, f.severity, f.mends, r)
			}
			if want := map[string]int{"warning": 1, "error": 2}[f.severity]; code < want {
				t.Errorf("--lint exits %d, want %d", code, want)
			}
			if !f.mends {
				return
			}
			if r, _ = h.doctor("--fix"); len(r.Mended) == 0 {
				t.Errorf("nothing was mended: %+v", r)
			}
			if r, _ := h.doctor("--lint"); r.Errors > 0 {
				t.Errorf("after mending: %+v", r)
			} else if severity, _ := r.find(f.id); severity != "ok" {
				t.Errorf("mended, and found again: %+v", r)
			}
		})
	}
}
