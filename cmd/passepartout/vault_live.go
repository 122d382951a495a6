package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"passepartout/internal/act"
	"passepartout/internal/config"
	"passepartout/internal/daemon"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
	"passepartout/internal/vault"
)

// webCredentials are which hosts are shown which entries of the vault.
func webCredentials(cfg *config.Config) ([]act.Credential, error) {
	var out []act.Credential
	for _, text := range cfg.WebCredentials {
		c, err := act.ParseCredential(text)
		if err != nil {
			return nil, fmt.Errorf("PASSEPARTOUT_WEB_CREDENTIALS: %w", err)
		}
		out = append(out, c)
	}
	return out, nil
}

// vaultReader reads the vault again for a daemon that runs, where nobody can be
// asked for a passphrase. plain are the settings without the vault, full those the
// daemon began with; v is the vault that is open, nil for none.
func (a *app) vaultReader(plain, full *config.Config, v *vault.Vault) func() (daemon.Kept, error) {
	keys := func(c *config.Config) map[string]string {
		out := map[string]string{}
		for name, key := range c.Keys {
			out[name] = key.Reveal()
		}
		return out
	}
	last := keys(full)
	return func() (daemon.Kept, error) {
		var err error
		place := a.unaskedVault(plain)
		if v == nil {
			v, err = vault.Open(place)
		} else {
			err = v.Reload(place.Passphrase)
		}
		if err != nil {
			return daemon.Kept{}, err
		}
		kept := daemon.Kept{Values: v.Values(), Keys: map[string]string{}}
		next, err := plain.WithVault(kept.Values)
		if err != nil {
			return daemon.Kept{}, err
		}
		now := keys(&next)
		for _, name := range slices.Sorted(maps.Keys(now)) {
			if now[name] != last[name] {
				kept.Keys[name] = now[name]
			}
		}
		for name := range last {
			if _, there := now[name]; !there {
				kept.Keys[name] = ""
			}
		}
		if embedding(&next) != embedding(full) {
			kept.Later = append(kept.Later, "the key of vectors")
		}
		if before, now := channelSecrets(full), channelSecrets(&next); !maps.Equal(before, now) {
			kept.Later = append(kept.Later, "the token of a channel (or now: passepartout gateway link)")
		}
		last = now
		return kept, nil
	}
}

// tellVault lets a daemon that runs take up what was changed in the vault.
func (a *app) tellVault(ctx context.Context) {
	joining := *a
	joining.noStart = true
	c, err := joining.connect(ctx, "cli")
	if err != nil {
		return // none runs: the next one reads it
	}
	defer c.close()
	err = c.conn.SetDeadline(time.Now().Add(vaultPatience))
	var r proto.Message
	if err == nil {
		r, err = c.exchange(proto.Message{Kind: proto.Request, Payload: sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("VAULT-RELOAD"))}, nil)
	}
	if err == nil && codeOf(r) != exitOK {
		err = errors.New(printable(r.Payload.Text("TEXT")))
	}
	if err != nil {
		fmt.Fprintf(a.errw, "The daemon that runs does not know of it before it starts anew: %v.\n", err)
		return
	}
	fmt.Fprintln(a.errw, "The daemon that runs knows of it.")
	if later := textsOf(r.Payload, "LATER"); len(later) > 0 {
		fmt.Fprintf(a.errw, "It uses these when it starts anew: %s.\n", strings.Join(later, ", "))
	}
}

// vaultPatience is how long a daemon may take to read the vault again: its keyring
// may have to be unlocked.
const vaultPatience = 30 * time.Second
