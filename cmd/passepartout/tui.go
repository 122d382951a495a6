package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"passepartout/internal/daemon"
	"passepartout/internal/durable"
	"passepartout/internal/tui"
)

func (a *app) tuiCommand() *cobra.Command {
	var session, theme string
	c := &cobra.Command{
		Use: "tui", Short: "Open the terminal client", Args: cobra.NoArgs,
		Long: `Open the terminal client: a conversation in which every action shows how the
gates ruled on it and every question can be answered in place. docs/tui.md lists
its keys and commands.`,
		Example: "  passepartout tui\n  passepartout tui -s trip --theme light",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !a.canDraw() {
				return usageError("the terminal client needs a terminal that can move its cursor; try `passepartout chat`")
			}
			return a.tuiWith(cmd.Context(), session, theme)
		},
	}
	c.Flags().StringVarP(&session, "session", "s", "", "the conversation to continue (default main)")
	c.Flags().StringVar(&theme, "theme", "", "auto, dark, light, contrast or mono (default auto)")
	return c
}

// tui opens the terminal client with the theme the terminal suggests.
func (a *app) tui(ctx context.Context, session string) error { return a.tuiWith(ctx, session, "") }

// canDraw reports whether there is a terminal on both sides that is more than a
// line printer.
func (a *app) canDraw() bool {
	term := a.getenv("TERM")
	return isTerminal(a.in) && isTerminal(a.out) && term != "" && term != "dumb"
}

func (a *app) tuiWith(ctx context.Context, session, theme string) error {
	cfg, err := a.config() // read before the screen is taken, and before dials share it
	if err != nil {
		return err
	}
	switch theme {
	case "", "auto", "dark", "light", "contrast", "mono":
	default:
		return usageError("theme %q: want auto, dark, light, contrast or mono", theme)
	}
	if theme == "" && a.getenv("NO_COLOR") != "" {
		theme = "mono"
	}
	if err := durable.MkdirAll(cfg.StateDir, 0o700); err != nil {
		return err
	}
	// A window that stays open for weeks should be small rather than quick to
	// collect: text that has scrolled by is most of what it holds.
	debug.SetGCPercent(clientGC)
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP, syscall.SIGTERM)
	defer stop()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		a.watchTerminal(ctx, stop)
	}()
	defer func() { stop(); <-watched }()
	a.work = new(atomic.Pointer[daemon.Work])
	return tui.Run(ctx, tui.Options{
		Starting: func() (string, int, int) {
			if w := a.work.Load(); w != nil {
				return w.What, w.Have, w.Want
			}
			return "", 0, 0
		},
		Dial: func(ctx context.Context) (tui.Conn, error) {
			c, err := a.connect(ctx, "tui")
			if err != nil {
				return nil, err
			}
			return screenConn{c}, nil
		},
		Session: session, Assistant: cfg.Assistant, Theme: theme, ASCII: !utf8Locale(a.getenv), Mouse: true,
		Links:   a.getenv("TERM") != "linux",
		History: filepath.Join(cfg.StateDir, "history"), Draft: filepath.Join(cfg.StateDir, "draft"),
		Editor: a.editor(), TempDir: cfg.StateDir,
		Input: a.in, Output: a.out, Environ: a.environ,
	})
}

// clientGC is by how much of what is in use the client's memory may grow before it
// is collected, in percent.
const clientGC = 10

// terminalPoll is how often the client looks whether its terminal is still there.
const terminalPoll = 2 * time.Second

// watchTerminal ends the client when its terminal is gone. The signal that should
// say so does not reach it from under every parent, such as make.
func (a *app) watchTerminal(ctx context.Context, stop func()) {
	f, ok := a.in.(*os.File)
	if !ok {
		return
	}
	tick := time.NewTicker(terminalPoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if _, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err != nil {
			stop()
			return
		}
	}
}

// A screenConn is a client as the terminal client wants it.
type screenConn struct{ *client }

// Close hangs up.
func (c screenConn) Close() error { return c.conn.Close() }

// utf8Locale reports whether the locale says that text is UTF-8. No locale at all
// is the C locale, which is ASCII.
func utf8Locale(getenv func(string) string) bool {
	name := strings.ToLower(cmp.Or(getenv("LC_ALL"), getenv("LC_CTYPE"), getenv("LANG")))
	return strings.Contains(name, "utf-8") || strings.Contains(name, "utf8")
}

// editor is how a person edits a file here, or nil if nobody said.
func (a *app) editor() func(string) tea.ExecCommand {
	argv := strings.Fields(cmp.Or(a.getenv("VISUAL"), a.getenv("EDITOR")))
	if len(argv) == 0 {
		return nil
	}
	return func(file string) tea.ExecCommand {
		return &editing{argv: append(argv[:len(argv):len(argv)], file), path: a.getenv("PATH"), environ: a.environ}
	}
}

// An editing is one run of the person's editor in the terminal.
type editing struct {
	argv    []string
	path    string
	environ []string
	files   [3]*os.File
}

// SetStdin takes the terminal's input; what is no file leaves the process's own.
func (e *editing) SetStdin(r io.Reader) { e.files[0], _ = r.(*os.File) }

// SetStdout takes the terminal's output.
func (e *editing) SetStdout(w io.Writer) { e.files[1], _ = w.(*os.File) }

// SetStderr takes the terminal's output for errors.
func (e *editing) SetStderr(w io.Writer) { e.files[2], _ = w.(*os.File) }

// Run starts the editor and waits for it.
func (e *editing) Run() error {
	files := make([]*os.File, len(e.files))
	for i, std := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		files[i] = cmp.Or(e.files[i], std)
	}
	bin, err := lookUp(e.argv[0], e.path)
	if err != nil {
		return err
	}
	p, err := os.StartProcess(bin, e.argv, &os.ProcAttr{Env: e.environ, Files: files})
	if err != nil {
		return fmt.Errorf("editor %s: %w", e.argv[0], err)
	}
	st, err := p.Wait()
	if err == nil && !st.Success() {
		err = errors.New(st.String())
	}
	if err != nil {
		return fmt.Errorf("editor %s: %w", e.argv[0], err)
	}
	return nil
}

// lookUp finds a program as a shell would, but never in the working directory.
func lookUp(name, path string) (string, error) {
	if strings.ContainsRune(name, filepath.Separator) {
		return name, nil
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		bin := filepath.Join(dir, name)
		if st, err := os.Stat(bin); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return bin, nil
		}
	}
	return "", fmt.Errorf("editor %s: not found on PATH", name)
}
