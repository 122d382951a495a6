package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"passepartout/internal/config"
)

// serviceMark stands in every file we write for a service manager, so that a file
// of the user's own is not taken for one.
const serviceMark = "Written by passepartout service install."

// A manager is a service manager: where its file is and what it says.
type manager struct {
	name string
	path string
	text string
	// Commands that make it take notice, and those before the file goes.
	start, stop [][]string
	state       []string // prints how it is
}

func (a *app) serviceCommand() *cobra.Command {
	var kind string
	var show, later bool
	c := &cobra.Command{
		Use: "service", Short: "Have the system start the daemon when you log in",
		Long: `Have the system start the daemon when you log in and start it anew when it fails: by
a systemd user unit on Linux, by a launch agent on macOS. It needs no privileges and
gets none. Without it the daemon starts when it is needed.`,
		Example: "  passepartout service install\n  passepartout service status\n  passepartout service install --print",
	}
	install := &cobra.Command{
		Use: "install", Short: "Write the service file and start it", Args: cobra.NoArgs,
		Long:    "Write the service file for this binary where it lies now, and start it. A file that\nsomebody else wrote is left alone.",
		Example: "  passepartout service install\n  passepartout service install --no-start\n  passepartout service install --print --kind systemd",
		RunE:    func(*cobra.Command, []string) error { return a.serviceInstall(kind, show, later) },
	}
	install.Flags().StringVar(&kind, "kind", "", "systemd or launchd (default: this system's)")
	install.Flags().BoolVar(&show, "print", false, "print the file and write nothing")
	install.Flags().BoolVar(&later, "no-start", false, "write the file only")
	c.AddCommand(
		install,
		&cobra.Command{
			Use: "uninstall", Short: "Stop the service and remove its file", Args: cobra.NoArgs, Example: "  passepartout service uninstall",
			RunE: func(*cobra.Command, []string) error { return a.serviceUninstall() },
		},
		&cobra.Command{
			Use: "status", Short: "Say whether the service is installed, current and running", Args: cobra.NoArgs, Example: "  passepartout service status --json",
			RunE: func(*cobra.Command, []string) error { return a.serviceStatus() },
		},
	)
	return c
}

// manager is the service manager of a kind, with what it is to be told.
func (a *app) manager(kind string) (manager, error) {
	self, err := os.Executable()
	if err != nil {
		return manager{}, err
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return manager{}, err
	}
	if kind == "" {
		kind = map[string]string{"linux": "systemd", "darwin": "launchd"}[runtime.GOOS]
	}
	home := a.getenv("HOME")
	if !filepath.IsAbs(home) {
		return manager{}, errors.New("HOME is not set to an absolute path")
	}
	environment := map[string]string{}
	if dir := a.getenv("PASSEPARTOUT_CONFIG_DIR"); dir != "" {
		environment["PASSEPARTOUT_CONFIG_DIR"] = dir
	}
	switch kind {
	case "systemd":
		dir := a.getenv("XDG_CONFIG_HOME")
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(home, ".config")
		}
		const unit = "passepartout.service"
		ctl := func(args ...string) []string { return append([]string{"systemctl", "--user"}, args...) }
		return manager{
			name: kind, path: filepath.Join(dir, "systemd", "user", unit), text: systemdUnit(self, environment),
			start: [][]string{ctl("daemon-reload"), ctl("enable", "--now", unit)},
			stop:  [][]string{ctl("disable", "--now", unit)}, state: ctl("is-active", unit),
		}, nil
	case "launchd":
		const label = "org.passepartout.daemon"
		domain := "gui/" + strconv.Itoa(os.Getuid())
		path := filepath.Join(home, "Library", "LaunchAgents", label+".plist")
		return manager{
			name: kind, path: path, text: launchdPlist(label, self, filepath.Join(home, "Library", "Logs", "passepartout.log"), environment),
			start: [][]string{{"launchctl", "bootstrap", domain, path}},
			stop:  [][]string{{"launchctl", "bootout", domain + "/" + label}}, state: []string{"launchctl", "print", domain + "/" + label},
		}, nil
	}
	return manager{}, usageError("want systemd or launchd, found %q", kind)
}

// systemdUnit shuts off what the daemon never needs. What would need a mount
// namespace or capabilities is left to our own sandbox, which uses them itself:
// commands run in namespaces and filters of their own, stricter than these.
func systemdUnit(self string, environment map[string]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# %s
[Unit]
Description=Passepartout, a personal agent
Documentation=man:passepartout(1)

[Service]
Type=notify
NotifyAccess=main
ExecStart=%s daemon
Restart=on-failure
RestartSec=2
TimeoutStopSec=30
UMask=0077
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
LimitCORE=0
TasksMax=4096
`, serviceMark, systemdQuote(self))
	for key, value := range environment {
		fmt.Fprintf(&b, "Environment=%s\n", systemdQuote(key+"="+value))
	}
	b.WriteString("\n[Install]\nWantedBy=default.target\n")
	return b.String()
}

// systemdQuote quotes a word so that neither specifiers nor variables are in it.
func systemdQuote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "$", "$$").Replace(s) + `"`
}

func launchdPlist(label, self, log string, environment map[string]string) string {
	var b strings.Builder
	text := func(s string) string {
		var out bytes.Buffer
		_ = xml.EscapeText(&out, []byte(s)) // a buffer takes everything
		return out.String()
	}
	fmt.Fprintf(&b, `<?xml version="1.0" encoding="UTF-8"?>
<!-- %s -->
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>Label</key><string>%s</string>
	<key>ProgramArguments</key><array><string>%s</string><string>daemon</string></array>
	<key>RunAtLoad</key><true/>
	<key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
	<key>ProcessType</key><string>Background</string>
	<key>Umask</key><integer>63</integer>
	<key>StandardErrorPath</key><string>%s</string>
`, serviceMark, text(label), text(self), text(log))
	for key, value := range environment {
		fmt.Fprintf(&b, "\t<key>EnvironmentVariables</key><dict><key>%s</key><string>%s</string></dict>\n", text(key), text(value))
	}
	b.WriteString("</dict>\n</plist>\n")
	return b.String()
}

func (a *app) serviceInstall(kind string, show, later bool) error {
	m, err := a.manager(kind)
	if err != nil {
		return err
	}
	if show {
		_, err := io.WriteString(a.out, m.text)
		return err
	}
	if have, err := os.ReadFile(m.path); err == nil && !strings.Contains(string(have), serviceMark) {
		return fmt.Errorf("%s was written by somebody else: move it away first", m.path)
	}
	if err := config.WriteFile(m.path, []byte(m.text)); err != nil {
		return err
	}
	fmt.Fprintf(a.errw, "Written: %s\n", m.path)
	if later {
		return nil
	}
	for _, argv := range m.start {
		if out, err := a.program(argv); err != nil {
			return fmt.Errorf("the file is written, but it was not started; say %s: %w\n%s", strings.Join(argv, " "), err, printable(out))
		}
	}
	if m.name == "systemd" {
		fmt.Fprintln(a.errw, "It runs while you are logged in. To have it run always: loginctl enable-linger")
	}
	return nil
}

func (a *app) serviceUninstall() error {
	m, err := a.manager("")
	if err != nil {
		return err
	}
	have, err := os.ReadFile(m.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		fmt.Fprintln(a.errw, "No service is installed.")
		return nil
	case err != nil:
		return err
	case !strings.Contains(string(have), serviceMark):
		return fmt.Errorf("%s was written by somebody else", m.path)
	}
	for _, argv := range m.stop {
		if out, err := a.program(argv); err != nil { // it may not run
			fmt.Fprintf(a.errw, "%s: %v %s\n", strings.Join(argv, " "), err, printable(out))
		}
	}
	return os.Remove(m.path)
}

// serviceState says how the service is: absent, foreign, outdated or current.
func (a *app) serviceState() (m manager, state string, err error) {
	if m, err = a.manager(""); err != nil {
		return m, "", err
	}
	have, err := os.ReadFile(m.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return m, "absent", nil
	case err != nil:
		return m, "", err
	case !strings.Contains(string(have), serviceMark):
		return m, "foreign", nil
	case string(have) != m.text:
		return m, "outdated", nil
	}
	return m, "current", nil
}

func (a *app) serviceStatus() error {
	m, state, err := a.serviceState()
	if err != nil {
		return err
	}
	running := "unknown"
	if state != "absent" {
		out, err := a.program(m.state)
		switch word, _, _ := strings.Cut(strings.TrimSpace(out), "\n"); {
		case m.name == "systemd" && word != "" && !strings.Contains(word, " "):
			running = word
		case m.name == "launchd" && err == nil:
			running = "loaded"
		}
	}
	if a.json {
		err = a.printJSON(map[string]string{"manager": m.name, "file": m.path, "installed": state, "running": running})
	} else {
		_, err = fmt.Fprintf(a.out, "%s: %s, %s, running: %s\n", m.name, m.path, state, printable(running))
	}
	if err == nil && state != "current" {
		return &exitError{code: exitFailed}
	}
	return err
}

// program runs a program of the system's and returns what it printed.
func (a *app) program(argv []string) (string, error) {
	bin, err := lookUp(argv[0], a.getenv("PATH"))
	if err != nil {
		return "", err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer r.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return "", errors.Join(err, w.Close())
	}
	defer null.Close()
	p, err := os.StartProcess(bin, argv, &os.ProcAttr{Env: a.environ, Files: []*os.File{null, w, w}})
	w.Close()
	if err != nil {
		return "", err
	}
	const most = 64 << 10
	out, rerr := io.ReadAll(io.LimitReader(r, most))
	st, err := p.Wait()
	if err == nil && !st.Success() {
		err = errors.New(st.String())
	}
	return string(out), errors.Join(err, rerr)
}
