package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"passepartout/internal/config"
	"passepartout/internal/vault"
)

func (a *app) vaultCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "vault", Short: "Keep keys and passwords encrypted, for the daemon's eyes only",
		Long: `Keep credentials in one encrypted file for its owner alone. An entry called as a
setting, such as OPENAI_API_KEY, is used as that setting. No value of the vault gets
into a prompt, a log, the journal or a message, and no action is given one: which host
is shown which entry is said by PASSEPARTOUT_WEB_CREDENTIALS. A daemon that runs takes
up what you change here.

The vault's own key lies in the system's keyring where there is one, and otherwise
under a passphrase. Values are typed unseen or piped in, never given as arguments.`,
		Example: `  passepartout vault set ANTHROPIC_API_KEY
  pass show openai | passepartout vault set OPENAI_API_KEY
  passepartout vault list
  passepartout vault rotate --guard passphrase`,
	}
	var guard, rotated string
	set := &cobra.Command{
		Use: "set NAME", Short: "Keep a value, typed unseen or piped in",
		Long:    "Keep a value under a name, in the place of an older one. The vault is made when\nthere is none.",
		Example: "  passepartout vault set OPENAI_API_KEY\n  passepartout vault set MAIL_PASSWORD < secret.txt",
		Args:    noValueArgument,
		RunE:    func(cmd *cobra.Command, args []string) error { return a.vaultSet(cmd.Context(), args[0], guard) },
	}
	set.Flags().StringVar(&guard, "guard", "", "how a new vault's key is kept: keyring, passphrase or file (default: keyring where there is one, else passphrase)")
	rotate := &cobra.Command{
		Use: "rotate", Short: "Give the vault a new key, and a new passphrase if it has one",
		Long:    "Encrypt the vault anew with a new key. The old key, and copies of the old file made\nwith it, are then all that can open those copies: replace values that may be known.",
		Example: "  passepartout vault rotate\n  passepartout vault rotate --guard keyring",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.vaultRotate(cmd.Context(), rotated) },
	}
	rotate.Flags().StringVar(&rotated, "guard", "", "how the new key is kept: keyring, passphrase or file (default: as the old one)")
	c.AddCommand(
		set, rotate,
		&cobra.Command{
			Use: "get NAME", Short: "Print a value on stdout", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeVault,
			Example: "  passepartout vault get OPENAI_API_KEY | xclip",
			RunE:    func(_ *cobra.Command, args []string) error { return a.vaultGet(args[0]) },
		},
		&cobra.Command{
			Use: "list", Short: "List names, without values", Args: cobra.NoArgs,
			Example: "  passepartout vault list --json",
			RunE:    func(*cobra.Command, []string) error { return a.vaultList() },
		},
		&cobra.Command{
			Use: "delete NAME…", Short: "Forget values", Args: cobra.MinimumNArgs(1), ValidArgsFunction: a.completeVault,
			Example: "  passepartout vault delete OLD_TOKEN",
			RunE: func(cmd *cobra.Command, args []string) error {
				v, err := a.openVault()
				if err == nil {
					err = v.Delete(args...)
				}
				if err == nil {
					a.tellVault(cmd.Context())
				}
				return err
			},
		},
	)
	return c
}

// noValueArgument takes a name and refuses a value beside it, without repeating it.
func noValueArgument(_ *cobra.Command, args []string) error {
	switch {
	case len(args) > 1:
		return errors.New("a value given as an argument is in the shell's history and was seen by every process: change it, then pipe the new one in or type it when asked")
	case len(args) == 0:
		return errors.New("want the name of an entry")
	}
	return vault.CheckName(args[0])
}

// vaultPlace is where this user's vault is.
func (a *app) vaultPlace(cfg *config.Config) vault.Place {
	return vault.Place{Dir: cfg.ConfigDir, Ring: vault.SystemRing(a.environ), Passphrase: a.passphrase(cfg)}
}

func (a *app) openVault() (*vault.Vault, error) {
	cfg, err := a.config()
	if err != nil {
		return nil, err
	}
	return vault.Open(a.vaultPlace(cfg))
}

// openOrCreateVault opens the vault, or makes one under the wanted guard.
func (a *app) openOrCreateVault(guard string) (*vault.Vault, error) {
	cfg, err := a.config()
	if err != nil {
		return nil, err
	}
	place := a.vaultPlace(cfg)
	v, err := vault.Open(place)
	if !errors.Is(err, vault.ErrNone) {
		return v, err
	}
	g := vault.Passphrase
	switch {
	case guard != "":
		if g, err = vault.ParseGuard(guard); err != nil {
			return nil, usageError("--guard: %w", err)
		}
	case place.Ring != nil:
		if v, err := vault.Create(place, vault.Keyring); err == nil {
			a.sayVault(v, cfg)
			return v, nil
		}
		// a bus without a keyring on it
	}
	if v, err = vault.Create(place, g); err != nil {
		return nil, err
	}
	a.sayVault(v, cfg)
	return v, nil
}

func (a *app) sayVault(v *vault.Vault, cfg *config.Config) {
	fmt.Fprintf(a.errw, "Made a vault in %s; its key is kept by: %s.\n", cfg.ConfigDir, v.Guard())
}

func (a *app) vaultSet(ctx context.Context, name, guard string) error {
	v, err := a.openOrCreateVault(guard)
	if err != nil {
		return err
	}
	value, err := a.secretInput("Value of " + name)
	if err != nil {
		return err
	}
	if err := v.Set(name, value); err != nil {
		return err
	}
	const recognisable = 6
	if len(value) < recognisable {
		fmt.Fprintf(a.errw, "The value is shorter than %d bytes: it cannot be told from ordinary text, so it is not watched for.\n", recognisable)
	}
	fmt.Fprintf(a.errw, "Kept %s.\n", name)
	a.tellVault(ctx)
	return nil
}

func (a *app) vaultGet(name string) error {
	v, err := a.openVault()
	if err != nil {
		return err
	}
	value, err := v.Get(name)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]string{"name": name, "value": value})
	}
	_, err = fmt.Fprintln(a.out, value)
	return err
}

func (a *app) vaultList() error {
	v, err := a.openVault()
	if err != nil {
		return err
	}
	settings := config.Settings()
	uses := func(name string) bool {
		return slices.ContainsFunc(settings, func(s config.Setting) bool { return s.Secret && s.Key == name })
	}
	if a.json {
		rows := []map[string]any{}
		for _, e := range v.List() {
			rows = append(rows, map[string]any{"name": e.Name, "set": e.Set.Format(time.RFC3339), "setting": uses(e.Name)})
		}
		return a.printJSON(map[string]any{"guard": v.Guard().String(), "entries": rows})
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, e := range v.List() {
		note := ""
		if uses(e.Name) {
			note = "a setting"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", e.Name, e.Set.Local().Format(time.DateOnly), note)
	}
	return w.Flush()
}

func (a *app) vaultRotate(ctx context.Context, guard string) error {
	v, err := a.openVault()
	if err != nil {
		return err
	}
	g := v.Guard()
	if guard != "" {
		if g, err = vault.ParseGuard(guard); err != nil {
			return usageError("--guard: %w", err)
		}
	}
	if err := v.Rotate(g); err != nil {
		return err
	}
	fmt.Fprintf(a.errw, "The vault has a new key, kept by: %s.\n", g)
	a.tellVault(ctx)
	return nil
}

// completeVault completes names, where that needs no passphrase.
func (a *app) completeVault(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	cfg, err := a.config()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	v, err := vault.Open(vault.Place{Dir: cfg.ConfigDir, Ring: vault.SystemRing(a.environ)})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, e := range v.List() {
		names = append(names, e.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// withVault adds what the vault holds: keys to the settings, and every value to
// those that never leave. A vault that stays locked is said; nothing in it can
// leak, and nothing in it can be used.
func (a *app) withVault(cfg *config.Config) (_ *config.Config, v *vault.Vault, note error) {
	v, err := vault.Open(a.vaultPlace(cfg))
	if errors.Is(err, vault.ErrNone) {
		return cfg, nil, nil
	}
	if err != nil {
		return cfg, nil, err
	}
	full, err := cfg.WithVault(v.Values())
	return &full, v, err
}

// unaskedVault is the vault as it can be opened where nobody is asked anything.
func (a *app) unaskedVault(cfg *config.Config) vault.Place {
	place := vault.Place{Dir: cfg.ConfigDir, Ring: vault.SystemRing(a.environ)}
	if file := a.passphraseFile(cfg); file != "" {
		place.Passphrase = func(bool) (string, error) { return readPassphrase(file) }
	}
	return place
}

// withKeys adds the vault's keys to the settings where that needs nobody.
func (a *app) withKeys(cfg *config.Config) *config.Config {
	v, err := vault.Open(a.unaskedVault(cfg))
	if err != nil {
		return cfg
	}
	full, err := cfg.WithVault(v.Values())
	if err != nil {
		return cfg
	}
	return &full
}
