package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"passepartout/internal/sexp"
)

// Kept is what the vault holds when it is read again.
type Kept struct {
	Values map[string]string // by name
	Keys   map[string]string // of providers, as the settings now have them
	Later  []string          // settings that changed and are taken up at the next start
}

// entries are what the vault holds now, by name. They are safe for concurrent use.
type entries struct {
	now atomic.Pointer[map[string]string] // never changed, only replaced
}

// newEntries are those of some secrets that are the vault's.
func newEntries(secrets map[string]string, names []string) *entries {
	kept := map[string]string{}
	for _, name := range names {
		kept[name] = secrets[name]
	}
	e := &entries{}
	e.now.Store(&kept)
	return e
}

func (e *entries) get(name string) (string, bool) {
	v, ok := (*e.now.Load())[name]
	return v, ok
}

// answerVaultReload makes the daemon take up what was changed in the vault.
func answerVaultReload(_ context.Context, d *Daemon, _ asking) (sexp.Plist, error) {
	if d.s.ReadVault == nil {
		return sexp.Plist{}, errors.New("this daemon reads its vault once: start it anew")
	}
	kept, err := d.s.ReadVault()
	if err != nil {
		return sexp.Plist{}, fmt.Errorf("what was open stays open: %w", err)
	}
	d.watch.learn(kept.Values) // first: what can be used must be recognised
	d.engine.RedactAnew()
	values := maps.Clone(kept.Values)
	d.kept.now.Store(&values)
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(kept.Keys)) {
		errs = append(errs, d.engine.Rekey(name, kept.Keys[name]))
	}
	if err := errors.Join(errs...); err != nil {
		return sexp.Plist{}, err
	}
	d.log.Info("the vault was read again", "entries", len(kept.Values), "at the next start", strings.Join(kept.Later, " "))
	return sexp.P(sexp.Keyword("ENTRIES"), len(kept.Values), sexp.Keyword("LATER"), kept.Later), nil
}
