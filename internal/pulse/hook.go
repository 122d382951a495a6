package pulse

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"passepartout/internal/memory"
)

// An Event is something that happened. Turn is the turn or run that caused it, ""
// when a person or another program did.
type Event struct {
	Kind string // "signal", "file", "todo", "approval" or "journal"
	What string // the sensor, the path, the new state, the answer, the kind of entry
	Path string // for todo: the file it happened in
	Text string // what happened, in words
	Turn string
}

// eventKinds are what a hook can wait for.
var eventKinds = []string{"signal", "file", "todo", "approval", "journal"}

// A Hook is a standing order with an event.
type Hook struct {
	Job
	Event   string // its kind
	Pattern string // of what; "" for any
	Below   string // for todo: only in files of this folder or name
}

// matches reports whether an event is the hook's.
func (h *Hook) matches(e Event) bool {
	if e.Kind != h.Event {
		return false
	}
	if e.Kind == "file" {
		return h.Pattern == "" || fits(h.Pattern, e.What)
	}
	if h.Pattern != "" && !strings.EqualFold(h.Pattern, e.What) {
		return false
	}
	return h.Below == "" || fits(h.Below, e.Path)
}

// hook reads a heading's order: the value of HOOK says when, the rest is as for a
// job.
func (s *Source) hook(o memory.Object, event string) (*Hook, error) {
	j, err := s.base(o)
	if err != nil {
		return nil, err
	}
	j.ID = hookMark + j.ID
	h := &Hook{Job: j}
	return h, h.on(event)
}

// keywordHooks reads lines before the first heading, of the form
//
//	#+HOOK: todo DONE projects/ => prompt What follows from this?
func (s *Source) keywordHooks(to *Orders, f memory.Object) {
	n := 0
	for line := range strings.Lines(f.Body()) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok || !strings.EqualFold(key, "#+HOOK") {
			continue
		}
		n++
		h, err := s.keywordHook(f, strings.TrimSpace(value), n)
		if err != nil {
			to.Problems = append(to.Problems, Problem{f.File, 1, "#+HOOK: " + strings.TrimSpace(value), err})
			continue
		}
		to.Hooks = append(to.Hooks, h)
	}
}

func (s *Source) keywordHook(f memory.Object, text string, n int) (*Hook, error) {
	event, order, ok := strings.Cut(text, "=>")
	if !ok {
		return nil, fmt.Errorf("want EVENT => ORDER")
	}
	do, rest, _ := strings.Cut(strings.TrimSpace(order), " ")
	props := map[string]string{"DO": strings.TrimSpace(order)}
	h := &Hook{Job: Job{ID: fmt.Sprintf("%s%s#%d", hookMark, f.ID, n), Name: strings.TrimSpace(text), File: f.File, Line: 1}}
	if strings.EqualFold(do, DoPrompt) {
		props["DO"], h.Text = DoPrompt, strings.TrimSpace(rest)
	}
	if err := h.settings(func(key string) string { return props[key] }); err != nil {
		return nil, err
	}
	h.NeedsYes = !strings.HasPrefix(f.File, systemDir) || s.Written != nil && s.Written(f)
	return h, h.on(strings.TrimSpace(event))
}

// on reads what a hook waits for: a kind of event, what of it, and for a state
// where.
func (h *Hook) on(event string) error {
	words := strings.Fields(event)
	if len(words) == 0 || len(words) > 3 || !slices.Contains(eventKinds, strings.ToLower(words[0])) {
		return fmt.Errorf("event %q: want one of %s, and what of it", event, strings.Join(eventKinds, ", "))
	}
	h.Event = strings.ToLower(words[0])
	if len(words) > 1 && words[1] != "*" {
		h.Pattern = words[1]
	}
	if len(words) > 2 {
		if h.Event != "todo" {
			return fmt.Errorf("event %q: only a state has a place", event)
		}
		h.Below = words[2]
	}
	h.Schedule = "on " + strings.Join(words, " ")
	h.CatchUp = CatchUp{Policy: "none"}
	h.Overlap = OverlapQueue
	h.Digest = digest("hook", h.Schedule, h.Name, h.Do, h.What, h.Text, string(h.Tier), h.When.String())
	return nil
}

// hookMark begins the identifiers under which hooks are recorded.
const hookMark = "hook:"

func isHook(id string) bool { return strings.HasPrefix(id, hookMark) }

// HookOf is the identifier of the heading an order stands under, and whether it is a
// hook. One that stands under none has no such heading.
func HookOf(job string) (heading string, hook bool) { return strings.CutPrefix(job, hookMark) }

// Limits of hooks.
const (
	maxEvents    = 1024 // that wait to be looked at
	maxChain     = 4    // hooks that cause each other
	maxPerMinute = 20   // runs of one hook
	maxMerged    = 50   // events one run is about
	maxChains    = 4096 // runs whose causes are remembered
)

// hooked is a hook in force.
type hooked struct {
	*scheduled
	hook    *Hook
	recent  []time.Time // of its runs
	refused bool        // it has been told that it runs too often
}

// chains remember which hooks led to a run.
type chains struct {
	of    map[string][]string // by run
	order []string
}

func (c *chains) put(run string, chain []string) {
	if c.of == nil {
		c.of = map[string][]string{}
	}
	c.of[run] = chain
	if c.order = append(c.order, run); len(c.order) > maxChains {
		delete(c.of, c.order[0])
		c.order = c.order[1:]
	}
}

// takeHooks puts the hooks of the orders in force.
func (p *Pulse) takeHooks() {
	next := make(map[string]*hooked, len(p.orders.Hooks))
	for _, h := range p.orders.Hooks {
		p.choices.distrust(&h.Job)
		k := p.hooks[h.ID]
		if k == nil {
			k = &hooked{scheduled: &scheduled{place: -1}}
		}
		k.hook, k.Job = h, &h.Job
		next[h.ID] = k
	}
	p.hooks = next
}

// Notify reports an event. It never blocks: when nobody has time for it, it is
// counted as dropped.
func (p *Pulse) Notify(e Event) {
	select {
	case p.events <- e:
	default:
		p.dropped.Add(1)
	}
}

// listen deals with events until the context ends.
func (p *Pulse) listen(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-p.events:
			p.happened(e)
		}
	}
}

// happened lets the hooks of an event run.
func (p *Pulse) happened(e Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	for _, id := range sortedKeys(p.hooks) {
		h := p.hooks[id]
		if p.counts(h.Job) && h.hook.matches(e) {
			p.hookRun(h, e, p.o.Now())
		}
	}
	p.skillHooks(e)
	p.fill()
}

// skillHooks lets the hooks run that skills have registered for an event.
func (p *Pulse) skillHooks(e Event) {
	if p.o.Registered == nil {
		return
	}
	for _, ref := range p.o.Registered(e) {
		id := hookMark + ref
		h := p.registered[id]
		if h == nil {
			j := &Job{
				ID: id, Name: ref, Schedule: "on " + e.Kind, Do: DoSkill, What: ref, Tier: Reflex, Timeout: skillTimeout,
				Overlap: OverlapQueue, CatchUp: CatchUp{Policy: "none"}, Quiet: true,
			}
			h = &hooked{scheduled: &scheduled{Job: j, place: -1}, hook: &Hook{Job: *j, Event: e.Kind}}
			if p.registered == nil {
				p.registered = map[string]*hooked{}
			}
			p.registered[id] = h
		}
		p.hookRun(h, e, p.o.Now())
	}
}

// skillTimeout is how long a hook of a skill may take.
const skillTimeout = 10 * time.Second

func (p *Pulse) hookRun(h *hooked, e Event, now time.Time) {
	r := Run{ID: p.o.NewID("r"), Job: h.ID, Name: h.Name, Due: now, At: now, Attempt: 1}
	chain := p.chains.of[e.Turn]
	if slices.Contains(chain, h.ID) || len(chain) >= maxChain {
		r.State, r.Ended, r.Text = Skipped, now, "a loop: "+strings.Join(append(p.names(chain), h.Name), " → ")
		p.put(r)
		return
	}
	h.recent = slices.DeleteFunc(h.recent, func(t time.Time) bool { return now.Sub(t).Abs() > time.Minute }) // a clock may go back
	if len(h.recent) >= maxPerMinute {
		if !h.refused {
			r.State, r.Ended, r.Text = Skipped, now, fmt.Sprintf("too often: %d runs within a minute", len(h.recent))
			p.put(r)
		}
		h.refused = true
		return
	}
	h.refused = false
	if p.merge(h, e) {
		return
	}
	h.recent = append(h.recent, now)
	p.chains.put(r.ID, append(slices.Clone(chain), h.ID))
	// A run has words of its own: which event it is about.
	own := *h.Job
	own.Text = withEvent(h.Job, e)
	p.enqueue(pending{&scheduled{Job: &own, place: -1}, r})
}

// merge adds an event to a run of the hook that has not begun.
func (p *Pulse) merge(h *hooked, e Event) bool {
	for _, w := range p.queue {
		if w.run.Job == h.ID && strings.Count(w.s.Text, eventMark) < maxMerged {
			w.s.Text += "\n" + eventMark + e.Text
			return true
		}
	}
	return false
}

// eventMark begins the line that tells a prompt what happened.
const eventMark = "Event: "

func withEvent(j *Job, e Event) string {
	if j.Do == DoTool {
		return j.Text
	}
	return strings.TrimSpace(j.Text + "\n\n" + eventMark + e.Text)
}

// names are what people call the hooks of a chain.
func (p *Pulse) names(chain []string) []string {
	out := make([]string, 0, len(chain)+1)
	for _, id := range chain {
		if h := p.hooks[id]; h != nil {
			id = h.Name
		}
		out = append(out, id)
	}
	return out
}
