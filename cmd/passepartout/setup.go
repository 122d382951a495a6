package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"passepartout/internal/config"
	"passepartout/internal/durable"
	"passepartout/internal/llm"
)

// A setupPlan is what setup was told, or asked.
type setupPlan struct {
	memex, user         string
	provider, model     string // model is provider/model
	key                 string
	guard               string
	privacy, approvers  string
	noModel, quiet, dry bool
	skipTest            bool
}

func (a *app) setupCommand() *cobra.Command {
	var p setupPlan
	c := &cobra.Command{
		Use: "setup", Short: "Ask a few questions and write the settings",
		Long: `Ask where your notes are, which model to use, what is private and who may approve,
and write the settings file. Everything has an answer already: press return to take
it. Calling it again changes what was chosen.

Ollama and OpenAI-compatible servers on this machine are found by themselves. A key
is tested with one short question and kept in the vault. Without a model, rules
answer: what is due, what you noted, commands you type after a dollar sign.

With --non-interactive nothing is asked: the flags say what is not to be the default,
and a key for --provider is read from standard input.`,
		Example: `  passepartout setup
  passepartout setup --non-interactive --memex ~/notes --no-model
  pass show anthropic | passepartout setup --non-interactive --provider anthropic --guard file`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.setup(cmd.Context(), p) },
	}
	f := c.Flags()
	f.BoolVar(&p.quiet, "non-interactive", false, "ask nothing")
	f.StringVar(&p.memex, "memex", "", "folder of Org files, made if it is not there")
	f.StringVar(&p.user, "user", "", "how you are addressed")
	f.StringVar(&p.provider, "provider", "", "provider whose key comes on standard input")
	f.StringVar(&p.model, "model", "", "model for everything, as PROVIDER/MODEL")
	f.BoolVar(&p.noModel, "no-model", false, "use no model: rules answer")
	f.BoolVar(&p.skipTest, "skip-test", false, "do not try the key or the model")
	f.StringVar(&p.guard, "guard", "", "how a new vault's key is kept: keyring, passphrase or file")
	f.StringVar(&p.privacy, "privacy-tags", "", "tags whose text never leaves this machine")
	f.StringVar(&p.approvers, "approvers", "", "channels whose answers count, such as cli,tui")
	f.BoolVar(&p.dry, "dry-run", false, "say what would be written, and write nothing")
	return c
}

func (a *app) setup(ctx context.Context, p setupPlan) error {
	cfg, err := a.config()
	if err != nil {
		return fmt.Errorf("%w\nmend that first: passepartout config edit, or passepartout doctor --fix", err)
	}
	switch {
	case p.noModel && (p.provider != "" || p.model != ""):
		return usageError("--no-model goes with neither --provider nor --model")
	case p.provider != "" && !slices.ContainsFunc(keyed(), func(s config.Setting) bool { return s.Key == keyName(p.provider) }):
		return usageError("--provider: want one of %s, found %q", strings.Join(providerNames(), ", "), p.provider)
	}
	if p.quiet {
		if p.provider != "" {
			if p.key, err = a.secretInput("Key for " + p.provider); err != nil {
				return err
			}
		}
	} else if err := a.interview(ctx, cfg, &p); err != nil {
		return err
	}
	if err := a.tryChoice(ctx, cfg, &p); err != nil {
		return err
	}
	return a.settle(cfg, p)
}

// keyed are the settings that hold providers' keys.
func keyed() []config.Setting {
	return slices.DeleteFunc(config.Settings(), func(s config.Setting) bool { return !s.Secret || !strings.HasSuffix(s.Key, "_API_KEY") })
}

func keyName(provider string) string { return strings.ToUpper(provider) + "_API_KEY" }

func providerNames() (out []string) {
	for _, s := range keyed() {
		out = append(out, strings.ToLower(strings.TrimSuffix(s.Key, "_API_KEY")))
	}
	return out
}

// interview asks for what the flags did not say.
func (a *app) interview(ctx context.Context, cfg *config.Config, p *setupPlan) error {
	d := a.dialogue()
	fmt.Fprintln(a.errw, "A few questions. Return takes what stands in brackets; nothing is written before the end.")
	var err error
	ask := func(to *string, question, fallback string) {
		if err == nil && *to == "" {
			*to, err = d.line(question, fallback)
		}
	}
	ask(&p.memex, "\nYour folder of Org files, which will be the memory. It is made if it is not there", cfg.MemexDir)
	ask(&p.user, "\nHow are you addressed", cfg.User)
	if err == nil && p.provider == "" && p.model == "" && !p.noModel {
		err = a.askModel(ctx, cfg, d, p)
	}
	ask(&p.privacy, "\nText under which Org tags must never leave this machine (none for no such tag)", strings.Join(cfg.PrivacyTags, ","))
	fallback := strings.Join(cfg.Approvers, ",")
	if fallback == "" {
		fallback = "all"
	}
	ask(&p.approvers, "\nFrom which channels may questions be approved, such as cli,tui (all: every channel on which you are known)", fallback)
	if p.approvers == "all" {
		p.approvers = ""
	}
	if err != nil {
		return err
	}
	if c, _, ferr := a.root().Find([]string{"gateway"}); ferr == nil && c.Name() == "gateway" {
		fmt.Fprintln(a.errw, "\nTo talk over Telegram or Signal, say passepartout gateway link afterwards.")
	}
	ok, err := d.yes("\nWrite these settings?", true)
	if err == nil && !ok {
		err = errors.New("nothing was changed")
	}
	return err
}

// askModel shows what there is and asks which to use.
func (a *app) askModel(ctx context.Context, cfg *config.Config, d *dialogue, p *setupPlan) error {
	fmt.Fprintln(a.errw, "\nLooking for models on this machine…")
	var offers []string
	for _, m := range a.localModels(ctx, cfg) {
		offers = append(offers, m.Provider+"/"+m.ID)
		fmt.Fprintf(a.errw, "  %d. %s, on this machine: free, and nothing leaves it\n", len(offers), printable(offers[len(offers)-1]))
	}
	if len(offers) == 0 {
		fmt.Fprintln(a.errw, "  None answered. Ollama is found when it runs at", cfg.OllamaURL)
	}
	fmt.Fprintf(a.errw, "  %d. a provider, with a key\n  %d. none: rules answer what is due, what you noted, and commands you type after $\n", len(offers)+1, len(offers)+2)
	fallback := len(offers) + 2
	if len(offers) > 0 {
		fallback = 1
	}
	text, err := d.line("Which", strconv.Itoa(fallback))
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(text)
	switch {
	case err != nil || n < 1 || n > len(offers)+2:
		return fmt.Errorf("want a number from 1 to %d, found %.20q; nothing was changed", len(offers)+2, text)
	case n <= len(offers):
		p.model = offers[n-1]
	case n == len(offers)+2:
		p.noModel = true
	default:
		if p.provider, err = d.line("Provider ("+strings.Join(providerNames(), ", ")+")", "anthropic"); err != nil {
			return err
		}
		if !slices.Contains(providerNames(), p.provider) {
			return fmt.Errorf("there is no provider %.40q; nothing was changed", p.provider)
		}
		p.key, err = d.secret("Key for " + p.provider + " (not shown)")
	}
	return err
}

// lookTime bounds the look for servers on this machine.
const lookTime = 3 * time.Second

// localModels are those that servers on this machine offer.
func (a *app) localModels(ctx context.Context, cfg *config.Config) []llm.ModelInfo {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	e, err := llm.New(llm.Options{Providers: []llm.Provider{
		{Name: "ollama", Base: cfg.OllamaURL}, {Name: "local", Base: cfg.LocalURL, Key: cfg.Keys["local"].Reveal()},
	}, Timeout: lookTime})
	if err != nil {
		return nil
	}
	var out []llm.ModelInfo
	for _, c := range e.Catalogs(ctx, true) {
		if c.Local {
			out = append(out, c.Models...)
		}
	}
	return out
}

// tryTime bounds the trial of a model; one on this machine may have to be loaded.
const tryTime = 60 * time.Second

// tryChoice asks the chosen model one short question, so that a key that does not
// work is known before anything is written.
func (a *app) tryChoice(ctx context.Context, cfg *config.Config, p *setupPlan) error {
	name := p.provider
	if name == "" {
		name, _, _ = strings.Cut(p.model, "/")
	}
	if name == "" || p.skipTest || p.dry {
		return nil
	}
	key := p.key
	if key == "" {
		key = cfg.Keys[name].Reveal()
	}
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	answered, err := tryModel(ctx, llm.Provider{Name: name, Base: baseOf(cfg, name), Key: key}, p.model)
	if err != nil {
		return fmt.Errorf("%s does not answer, so nothing was changed (--skip-test writes it all the same): %w", name, err)
	}
	fmt.Fprintf(a.errw, "%s answers.\n", printable(answered))
	return nil
}

func baseOf(cfg *config.Config, provider string) string {
	switch provider {
	case "ollama":
		return cfg.OllamaURL
	case "local":
		return cfg.LocalURL
	}
	return ""
}

// tryModel asks a provider for the least it can say.
func tryModel(ctx context.Context, p llm.Provider, model string) (answered string, err error) {
	e, err := llm.New(llm.Options{Providers: []llm.Provider{p}, Cascade: []string{p.Name}, Timeout: tryTime})
	if err != nil {
		return "", err
	}
	reply, err := e.Complete(ctx, llm.Request{
		System: "Answer with one word.", Messages: []llm.Message{{Role: llm.User, Text: "Say OK."}},
		Now: time.Now(), MaxReply: 16, Purpose: llm.Purpose{Tier: llm.Cognition, Slot: llm.Chat, Model: model},
	}, func(string) {})
	switch {
	case err != nil:
		return "", err
	case !strings.HasPrefix(reply.Model, p.Name+"/"): // the rules stepped in
		return "", errors.New(printable(reply.Note))
	}
	return reply.Model, nil
}

// settle writes what was chosen: the memex, the key, the settings file.
func (a *app) settle(cfg *config.Config, p setupPlan) error {
	var changes []config.Change
	change := func(key, value, now string) {
		if value != "" && value != now {
			changes = append(changes, config.Change{Key: key, Value: value})
		}
	}
	memex := cfg.MemexDir
	if p.memex != "" {
		memex = a.homePath(p.memex)
		change("MEMEX_DIR", memex, "")
	}
	change("MEMEX_USER", p.user, cfg.User)
	change("PRIVACY_FILTER_TAGS", p.privacy, strings.Join(cfg.PrivacyTags, ","))
	change("PASSEPARTOUT_APPROVERS", p.approvers, strings.Join(cfg.Approvers, ","))
	switch {
	case p.noModel:
		change("PROVIDER_CASCADE", "reflex", "")
	case p.model != "":
		change("PASSEPARTOUT_MODELS", "any="+p.model, "")
	}
	text, err := config.Edit(a.environ, config.ReadFile, changes...)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	path, err := config.FilePath(a.environ)
	if err != nil {
		return err
	}
	if p.dry {
		_, err := a.out.Write(text)
		return err
	}
	made, err := makeMemex(memex)
	if err != nil {
		return fmt.Errorf("memex: %w", err)
	}
	if p.key != "" {
		v, err := a.openOrCreateVault(p.guard)
		if err == nil {
			err = v.Set(keyName(p.provider), p.key)
		}
		if err != nil {
			return fmt.Errorf("vault: %w", err)
		}
	}
	if err := config.WriteFile(path, text); err != nil {
		return err
	}
	return a.setupDone(path, memex, made, p)
}

func (a *app) setupDone(path, memex string, made bool, p setupPlan) error {
	if a.json {
		return a.printJSON(map[string]any{"settings": path, "memex": memex, "memex_made": made, "provider": p.provider, "model": p.model, "no_model": p.noModel})
	}
	fmt.Fprintf(a.errw, "Written: %s\n", path)
	_, err := fmt.Fprintf(a.out, "The memex is %s. Try:\n  passepartout \"what is due this week?\"\n  passepartout doctor\n", printable(memex))
	return err
}

// homePath makes a path absolute, as the settings file wants it.
func (a *app) homePath(p string) string {
	if rest, ok := strings.CutPrefix(p, "~/"); ok {
		return filepath.Join(a.getenv("HOME"), rest)
	}
	if abs, err := filepath.Abs(p); err == nil {
		return abs
	}
	return p
}

// memexFolders are those a new memex begins with.
var memexFolders = []string{"inbox", "daily", "notes", "projects", "areas", "resources", "archives", "system"}

// makeMemex makes a memex where there is none. One that is there is left alone.
func makeMemex(dir string) (made bool, err error) {
	if st, err := os.Stat(dir); err == nil {
		if !st.IsDir() {
			return false, fmt.Errorf("%s is no directory", dir)
		}
		return false, nil
	}
	for _, f := range memexFolders {
		if err := durable.MkdirAll(filepath.Join(dir, f), 0o700); err != nil {
			return false, err
		}
	}
	return true, nil
}
