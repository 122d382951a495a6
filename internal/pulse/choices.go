package pulse

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"passepartout/internal/durable"
)

// choicesName is the file of what a person decided about orders.
const choicesName = "choices"

// choices are what a person decided: which orders count, and which rest.
type choices struct {
	path    string
	allowed map[string]bool // digests of orders
	paused  map[string]bool // identifiers of jobs
	// distrusted are digests of orders once found to be the agent's own. Who wrote
	// what is forgotten some day; this is not.
	distrusted map[string]bool
	unsaved    bool
}

// distrust remembers an order in a trusted place that is not the person's.
func (c *choices) distrust(j *Job) {
	if j.NeedsYes && !c.distrusted[j.Digest] && !c.allowed[j.Digest] && strings.HasPrefix(j.File, systemDir) {
		c.distrusted[j.Digest], c.unsaved = true, true
	}
}

func readChoices(dir string) (choices, error) {
	c := choices{allowed: map[string]bool{}, paused: map[string]bool{}, distrusted: map[string]bool{}}
	if dir == "" {
		return c, nil
	}
	c.path = filepath.Join(dir, choicesName)
	raw, err := os.ReadFile(c.path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for n := 1; lines.Scan(); n++ {
		word, arg, ok := strings.Cut(lines.Text(), " ")
		switch {
		case ok && word == "allow":
			c.allowed[arg] = true
		case ok && word == "pause":
			c.paused[arg] = true
		case ok && word == "distrust":
			c.distrusted[arg] = true
		default:
			return c, fmt.Errorf("%s:%d: want allow, pause or distrust, found %q", c.path, n, lines.Text())
		}
	}
	return c, lines.Err()
}

// save replaces the file whole.
func (c choices) save() error {
	if c.path == "" {
		return nil
	}
	var lines []string
	for d := range c.allowed {
		lines = append(lines, "allow "+d+"\n")
	}
	for id := range c.paused {
		lines = append(lines, "pause "+id+"\n")
	}
	for d := range c.distrusted {
		lines = append(lines, "distrust "+d+"\n")
	}
	slices.Sort(lines)
	return durable.Replace(c.path, []byte(strings.Join(lines, "")), 0o600)
}

// Allow lets an order count, in the form it has now.
func (p *Pulse) Allow(name string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o, err := p.order(name)
	if err != nil {
		return "", err
	}
	p.choices.allowed[o.Digest] = true
	delete(p.choices.distrusted, o.Digest)
	if err := p.choices.save(); err != nil {
		delete(p.choices.allowed, o.Digest)
		return "", err
	}
	if s := p.jobs[o.ID]; s != nil {
		// It was not in force, so nothing was due.
		now := p.o.Now()
		if err := p.log.Put(true, Run{ID: "seen", Job: s.ID, State: Seen, At: now, Timing: s.timing}); err != nil {
			return "", err
		}
		s.handled = now
		p.schedule(s, now)
	}
	p.Wake()
	return o.Name, nil
}

// Pause lets a job rest until it is resumed. What falls due meanwhile is recorded
// as skipped when it goes on.
func (p *Pulse) Pause(name string, rest bool) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, err := p.find(name)
	if err != nil {
		return "", err
	}
	was := p.choices.paused[s.ID]
	if rest == was {
		return "", fmt.Errorf("%s is %s already", s.Name, map[bool]string{true: "paused", false: "going"}[rest])
	}
	if rest {
		p.choices.paused[s.ID] = true
	} else {
		delete(p.choices.paused, s.ID)
	}
	if err := p.choices.save(); err != nil {
		return "", err
	}
	now := p.o.Now()
	if !rest {
		p.rested(s, now)
	}
	p.schedule(s, now)
	p.Wake()
	return s.Name, nil
}

// rested records what fell due while a job was paused.
func (p *Pulse) rested(s *scheduled, now time.Time) {
	pa := p.past(s)
	var first, last time.Time
	n := 0
	for due := range pa.open(s.Job, pa.from(s.Job, now)) {
		if due.After(now) {
			break
		}
		if n++; n == 1 {
			first = due
		}
		last = due
	}
	if n > 0 {
		s.handled = last
		p.put(Run{ID: p.o.NewID("r"), Job: s.ID, Name: s.Name, State: Skipped, Due: first, Until: last, Count: n, At: now, Ended: now, Text: "it was paused"})
	}
}

// find is a job by identifier, by title, or by the beginning of either if only one
// has it.
func (p *Pulse) find(name string) (*scheduled, error) {
	o, err := p.order(name)
	if err != nil {
		return nil, err
	}
	if s := p.jobs[o.ID]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("%s is a hook: it has no schedule", o.Name)
}

// order is a job or a hook by what people call it.
func (p *Pulse) order(name string) (*Job, error) {
	var exact, begins []*Job
	each := func(j *Job) {
		switch {
		case j.ID == name || strings.EqualFold(j.Name, name):
			exact = append(exact, j)
		case len(name) > 1 && (strings.HasPrefix(j.ID, name) || strings.HasPrefix(strings.ToLower(j.Name), strings.ToLower(name))):
			begins = append(begins, j)
		}
	}
	for _, s := range p.jobs {
		each(s.Job)
	}
	for _, h := range p.hooks {
		each(h.Job)
	}
	found := exact
	if len(found) == 0 {
		found = begins
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("there is no job or hook %q: see passepartout schedule list", name)
	case 1:
		return found[0], nil
	}
	slices.SortFunc(found, func(a, b *Job) int { return cmp.Compare(a.ID, b.ID) })
	return nil, fmt.Errorf("%q could be %s or %s: give the identifier", name, found[0].ID, found[1].ID)
}
