package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"passepartout/internal/journal"
)

// exitCodes end every command's help.
const exitCodes = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 denied by a gate, 4 waiting for approval."

// examples are those of commands that need none beside their own file's, by path
// below the program's name.
var examples = map[string]string{
	"completion": "  passepartout completion bash > ~/.local/share/bash-completion/completions/passepartout\n" +
		"  passepartout completion zsh > ~/.zfunc/_passepartout\n  passepartout completion fish > ~/.config/fish/completions/passepartout.fish",
	"completion bash":       "  source <(passepartout completion bash)",
	"completion fish":       "  passepartout completion fish | source",
	"completion powershell": "  passepartout completion powershell | Out-String | Invoke-Expression",
	"completion zsh":        "  source <(passepartout completion zsh)",
	"cost":                  "  passepartout cost --json",
	"daemon":                "  passepartout daemon --idle-exit 10m",
	"help":                  "  passepartout help vault set",
	"journal":               "  passepartout journal tail -n 5\n  passepartout journal verify",
	"journal tail":          "  passepartout journal tail --json",
	"journal verify":        "  passepartout journal verify",
	"memory":                "  passepartout memory find 'TODO=\"TODO\"'\n  passepartout memory undo",
	"memory diff":           "  passepartout memory diff 12",
	"memory history":        "  passepartout memory history inbox/inbox.org:1",
	"memory import":         "  passepartout memory import ~/old/memory.snap",
	"memory redo":           "  passepartout memory redo",
	"memory rewind":         "  passepartout memory rewind 2026-11-14T18:00",
	"memory show":           "  passepartout memory show projects/garden.org:10",
	"memory stats":          "  passepartout memory stats --json",
	"memory undo":           "  passepartout memory undo\n  passepartout memory undo 12",
	"memory verify":         "  passepartout memory verify",
	"org":                   "  passepartout org dump --json notes.org\n  passepartout org lint notes.org",
	"org convert":           "  passepartout org convert --to markdown notes.org",
	"org dump":              "  passepartout org dump --json notes.org",
	"org lint":              "  passepartout org lint ~/memex/inbox/inbox.org",
	"policy":                "  passepartout policy test\n  passepartout policy replay --verify",
	"policy diff":           "  passepartout policy diff current ~/new-rules.org",
	"policy test":           "  passepartout policy test ~/memex/system/rules.org",
	"prompt":                "  passepartout prompt what is due this week",
	"redo":                  "  passepartout redo\n  passepartout redo 2",
	"rules":                 "  passepartout rules list\n  passepartout rules mine",
	"rules list":            "  passepartout rules list --json",
	"rules mine":            "  passepartout rules mine",
	"rules revoke":          "  passepartout rules revoke 'fetch the weather'",
	"rules shadow":          "  passepartout rules shadow",
	"rules show":            "  passepartout rules show weather",
	"skill":                 "  passepartout skill list\n  passepartout skill new tea",
	"skill grant":           "  passepartout skill grant tea memory",
	"skill list":            "  passepartout skill list --json",
	"skill new":             "  passepartout skill new tea",
	"skill reload":          "  passepartout skill reload",
	"skill revoke":          "  passepartout skill revoke tea",
	"skill show":            "  passepartout skill show tea",
	"skill test":            "  passepartout skill test tea",
	"version":               "  passepartout version --json",
	"why":                   "  passepartout why            # the last decision\n  passepartout why a-4kq2mx",
}

// explain gives every command its example, its exit codes in help, and completion
// of ids from the record.
func (a *app) explain(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd("completion")
	for _, c := range root.Commands() {
		if c.Name() == "help" {
			c.Args = func(_ *cobra.Command, args []string) error {
				if found, _, err := root.Find(args); err != nil || found == root && len(args) > 0 {
					return unknownCommand(root, args[0])
				}
				return nil
			}
		}
	}
	help := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		help(c, args)
		fmt.Fprintf(c.OutOrStdout(), "\n%s\n", exitCodes)
	})
	if c, _, err := root.Find([]string{"why"}); err == nil && c.ValidArgsFunction == nil {
		c.ValidArgsFunction = a.completeActions
	}
	walkCommands(root, func(c *cobra.Command) {
		if c.Example == "" {
			c.Example = examples[strings.TrimPrefix(c.CommandPath(), root.Name()+" ")]
		}
	})
}

// walkCommands visits a command and all below it.
func walkCommands(c *cobra.Command, visit func(*cobra.Command)) {
	visit(c)
	for _, sub := range c.Commands() {
		walkCommands(sub, visit)
	}
}

// recentActions is how many actions are offered for completion.
const recentActions = 50

// completeActions completes the ids of the last actions that were judged.
func (a *app) completeActions(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	cfg, err := a.config()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	entries, err := journal.Tail(filepath.Join(cfg.StateDir, "journal"), recentActions)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for _, e := range slices.Backward(entries) {
		if id := e.Body.Text("ID"); e.Body.Word("KIND") == "RULING" && id != "" {
			out = append(out, id)
		}
	}
	return slices.Compact(out), cobra.ShellCompDirectiveNoFileComp
}
