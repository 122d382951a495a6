package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"passepartout/internal/flight"
	"passepartout/internal/gate"
	"passepartout/internal/memory"
)

// learn puts a rule for an approved plan on trial, because the person asked for
// one, and says what came of it. The yes itself stands either way.
func (d *Daemon) learn(p flight.Plan) string {
	names, err := d.putOnTrial(p)
	switch {
	case err != nil:
		return fmt.Sprintf("No rule was made: %v.", err)
	case len(names) == 0:
		return "There is such a rule already."
	}
	return fmt.Sprintf("On trial: %s. It only counts what it would answer until \"passepartout rules shadow --end\".", strings.Join(names, "; "))
}

// putOnTrial writes the rules into the file only when all of it still loads: a file
// that does not would leave the old rules in force.
func (d *Daemon) putOnTrial(p flight.Plan) ([]string, error) {
	pol, err := d.policy.load()
	if err != nil {
		return nil, err
	}
	v := d.policy.vocabulary
	now := time.Now()
	rules, err := flight.Miner{Vocabulary: v, Policy: pol, Now: now}.Wanted(p)
	if err != nil || len(rules) == 0 {
		return nil, err
	}
	var names []string
	var text strings.Builder
	for _, r := range rules {
		names = append(names, r.Rule.Name)
		text.WriteString(r.Org(p.By.Who, now))
	}
	old, err := os.ReadFile(filepath.Join(d.s.MemexDir, filepath.FromSlash(rulesFile)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if pol.Rules, err = gate.ParseRules(rulesFile, []byte(string(old)+"\n"+text.String()), v); err != nil {
		return nil, err
	}
	if _, err := gate.Standard(pol, v); err != nil {
		return nil, err
	}
	_, err = d.memory.Apply(context.Background(), memory.Tx{
		Actor: "owner", Label: "put on trial " + strings.Join(names, ", "),
		Edits: []memory.Edit{{File: rulesFile, Change: memory.Change{Kind: memory.Insert, Value: text.String()}}},
	})
	return names, err
}
