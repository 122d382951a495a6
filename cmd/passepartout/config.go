package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"passepartout/internal/config"
)

func (a *app) configCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "config", Short: "Show and change the settings",
		Long: `Show and change the settings. They live in a commented file, KEY=value; the process
environment wins over it. What is misspelt or malformed is refused before it is
written. Keys and passwords go into the vault.`,
		Example: `  passepartout config list
  passepartout config set MEMEX_DIR ~/notes
  passepartout config set PROVIDER_CASCADE ollama,reflex`,
	}
	c.AddCommand(
		&cobra.Command{
			Use: "list", Short: "List every setting, its value and where it comes from", Args: cobra.NoArgs,
			Example: "  passepartout config list --json",
			RunE:    func(*cobra.Command, []string) error { return a.configList() },
		},
		&cobra.Command{
			Use: "get KEY", Short: "Print the value of one setting", Args: cobra.ExactArgs(1), ValidArgsFunction: completeSettings,
			Long:    "Print the value of one setting as it takes effect. Of a secret it says only whether\nit is set.",
			Example: "  passepartout config get MEMEX_DIR",
			RunE:    func(_ *cobra.Command, args []string) error { return a.configGet(args[0]) },
		},
		&cobra.Command{
			Use: "set KEY VALUE", Short: "Write a setting to the file, checked first", ValidArgsFunction: completeSettings,
			Long: `Write a setting to the file, at the place where its comment explains it. A VALUE of -
is read from standard input. An empty value takes the setting out. A secret is not
taken as an argument: with - or at a terminal it goes into the vault.`,
			Example: "  passepartout config set PASSEPARTOUT_APPROVAL_EXPIRY 8h\n  passepartout config set OPENAI_API_KEY -",
			Args:    cobra.RangeArgs(1, 2),
			RunE:    func(cmd *cobra.Command, args []string) error { return a.configSet(cmd.Context(), args[0], args[1:]) },
		},
		&cobra.Command{
			Use: "unset KEY…", Short: "Take settings out of the file", Args: cobra.MinimumNArgs(1), ValidArgsFunction: completeSettings,
			Example: "  passepartout config unset PROVIDER_CASCADE",
			RunE: func(_ *cobra.Command, args []string) error {
				var changes []config.Change
				for _, key := range args {
					changes = append(changes, config.Change{Key: key})
				}
				return a.configEdit(changes...)
			},
		},
		&cobra.Command{
			Use: "path", Short: "Print where the settings file is", Args: cobra.NoArgs,
			Example: "  cat \"$(passepartout config path)\"",
			RunE: func(*cobra.Command, []string) error {
				path, err := config.FilePath(a.environ)
				if err == nil {
					_, err = fmt.Fprintln(a.out, path)
				}
				return err
			},
		},
		&cobra.Command{
			Use: "edit", Short: "Open the settings in your editor; only what loads is saved", Args: cobra.NoArgs,
			Long:    "Open a copy of the settings file in $VISUAL or $EDITOR. It takes the file's place\nonly when it loads; otherwise what is wrong is said and the copy is kept.",
			Example: "  EDITOR=nano passepartout config edit",
			RunE:    func(*cobra.Command, []string) error { return a.configEditor() },
		},
	)
	return c
}

func completeSettings(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var out []string
	for _, s := range config.Settings() {
		switch {
		case len(args) == 0:
			out = append(out, s.Key+"\t"+s.Doc)
		case args[0] == s.Key:
			out = append(out, s.Choices...)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) configList() error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	if a.json {
		var rows []map[string]string
		for _, it := range cfg.List() {
			rows = append(rows, map[string]string{"key": it.Setting.Key, "value": it.Value, "origin": it.Origin.String(), "doc": it.Setting.Doc})
		}
		return a.printJSON(rows)
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, it := range cfg.List() {
		fmt.Fprintf(w, "%s\t%s\t%s\n", it.Setting.Key, printable(it.Value), it.Origin)
	}
	return w.Flush()
}

func (a *app) configGet(key string) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	for _, it := range cfg.List() {
		if it.Setting.Key != key {
			continue
		}
		if a.json {
			return a.printJSON(map[string]string{"key": key, "value": it.Value, "origin": it.Origin.String(), "doc": it.Setting.Doc})
		}
		_, err := fmt.Fprintln(a.out, printable(it.Value))
		return err
	}
	_, err = config.Edit(a.environ, config.ReadFile, config.Change{Key: key, Value: "x"}) // names the nearest
	return &exitError{exitUsage, err}
}

func (a *app) configSet(ctx context.Context, key string, value []string) error {
	isSecret := slices.ContainsFunc(config.Settings(), func(s config.Setting) bool { return s.Key == key && s.Secret })
	switch {
	case isSecret && len(value) == 1 && value[0] != "-":
		return usageError("%s is a secret, and an argument is in the shell's history: change it, then passepartout vault set %s", key, key)
	case isSecret:
		return a.vaultSet(ctx, key, "")
	case len(value) == 0:
		return usageError("config set %s: want a value, or - to read it from standard input", key)
	case value[0] == "-":
		text, err := a.secretInput(key)
		if err != nil {
			return err
		}
		value[0] = text
	}
	return a.configEdit(config.Change{Key: key, Value: value[0]})
}

// configEdit writes changes to the file, and says where something else wins.
func (a *app) configEdit(changes ...config.Change) error {
	path, err := config.FilePath(a.environ)
	if err != nil {
		return err
	}
	text, err := config.Edit(a.environ, config.ReadFile, changes...)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	if err := config.WriteFile(path, text); err != nil {
		return err
	}
	for _, c := range changes {
		if a.getenv(c.Key) != "" {
			fmt.Fprintf(a.errw, "%s is also set in the process environment, which wins.\n", c.Key)
		}
	}
	a.tellRunning()
	return nil
}

// tellRunning says that a daemon goes by the settings it was started with.
func (a *app) tellRunning() {
	cfg, err := a.config()
	if err != nil {
		return
	}
	if _, held, err := daemonPID(cfg.StateDir); err == nil && held {
		fmt.Fprintln(a.errw, "The daemon that runs goes by the settings it was started with: `passepartout daemon stop`, and the next command starts it anew.")
	}
}

// configEditor lets a person edit a copy and puts it in place if it loads.
func (a *app) configEditor() error {
	open := a.editor()
	if open == nil {
		return usageError("neither VISUAL nor EDITOR says which editor to open; `passepartout config path` says where the file is")
	}
	path, err := config.FilePath(a.environ)
	if err != nil {
		return err
	}
	before, _, err := config.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		before, err = config.Edit(a.environ, config.ReadFile)
	}
	if err != nil {
		return err
	}
	copied := path + ".edited"
	if err := config.WriteFile(copied, before); err != nil {
		return err
	}
	if err := open(copied).Run(); err != nil {
		return err
	}
	after, _, err := config.ReadFile(copied)
	switch {
	case err != nil:
		return err
	case bytes.Equal(before, after):
		fmt.Fprintln(a.errw, "Nothing was changed.")
		return os.Remove(copied)
	}
	if err := config.CheckFile(a.environ, after); err != nil {
		return fmt.Errorf("the settings are as they were; your version is kept in %s: %w", copied, err)
	}
	err = errors.Join(config.WriteFile(path, after), os.Remove(copied))
	a.tellRunning()
	return err
}
