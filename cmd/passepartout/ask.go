package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/term"

	"passepartout/internal/config"
)

// maxSecret is the longest credential that is read.
const maxSecret = 64 << 10

// secretInput reads a credential: typed without echo at a terminal, or piped in.
// It never comes from an argument, which other processes and the shell's history
// would see.
func (a *app) secretInput(what string) (string, error) {
	if f, ok := a.in.(*os.File); ok && isTerminal(f) {
		return hidden(f, a.errw, what+": ")
	}
	raw, err := io.ReadAll(io.LimitReader(a.in, maxSecret+2))
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", what, err)
	}
	text := strings.TrimSuffix(strings.TrimSuffix(string(raw), "\n"), "\r")
	if text == "" {
		return "", usageError("%s: nothing came on standard input; pipe it in, or call this in a terminal to be asked", what)
	}
	return text, nil
}

// hidden asks at a terminal without showing what is typed. The terminal stops showing
// before it asks, so that what is pasted at once is not seen either.
func hidden(tty *os.File, prompt io.Writer, what string) (string, error) {
	was, err := term.MakeRaw(int(tty.Fd()))
	if err != nil {
		return "", fmt.Errorf("asking at the terminal: %w", err)
	}
	at := struct {
		io.Reader
		io.Writer
	}{tty, prompt}
	text, err := term.NewTerminal(at, "").ReadPassword(what)
	if err = errors.Join(err, term.Restore(int(tty.Fd()), was)); err != nil {
		return "", fmt.Errorf("reading at the terminal: %w", err)
	}
	return text, nil
}

// credential is the name under which a service manager hands in the passphrase.
const credential = "vault-passphrase"

// passphraseFile holds the vault's passphrase, "" for none: the file the settings
// name, or the credential a service manager passes on.
func (a *app) passphraseFile(cfg *config.Config) string {
	if cfg.VaultPassFile != "" {
		return cfg.VaultPassFile
	}
	if dir := a.getenv("CREDENTIALS_DIRECTORY"); filepath.IsAbs(dir) && exists(filepath.Join(dir, credential)) {
		return filepath.Join(dir, credential)
	}
	return ""
}

// passphrase is how the vault's passphrase can be had: from the file the settings
// name, from the service manager, or from the person at the terminal. It is nil
// where there is none of these.
func (a *app) passphrase(cfg *config.Config) func(again bool) (string, error) {
	if file := a.passphraseFile(cfg); file != "" {
		return func(bool) (string, error) { return readPassphrase(file) }
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	tty.Close()
	return func(again bool) (string, error) {
		tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
		if err != nil {
			return "", err
		}
		defer tty.Close()
		if !again {
			return hidden(tty, tty, "Passphrase: ")
		}
		first, err := hidden(tty, tty, "New passphrase: ")
		if err != nil {
			return "", err
		}
		second, err := hidden(tty, tty, "The same again: ")
		if err == nil && first != second {
			err = errors.New("the two were not the same")
		}
		return first, err
	}
}

// readPassphrase reads a file that must be its owner's alone.
func readPassphrase(name string) (string, error) {
	text, mode, err := config.ReadFile(name)
	switch {
	case err != nil:
		return "", err
	case mode.Perm()&0o077 != 0:
		return "", fmt.Errorf("%s has mode %04o: others can read it; chmod 600 %s", name, mode.Perm(), name)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}
