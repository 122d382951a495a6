package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"passepartout/internal/backup"
	"passepartout/internal/config"
)

// backupNames are the parts of a backup, in order.
var backupNames = []string{"memex", "config", "data", "state"}

// backupDirs says where each part lies.
func backupDirs(cfg *config.Config) map[string]string {
	return map[string]string{"memex": cfg.MemexDir, "config": cfg.ConfigDir, "data": cfg.DataDir, "state": cfg.StateDir}
}

// volatile are files that mean something only while a process runs.
func volatile(rel string) bool {
	return slices.Contains([]string{"daemon.lock", "vault.lock"}, path.Base(rel))
}

// A backupCall is how backup or restore was called.
type backupCall struct {
	recipients []string
	identity   string
	phraseFile string
	plain      bool
	only       []string
	to         string
	replace    bool
	outside    bool
	check      bool
}

func (a *app) backupCommand() *cobra.Command {
	var call backupCall
	c := &cobra.Command{
		Use: "backup [FILE]", Short: "Pack notes, settings, vault, skills and record into one encrypted file",
		Long: `Pack the memex, the settings with the vault, the skills, and the state with journal
and undo into one file: tar, gzip, age. It is encrypted with a passphrase unless
recipients are given, read back to its end before it gets its name, and never
replaces a file. The daemon may run meanwhile.

A vault whose key is in the keyring can only be opened where that keyring is: before
moving to another machine, say passepartout vault rotate --guard passphrase.`,
		Example: `  passepartout backup
  passepartout backup ~/backups/today.age --recipient age1…
  passepartout backup --only memex --passphrase-file /run/keys/backup nightly.age`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.backup(args, call) },
	}
	f := c.Flags()
	f.StringArrayVarP(&call.recipients, "recipient", "r", nil, "encrypt to this age recipient instead of a passphrase (repeatable)")
	f.StringVar(&call.phraseFile, "passphrase-file", "", "read the passphrase from a file that is yours alone")
	f.BoolVar(&call.plain, "no-encrypt", false, "do not encrypt; everybody who gets the file can read it")
	f.StringSliceVar(&call.only, "only", nil, "pack only these: memex, config, data, state")
	return c
}

func (a *app) restoreCommand() *cobra.Command {
	var call backupCall
	c := &cobra.Command{
		Use: "restore FILE", Short: "Bring back what a backup holds",
		Long: `Bring back what a backup holds, to where the settings say or below --to. The whole
archive is read and checked before anything is written; one that is damaged, cut
short or hostile is refused. Nothing that is there is replaced without a yes, and
what is replaced is kept beside it. Files that the backup does not hold stay.`,
		Example: `  passepartout restore --check backup.age
  passepartout restore backup.age --to /tmp/look
  passepartout restore backup.age --only memex --replace`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.restoreBackup(args[0], call) },
	}
	f := c.Flags()
	f.StringVarP(&call.identity, "identity", "i", "", "age identity file that opens it")
	f.StringVar(&call.phraseFile, "passphrase-file", "", "read the passphrase from a file that is yours alone")
	f.StringVar(&call.to, "to", "", "restore below this directory instead of in place")
	f.StringSliceVar(&call.only, "only", nil, "bring back only these: memex, config, data, state")
	f.BoolVar(&call.replace, "replace", false, "replace files that differ, without being asked")
	f.BoolVar(&call.outside, "outside-links", false, "accept links that lead out of their folder")
	f.BoolVar(&call.check, "check", false, "only read the archive and say what it holds")
	return c
}

// parts are the parts that were asked for.
func (call backupCall) parts() ([]string, error) {
	if len(call.only) == 0 {
		return backupNames, nil
	}
	for _, name := range call.only {
		if !slices.Contains(backupNames, name) {
			return nil, usageError("--only: want some of %s, found %q", strings.Join(backupNames, ", "), name)
		}
	}
	return call.only, nil
}

func (a *app) backup(args []string, call backupCall) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	names, err := call.parts()
	if err != nil {
		return err
	}
	now := time.Now()
	file := "passepartout-" + now.Format("20060102-150405") + ".tar.gz.age"
	if call.plain {
		file = strings.TrimSuffix(file, ".age")
	}
	if len(args) == 1 {
		file = args[0]
	}
	var roots []backup.Root
	for _, name := range names {
		roots = append(roots, backup.Root{Name: name, Dir: backupDirs(cfg)[name], Skip: volatile})
	}
	lock := backup.Lock{Recipients: call.recipients, Plain: call.plain}
	if !call.plain && len(call.recipients) == 0 {
		if lock.Passphrase, err = a.backupPhrase(call.phraseFile, true); err != nil {
			return err
		}
	}
	s, err := backup.Create(file, roots, lock, buildVersion()["revision"], now)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	for _, l := range s.Outside {
		fmt.Fprintf(a.errw, "%s is a link to elsewhere; only the link is in the backup.\n", printable(l))
	}
	if call.plain {
		fmt.Fprintln(a.errw, "The file is not encrypted: everybody who gets it can read your notes.")
	}
	if a.json {
		return a.printJSON(summaryJSON(file, s))
	}
	_, err = fmt.Fprintf(a.out, "%s: %d files, %d bytes, verified\n", printable(file), s.Files, s.Bytes)
	return err
}

func summaryJSON(file string, s backup.Summary) map[string]any {
	return map[string]any{
		"file": file, "made": s.Made.Format(time.RFC3339), "roots": s.Roots, "files": s.Files, "directories": s.Dirs, "links": s.Links,
		"bytes": s.Bytes, "sha256": s.Digest, "outside_links": append([]string{}, s.Outside...),
	}
}

// backupPhrase reads a passphrase from a file or at the terminal.
func (a *app) backupPhrase(file string, again bool) (string, error) {
	ask := a.passphrase(&config.Config{VaultPassFile: file})
	if ask == nil {
		return "", usageError("nobody is there to be asked for a passphrase: want --passphrase-file, --recipient or --identity")
	}
	phrase, err := ask(again)
	if err == nil && phrase == "" {
		err = usageError("want a passphrase, found none")
	}
	return phrase, err
}

func (a *app) restoreBackup(file string, call backupCall) (err error) {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	names, err := call.parts()
	if err != nil {
		return err
	}
	targets := map[string]string{}
	for _, name := range names {
		targets[name] = backupDirs(cfg)[name]
		if call.to != "" {
			targets[name] = filepath.Join(call.to, name)
		}
	}
	arc, err := a.openBackup(file, call)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, arc.Close()) }()
	opt := backup.Options{OutsideLinks: call.outside, Size: arc.Size()}
	if call.check {
		s, err := backup.Check(arc, opt)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(summaryJSON(file, s))
		}
		_, err = fmt.Fprintf(a.out, "%s: whole, made %s, %s: %d files, %d bytes\n", printable(file), s.Made.Local().Format(time.DateTime), strings.Join(s.Roots, ", "), s.Files, s.Bytes)
		return err
	}
	if call.to == "" {
		if err := noDaemon(cfg.StateDir); err != nil {
			return err
		}
	}
	res, err := backup.Restore(arc, targets, call.replace, opt)
	if errors.Is(err, backup.ErrDiffers) && !call.replace {
		if res, err = a.restoreAsked(arc, targets, opt, err); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	if a.json {
		out := summaryJSON(file, res.Summary)
		out["replaced"], out["saved"] = res.Replaced, append([]string{}, res.Saved...)
		return a.printJSON(out)
	}
	for _, dir := range res.Saved {
		fmt.Fprintf(a.errw, "What was replaced is in %s.\n", dir)
	}
	_, err = fmt.Fprintf(a.out, "restored %d files, %d bytes; %d replaced\n", res.Files, res.Bytes, res.Replaced)
	return err
}

// restoreAsked asks a person whether what is there may be replaced.
func (a *app) restoreAsked(arc *backup.Archive, targets map[string]string, opt backup.Options, why error) (backup.Result, error) {
	if !isTerminal(a.in) {
		return backup.Result{}, fmt.Errorf("%w; say --replace if that is meant", why)
	}
	if _, err := arc.Seek(0, 0); err != nil {
		return backup.Result{}, err
	}
	p, err := backup.Plan(arc, targets, opt)
	if err != nil {
		return backup.Result{}, err
	}
	const shown = 10
	for i, name := range p.Differs {
		if i == shown {
			fmt.Fprintf(a.errw, "… and %d more\n", len(p.Differs)-shown)
			break
		}
		fmt.Fprintln(a.errw, printable(name))
	}
	if ok, err := a.dialogue().yes("Replace them? What they hold now is kept beside", false); err != nil || !ok {
		return backup.Result{}, errors.Join(errors.New("nothing was changed"), err)
	}
	if _, err := arc.Seek(0, 0); err != nil {
		return backup.Result{}, err
	}
	return backup.Restore(arc, targets, true, opt)
}

func (a *app) openBackup(file string, call backupCall) (*backup.Archive, error) {
	sealed, phrase, err := backup.Encrypted(file)
	if err != nil {
		return nil, err
	}
	var keys backup.Keys
	switch {
	case !sealed:
	case call.identity != "":
		raw, mode, err := config.ReadFile(call.identity)
		if err != nil {
			return nil, err
		}
		if mode.Perm()&0o077 != 0 {
			fmt.Fprintf(a.errw, "%s can be read by others: chmod 600\n", call.identity)
		}
		keys.Identities = bytes.NewReader(raw)
	case !phrase:
		return nil, usageError("%s is encrypted to a recipient: want --identity FILE", file)
	default:
		if keys.Passphrase, err = a.backupPhrase(call.phraseFile, false); err != nil {
			return nil, err
		}
	}
	return backup.Open(file, keys)
}

// noDaemon makes sure that nobody writes to what is about to be replaced.
func noDaemon(stateDir string) error {
	f, err := os.Open(filepath.Join(stateDir, "daemon.lock"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err != nil {
		return errors.New("a daemon is running: stop it first, or restore elsewhere with --to")
	}
	return nil
}
