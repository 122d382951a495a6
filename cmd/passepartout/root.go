package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"passepartout/internal/config"
	"passepartout/internal/daemon"
)

// An app is one run of the command line: its streams, its environment, and the
// settings once they are read.
type app struct {
	in      io.Reader
	out     io.Writer
	errw    io.Writer
	environ []string

	demo    bool // fall back to a demo memex
	noStart bool // do not start a daemon
	json    bool // results as JSON
	plain   bool // lines instead of a screen
	format  format
	stream  bool // print an answer as it comes

	// work is where the terminal client looks for how far the start of the daemon
	// is; nil lets stderr tell.
	work *atomic.Pointer[daemon.Work]

	cfg *config.Config
}

// root builds the command tree.
func (a *app) root() *cobra.Command {
	var session string
	var asksVersion bool
	root := &cobra.Command{
		Use:   "passepartout [TEXT…]",
		Short: "A personal agent: a model proposes, deterministic gates decide",
		Long: `A personal agent that lives in your own Org files.

Called alone in a terminal it joins the daemon, starting it if need be, and opens
a prompt. With input piped in, or words given, it answers on stdout.`,
		Example: `  passepartout                         # talk to it
  passepartout "what is due this week?"
  echo "list my todos" | passepartout
  passepartout why a-4kq2mx            # every gate's verdict on an action`,
		SilenceUsage: true, SilenceErrors: true,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if asksVersion {
				return a.version()
			}
			return a.talk(cmd, session, args)
		},
	}
	root.SetFlagErrorFunc(flagError)
	flags := root.PersistentFlags()
	flags.BoolVar(&a.demo, "demo", false, "use a throw-away demo memex when none is configured")
	flags.BoolVar(&a.noStart, "no-start", false, "do not start the daemon when it is not running")
	flags.BoolVar(&a.json, "json", false, "print results as JSON")
	flags.BoolVar(&a.plain, "plain", false, "talk line by line: for screen readers and simple terminals")
	root.Flags().StringVarP(&session, "session", "s", "", "the conversation to continue (default main)")
	root.Flags().BoolVar(&asksVersion, "version", false, "print the version of this binary")
	a.streamFlag(root)
	a.formatFlag(root)
	root.AddCommand(
		a.chatCommand(), a.sendCommand(), a.daemonCommand(), a.whyCommand(), a.journalCommand(),
		a.approvalsCommand(), a.approveCommand(), a.denyCommand(), a.answerCommand(), a.configCommand(), a.versionCommand(),
		a.modelsCommand(), a.costCommand(), a.promptCommand(), a.labelsCommand(),
		a.checkCommand(), a.policyCommand(), a.orgCommand(), a.memoryCommand(), a.agendaCommand(),
		a.lispCommand(), a.skillCommand(), a.tuiCommand(), a.undoCommand(), a.redoCommand(), a.doctorCommand(), a.recallCommand(), a.contextCommand(), a.focusCommand(), a.rulesCommand(),
		a.scheduleCommand(), a.statusCommand(), a.gatewayCommand(), a.gardenerCommand(), a.scribeCommand(), a.changedCommand(),
	)
	root.AddCommand(a.operations()...)
	a.explain(root)
	root.SetContext(context.Background())
	for _, c := range root.Commands() {
		walkCommands(c, noteUsage)
	}
	return root
}

// talk is what a bare call does: answer words or piped text, or open a prompt.
func (a *app) talk(root *cobra.Command, session string, words []string) error {
	ctx := root.Context()
	if name := slippedName(root, words); name != "" {
		fmt.Fprintf(a.errw, "passepartout: %q is no command, so the agent is asked; did you mean `passepartout %s`?\n", words[0], name)
	}
	in, err := a.input(words)
	if err != nil {
		return err
	}
	if in.text == "" {
		if a.plain || !a.canDraw() {
			return a.prompt(ctx, session)
		}
		return a.tui(ctx, session)
	}
	return a.ask(ctx, session, in)
}

// An input is what a call says: no text means that somebody is to be asked for it.
type input struct {
	text     string
	attached string // goes with it, and is nobody's word
}

// input is the words of the call or, without any, what is piped in. What is piped in
// beside words is what they are about: it need not be the person's, and does not count as
// said.
func (a *app) input(words []string) (input, error) {
	in := input{text: strings.Join(words, " ")}
	if isTerminal(a.in) {
		return in, nil
	}
	raw, err := io.ReadAll(io.LimitReader(a.in, maxInput+1))
	if err != nil {
		return in, fmt.Errorf("reading the input: %w", err)
	}
	if len(raw) > maxInput {
		return in, usageError("the input has more than %d bytes", maxInput)
	}
	if !utf8.Valid(raw) || !utf8.ValidString(in.text) { // guessing would change what was said
		return in, usageError("the input is not UTF-8: convert it first, as in iconv -f LATIN1 -t UTF-8")
	}
	piped := strings.TrimRight(string(raw), "\n")
	if strings.TrimSpace(in.text) == "" {
		in.text = strings.TrimSpace(piped)
	} else {
		in.attached = piped
	}
	if in.text == "" {
		return in, usageError("nothing was said: give words, or pipe some text in")
	}
	return in, nil
}

// maxInput is the largest message a client sends, well below a frame.
const maxInput = 4 << 20

// isTerminal reports whether a person is typing there.
func isTerminal(r any) bool {
	f, ok := r.(*os.File)
	if !ok {
		return false
	}
	return term.IsTerminal(int(f.Fd())) // a closed stream is /dev/null by now, which is none
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of this binary", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.version() },
	}
}

func (a *app) version() error {
	v := buildVersion()
	if a.json {
		return a.printJSON(v)
	}
	_, err := fmt.Fprintf(a.out, "passepartout %s (%s, %s)\n", v["version"], v["revision"], v["go"])
	return err
}

// buildVersion is what the linker knows of this binary.
func buildVersion() map[string]string {
	v := map[string]string{"version": "devel", "revision": "unknown", "go": "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v["go"] = info.GoVersion
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		v["version"] = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v["revision"] = s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			v["modified"] = s.Value
		}
	}
	return v
}
