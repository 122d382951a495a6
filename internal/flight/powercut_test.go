package flight_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"passepartout/internal/flight"
	"passepartout/internal/powercut"
	"passepartout/internal/proto"
)

// TestPlansSurviveAPowerCut: a plan is in the last state that was acknowledged or in
// the one that was on its way, so none is lost, none is answered and open, and one
// whose effect has happened is never one that may still be carried out.
func TestPlansSurviveAPowerCut(t *testing.T) {
	lives := map[string][]flight.State{
		"a-1": {flight.Planned, flight.Approved, flight.Started, flight.Done},
		"a-2": {flight.Planned, flight.Denied},
		"a-3": {flight.Planned, flight.Approved, flight.Planned, flight.Approved, flight.Started, flight.Failed},
		"a-4": {flight.Planned},
		"a-5": {flight.Planned, flight.Approved, flight.Started, flight.Unknown},
	}
	tokens := []string{"a-1", "a-2", "a-3", "a-4", "a-5"}
	now := newClock().now
	open := func(dir string) (*flight.Log, error) {
		return flight.Open(flight.Options{Dir: filepath.Join(dir, "state", "flight"), Now: now})
	}
	powercut.Run(t, powercut.Scenario{
		Work: func(dir string, mark func(string)) error {
			l, err := open(dir)
			if err != nil {
				return err
			}
			for step := range 6 {
				for _, token := range tokens {
					if step >= len(lives[token]) {
						continue
					}
					if err := advance(l, token, step, lives[token]); err != nil {
						return fmt.Errorf("%s, step %d: %w", token, step, err)
					}
					mark(token)
					if lives[token][step] == flight.Started {
						mark("did " + token) // the effect
					}
				}
				if step == 2 { // a restart writes the file anew
					if err := l.Close(); err != nil {
						return err
					}
					if l, err = open(dir); err != nil {
						return err
					}
				}
			}
			return l.Close()
		},
		Check: func(dir string, marks []string) error {
			l, err := open(dir)
			if err != nil {
				return err
			}
			for _, token := range tokens {
				acknowledged := 0
				for _, m := range marks {
					if m == token {
						acknowledged++
					}
				}
				p, ok := l.Get(token)
				life := lives[token]
				switch {
				case !ok && acknowledged == 0:
					continue
				case !ok:
					return fmt.Errorf("%s was acknowledged %d times and is lost", token, acknowledged)
				case acknowledged > 0 && p.State == life[acknowledged-1]:
				case acknowledged < len(life) && p.State == life[acknowledged]:
				default:
					return fmt.Errorf("%s is %s after %d acknowledged steps of %v", token, p.State, acknowledged, life)
				}
				if slices.Contains(marks, "did "+token) && (p.State == flight.Planned || p.State == flight.Approved) {
					return fmt.Errorf("%s was carried out and may be carried out again: %s", token, p.State)
				}
				if p.State == flight.Planned != p.Answered.IsZero() {
					return fmt.Errorf("%s is %s and was answered at %v", token, p.State, p.Answered)
				}
				if !p.State.Ended() && p.Turn.Len() == 0 {
					return fmt.Errorf("%s is %s and its turn is lost", token, p.State)
				}
			}
			return l.Close()
		},
		Again: 2,
	})
}

// advance takes a plan into the next state of its life.
func advance(l *flight.Log, token string, step int, life []flight.State) error {
	var err error
	switch to := life[step]; {
	case step == 0:
		p := plan(token)
		p.Effects = []string{strings.Repeat("long ", 50*int(token[2]-'0'))}
		_, err = l.Ask(p, time.Hour)
	case to == flight.Planned:
		err = l.Withdraw(token)
	case to == flight.Approved, to == flight.Denied:
		_, err = l.Answer(token, flight.Answer{Yes: to == flight.Approved, By: proto.Origin{Role: proto.RoleOwner, Channel: "cli", Who: "uid:1"}})
	case to == flight.Started:
		err = l.Start(token, "r-"+token)
	default:
		err = l.End(token, to, "as it went")
	}
	return err
}
