package place_test

import (
	"path"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"passepartout/internal/place"
)

var layout = place.Layout{
	Home: "/home/ada", User: "ada",
	WriteRoots: []string{"/home/ada/work", "/home/ada/memex", "/tmp/passepartout"},
	ReadRoots:  []string{"/"},
	Own:        []string{"/home/ada/memex/system", "/home/ada/.local/state/passepartout", "/run/user/1000/passepartout.sock"},
}

func TestResolveGivesTheOnePathThatIsMeant(t *testing.T) {
	const cwd = "/home/ada/work"
	for in, want := range map[string]string{
		"":                              "/home/ada/work",
		".":                             "/home/ada/work",
		"a/b":                           "/home/ada/work/a/b",
		"../../..//etc///passwd":        "/etc/passwd",
		"~":                             "/home/ada",
		"~/x":                           "/home/ada/x",
		"~ada/x":                        "/home/ada/x",
		"~root/x":                       "/root/x",
		"~bob/x":                        "/home/bob/x",
		"~root/../home/ada":             "/home/ada",
		"~+/x":                          "/home/ada/work/x",
		"./~/x":                         "/home/ada/work/~/x",
		"..hidden":                      "/home/ada/work/..hidden",
		"/proc/self/root/etc/shadow":    "/etc/shadow",
		"/proc/1/root/etc/shadow":       "/etc/shadow",
		"/proc/thread-self/root/etc":    "/etc",
		"/proc/self/task/7/root/etc":    "/etc",
		"/proc/self/cwd/x":              "/home/ada/work/x",
		"/proc/self/cwd/../.ssh":        "/home/ada/.ssh",
		"/proc/self/root/../etc":        "/etc",
		"/proc/self/fd/3":               "/dev/fd/3",
		"/dev/fd/3":                     "/dev/fd/3",
		"/dev/fd/../environ":            "/proc/self/environ",
		"/tmp/../proc/self/root/x":      "/x",
		"file:///etc/shadow":            "/etc/shadow",
		"FILE://localhost/etc/shadow":   "/etc/shadow",
		"file:/etc/shadow":              "/etc/shadow",
		"/home/ada/work/../.bashrc":     "/home/ada/.bashrc",
		"/home/ada/./work//sub/../x.md": "/home/ada/work/x.md",
	} {
		if got := layout.Resolve(cwd, in); got != want {
			t.Errorf("Resolve(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestResolveFollowsLinksBeforeItAppliesDotDot(t *testing.T) {
	links := map[string]string{
		"/home/ada/work/out":       "/etc/ssl",
		"/home/ada/work/notes.txt": "/home/ada/.ssh/id_rsa",
		"/home/ada/work/dangling":  "/home/ada/.bashrc",
		"/home/ada/work/proc":      "/proc/self",
	}
	l := layout
	l.Real = fakeLinks(links)
	for in, want := range map[string]string{
		"out/../shadow":   "/etc/shadow",
		"notes.txt":       "/home/ada/.ssh/id_rsa",
		"dangling":        "/home/ada/.bashrc",
		"out/new/file":    "/etc/ssl/new/file",
		"new/file":        "/home/ada/work/new/file",
		"proc/environ":    "/proc/self/environ",
		"proc/cwd/x":      "/home/ada/work/x",
		"out/./x":         "/etc/ssl/x",
		"./new/../out/.x": "/etc/ssl/.x",
	} {
		if got := l.Resolve("/home/ada/work", in); got != want {
			t.Errorf("Resolve(%q) = %q, want %q", in, got, want)
		}
	}
}

// fakeLinks behaves like a file system in which only the given links and their parents exist.
func fakeLinks(links map[string]string) func(string) (string, bool) {
	return func(p string) (string, bool) {
		for range 8 {
			changed := false
			for from, to := range links {
				if p == from || strings.HasPrefix(p, from+"/") {
					p, changed = to+p[len(from):], true
				}
			}
			if !changed {
				break
			}
		}
		return p, !strings.Contains(p, "/new")
	}
}

func TestKindNamesWhatAPathIs(t *testing.T) {
	for want, paths := range map[place.Kind][]string{
		place.Ordinary: {
			"/home/ada/work/main.go", "/home/ada/work/docs/tokenizer.org", "/home/ada/notes/secretary.org", "/home/ada/work/..hidden/file",
			"/home/ada/work/.env.example", "/home/ada/work/.env.sample", "/home/ada/.ssh/id_ed25519.pub", "/home/ada/work/server.crt", "/home/ada/work/ca.pem",
			"/home/ada/work/fullchain.pem", "/home/ada/work/keyboard.txt", "/home/ada/work/monkey.go", "/home/ada/work/passport.org", "/home/ada/work/environment.yml",
			"/home/ada/work/password-policy.md", "/home/ada/work/src/secrets/rotation.md", "/home/ada/work/token.go", "/home/ada/work/notes/bashrc-tips.md",
			"/home/ada/work/Makefile", "/home/ada/work/.gitignore", "/home/ada/work/dist.tar.gz.asc", "/home/ada/work/SHA256SUMS.asc", "/tmp/build/out", "/var/tmp/x", "/dev/shm/x",
			"/home/ada/.environment-notes", "/home/ada/work/history.org", "/home/ada/work/profile.md", "/home/ada/work/config/config.go", "/home/ada/work/credentials_test.go",
			"/home/ada/work/hooks/useState.ts", "/home/ada/work/author.json", "/home/ada/Documents/identity.pdf", "/home/ada/work/example-credentials.yaml", "/home/ada/work/design-tokens.json",
			"/home/ada/work/passwd.tar.gz", "/home/ada/work/passwords.md", "/home/ada/work/token.zip", "/home/ada/work/secret.tar",
		},
		place.Secret: {
			"/home/ada/work/.env", "/home/ada/work/.env.production", "/home/ada/.ssh/id_rsa", "/home/ada/.ssh", "/home/ada/.ssh/config", "/home/ada/backup/id_ed25519",
			"/home/ada/.gnupg/private-keys-v1.d/x.key", "/etc/shadow", "/ETC/Shadow", "/home/ada/.AWS/credentials", "/home/ada/.kube/config", "/home/ada/.config/gh/hosts.yml",
			"/home/ada/.mozilla/firefox/abc.default/logins.json", "/home/ada/.config/google-chrome/Default/Cookies", "/home/ada/.bash_history", "/home/ada/.zsh_history",
			"/home/ada/.password-store/mail.gpg", "/home/ada/db.kdbx", "/home/ada/.bitcoin/wallet.dat", "/home/ada/.npmrc", "/home/ada/.pypirc", "/home/ada/.netrc",
			"/home/ada/.cargo/credentials.toml", "/home/ada/.docker/config.json", "/home/ada/.config/Signal/sql/db.sqlite", "/home/ada/Library/Keychains/login.keychain-db",
			"/home/ada/work/credentials.json", "/home/ada/work/secrets.yaml", "/home/ada/work/server.key", "/home/ada/work/prod.tfstate", "/home/ada/.local/share/fish/fish_history",
			"/run/secrets/db", "/var/run/secrets/kubernetes.io/serviceaccount/token", "/home/ada/.claude/.credentials.json", "/home/ada/.codex/auth.json", "/home/ada/.pgpass",
			"/home/ada/work/%2e%2e/%2e%2e/%2essh/id_rsa", "/home/ada/.s\u200bsh/id_rsa", "/home/ada/.\u00dfh/id_rsa", "/home/ada/.\u017f\u017fh/id_rsa", "/home/ada/.ssh./id_rsa", `/home/ada/.ssh\id_rsa`, "/home/ada/.git-credentials",
			"/home/ada/.config/rclone/rclone.conf", "/home/ada/work/client_secret_12.json", "/home/ada/work/my-service-account.json", "/etc/ssl/private/site.key", "/home/ada/work/passwords.txt", "/home/ada/work/prod-credentials.yaml", "/home/ada/work/token.json",
			"/home/ada/work/passwords.zip", "/home/ada/work/credentials.tar.gz", "/home/ada/work/passwd.txt", "/home/ada/site/.htpasswd",
		},
		place.Startup: {
			"/home/ada/.bashrc", "/home/ada/.zshrc", "/home/ada/.profile", "/etc/cron.d/x", "/etc/profile.d/x.sh", "/home/ada/.config/autostart/x.desktop",
			"/home/ada/.config/systemd/user/x.service", "/home/ada/Library/LaunchAgents/x.plist", "/home/ada/work/.git/hooks/pre-commit", "/home/ada/work/.git/config",
			"/home/ada/.gitconfig", "/home/ada/work/.gitattributes", "/home/ada/.ssh/authorized_keys", "/etc/ld.so.preload", "/etc/passwd", "/home/ada/work/pip.conf",
			"/home/ada/work/.Git/Hooks/post-checkout", "/var/spool/cron/crontabs/ada", "/home/ada/work/.github/workflows/ci.yml", "/home/ada/work/.husky/pre-push",
			"/home/ada/work/sitecustomize.py", "/home/ada/.vimrc", "/home/ada/work/.cargo/config.toml",
		},
		place.Agent: {
			"/home/ada/.claude/settings.json", "/home/ada/work/.claude/settings.json", "/home/ada/work/.Cursor/MCP.json", "/home/ada/.codex/rules/default.rules", "/home/ada/work/AGENTS.md",
			"/home/ada/work/CLAUDE.md", "/home/ada/work/.vscode/tasks.json", "/home/ada/work/.idea/runConfigurations/x.xml", "/home/ada/work/.mcp.json", "/home/ada/work/.cursorrules",
		},
		place.Own: {
			"/home/ada/memex/system/rules.org", "/home/ada/.local/state/passepartout/journal/0001", "/home/ada/.config/passepartout/env", "/run/user/1000/passepartout.sock",
			"/var/run/user/1000/passepartout.sock", "/home/ada/memex/SYSTEM/rules.org",
		},
		place.System:  {"/usr/bin/env", "/etc/os-release", "/boot/vmlinuz", "/var/lib/dpkg/status", "/sys/class/net", "/proc/cpuinfo", "/opt/x/bin"},
		place.Device:  {"/dev/sda", "/dev/nvme0n1p1", "/dev/mem", "/dev/tcp/evil.example/80", "/run/docker.sock", "/var/run/docker.sock", "/proc/kcore", "/dev/pts/3"},
		place.Sink:    {"/dev/null", "/dev/stdout", "/dev/tty", "/dev/urandom", "/dev/fd/63"},
		place.Process: {"/proc/self/environ", "/proc/1234/environ", "/proc/1234/mem", "/proc/77/fd/4", "/proc/77/task/78/environ", "/proc/12/cwd/x"},
		place.Top:     {"/", "/home", "/home/ada", "/home/bob", "/etc", "/tmp", "/home/ada/work", "/home/ada/memex", "/Users/ada", "/usr"},
		place.Unknown: {"", "relative/x", "/home/ada/x\x00.txt", "/home/ada/x\ny", `/home/ada/work/\\evil\share`, `/home/ada/work/\??\C:\x`, "/x/\xff", "/home/ada/%00x"},
	} {
		for _, p := range paths {
			if got := layout.Kind(p); got != want {
				t.Errorf("Kind(%q) = %v, want %v", p, got, want)
			}
		}
	}
}

func TestRootsAreComparedByElementNotByPrefix(t *testing.T) {
	for p, want := range map[string]bool{
		"/home/ada/work": true, "/home/ada/work/x": true, "/home/ada/work-evil/x": false, "/home/ada/workx": false, "/home/ada": false, "/home/ada/work/../x": false,
		"relative": false, "/home/ada/work/x\x00": false, "/tmp/passepartout/a": true, "/tmp/passepartout2": false,
	} {
		if got := layout.Writable(p); got != want {
			t.Errorf("Writable(%q) = %v, want %v", p, got, want)
		}
	}
	narrow := place.Layout{ReadRoots: []string{"/srv/a"}, WriteRoots: []string{"/srv/b"}}
	for p, want := range map[string]bool{"/srv/a/x": true, "/srv/b/x": true, "/srv/c": false} {
		if got := narrow.Readable(p); got != want {
			t.Errorf("Readable(%q) = %v, want %v", p, got, want)
		}
	}
	if (place.Layout{}).Readable("/") || (place.Layout{}).Writable("/tmp") {
		t.Error("the zero layout grants access")
	}
}

func TestARootThatIsALinkAdmitsItsTarget(t *testing.T) {
	l := layout
	l.Real = fakeLinks(map[string]string{"/home/ada/work": "/data/work"})
	if p := l.Resolve("/home/ada/work", "x"); !l.Writable(p) {
		t.Errorf("Writable(%q) = false below a linked root", p)
	}
}

func TestCoversSeesWhatGoesDownWithADirectory(t *testing.T) {
	for p, want := range map[string]bool{
		"/": true, "/home": true, "/home/ada": true, "/home/ada/work": true, "/home/ada/work/sub": false, "/tmp": true, "/tmp/x": false, "/home/ada/.local/state": true,
		"/home/ada/.local": true, "/home/ada/memex/system": true, "/home/ada/memex/notes": false, "/HOME/ADA": true, "/var/log": false,
	} {
		if got := layout.Covers(p); got != want {
			t.Errorf("Covers(%q) = %v, want %v", p, got, want)
		}
	}
}

func TestResolvedPathsAreCleanAndStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{"..", ".", "", "a", "~", "proc", "self", "root", "cwd", "dev", "fd", "3", "..b"}), 0, 9).Draw(t, "parts")
		in := strings.Join(parts, "/")
		got := layout.Resolve("/home/ada/work", in)
		if got != path.Clean(got) || !strings.HasPrefix(got, "/") {
			t.Fatalf("Resolve(%q) = %q is not a clean absolute path", in, got)
		}
		if again := layout.Resolve("/home/ada/work", got); again != got {
			t.Fatalf("Resolve(%q) = %q, resolved again %q", in, got, again)
		}
	})
}

func TestCaseNeverLowersAKind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SampledFrom([]string{"/home/ada/.ssh/id_rsa", "/etc/shadow", "/home/ada/.bashrc", "/home/ada/work/.cursor/mcp.json", "/dev/sda"}).Draw(t, "path")
		flip := rapid.SliceOfN(rapid.Bool(), len(p), len(p)).Draw(t, "flip")
		b := []byte(p)
		for i := range b {
			if flip[i] {
				b[i] = strings.ToUpper(p)[i]
			}
		}
		if want, got := layout.Kind(p), layout.Kind(string(b)); got != want {
			t.Fatalf("Kind(%q) = %v, want %v", b, got, want)
		}
	})
}

func FuzzKindNeverPanics(f *testing.F) {
	f.Add("/home/ada/work", "~/.ssh/../%2e%2e/x")
	f.Add("/", "/proc/self/root/\xff")
	f.Fuzz(func(t *testing.T, cwd, p string) {
		abs := layout.Resolve(cwd, p)
		k := layout.Kind(abs)
		if k == place.Ordinary && strings.ContainsRune(abs, 0) {
			t.Errorf("Kind(%q) = ordinary with a NUL", abs)
		}
		layout.Covers(abs)
	})
}

func BenchmarkKind(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		layout.Kind("/home/ada/work/internal/gate/shell/testdata/main.go")
	}
}

func BenchmarkResolve(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		layout.Resolve("/home/ada/work", "../memex/notes/daily.org")
	}
}
