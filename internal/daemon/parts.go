package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"passepartout/internal/act"
	"passepartout/internal/agent"
	"passepartout/internal/flight"
	"passepartout/internal/gate"
	"passepartout/internal/memory"
	"passepartout/internal/proto"
	"passepartout/internal/sandbox"
	"passepartout/internal/sexp"
)

// inbox is where captured headings go, relative to the memex.
const inbox = "inbox/inbox.org"

// openMemory reads the memex and follows what other programs do to it.
func (d *Daemon) openMemory(ctx context.Context) (*memory.Store, error) {
	m, err := memory.Open(ctx, d.s.MemexDir, memory.Options{
		State: filepath.Join(d.s.StateDir, "memory"), Now: d.now, PrivacyTags: d.s.PrivacyTags, Secluded: d.secluded, Still: func() bool { return d.watching.Load() > 0 }, Changed: d.stir, Progress: d.reading(ctx),
	})
	if err != nil {
		return nil, err
	}
	// Commands must not see or make this folder, and what is not there can only be
	// kept from them by something that stands in its place.
	if err := os.MkdirAll(filepath.Join(d.s.MemexDir, "system"), 0o755); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	looked := func(*memory.View, error) {
		if b := d.seen.Load(); b != nil {
			b.Look()
		}
	}
	if err := m.Watch(memory.WatchOptions{Notify: looked}); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// secluded reports whether a file of the memex is private whatever its tags say.
func (d *Daemon) secluded(file string) bool {
	return d.labels.Of(filepath.Join(d.s.MemexDir, filepath.FromSlash(file))).Private
}

// watched lists what commands are watched for, and keeps the daemon's own look at
// every file for after them.
func (d *Daemon) watched(m act.Memex) func() act.Seclusion {
	return func() act.Seclusion {
		d.still.RLock()
		d.watching.Add(1)
		s := m.Secluded()
		s.Done = func() {
			d.watching.Add(-1)
			d.still.RUnlock()
		}
		return s
	}
}

// assemble is the manifest: every actuator, tool, gate and engine of the product
// is named here.
func (d *Daemon) assemble() error {
	d.watch, d.kept = newWatch(d.s.Secrets), newEntries(d.s.Secrets, d.s.Vault)
	d.redact = d.watch.Redact
	var err error
	if d.skills, err = d.openSkills(); err != nil {
		return err
	}
	table, err := d.actuators()
	if err != nil {
		return err
	}
	d.policy = &policySource{
		memex: d.s.MemexDir, base: d.basePolicy(), vocabulary: table.Vocabulary(), skills: d.skills, log: d.log,
		record: func(p sexp.Plist) error { _, err := d.journal.Append(p); return err },
	}
	if err := d.policy.open(); err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	if d.engine, err = d.openEngine(d.watch.Redact); err != nil {
		return fmt.Errorf("models: %w", err)
	}
	if err := d.openRecall(); err != nil {
		return err
	}
	if err := d.openPlans(); err != nil {
		return fmt.Errorf("plans: %w", err)
	}
	d.diary = d.newDiary()
	if d.pulse, err = d.openPulse(); err != nil {
		return fmt.Errorf("pulse: %w", err)
	}
	if err := d.openGateways(); err != nil {
		return fmt.Errorf("channels: %w", err)
	}
	d.agent, err = agent.New(agent.Options{
		Chain:       d.policy.chain,
		Table:       table,
		Engine:      d.engine,
		Journal:     recorder{d},
		World:       world{scanner: d.watch.scanner.Load, places: d.layout(), memory: d.memory, vault: d.kept},
		Redact:      d.watch.Redact,
		Emit:        d.emit,
		Now:         d.now,
		NewID:       d.newID,
		Name:        d.s.Assistant,
		User:        d.s.Addressee,
		Fallback:    d.s.Fallback,
		ApprovalTTL: d.s.ApprovalTTL,
		Plans:       d.plans,
		Past:        d.pastOf,
		Learn:       d.learn,
		Step:        d.s.Step,
		Prompt:      d.withSkills(d.prompt()),
		Consensus:   d.s.Models.Consensus,
		Words:       map[string]func([]string) string{"/cost": d.costWord, "/models": d.modelsWord, "/status": d.statusWord},
		SessionWords: map[string]func(string, []string) string{
			"/focus": d.focusWord, "/unfocus": d.unfocusWord, "/context": d.contextWord,
		},
	})
	if err != nil {
		return err
	}
	return d.agent.Restore(d.witness)
}

// plansFile is where plans are shown, relative to the memex.
const plansFile = "system/flight-plans.org"

// openPlans opens the record of what waits for a person, which lies in the
// agent's own state, and the board that shows it in the memex.
func (d *Daemon) openPlans() error {
	d.board = flight.NewBoard(d.memory, plansFile, d.log)
	var err error
	d.plans, err = flight.Open(flight.Options{
		Dir: filepath.Join(d.s.StateDir, "flight"), Now: d.now, Approvers: d.s.Approvers, Changed: d.planChanged,
	})
	if err != nil {
		return err
	}
	d.board.Follow(d.plans)
	d.seen.Store(d.board)
	open, err := d.plans.Pending()
	for _, p := range append(open, d.plans.Ended(recentPlans)...) {
		d.board.Show(p) // the program may have died before it was shown
	}
	return err
}

// witnessed are the verbs whose every effect is in a history that is on disk before
// the effect: what is not in there did not happen.
var witnessed = []string{"tool.capture", "tool.org-edit", "tool.write-file", "tool.write-note", "tool.replace-in-file"}

// witness asks the histories of the memex and of files whether a plan's effect
// happened. Of effects elsewhere they know nothing; of a command they know what it
// changed, and not whether it came to its end.
func (d *Daemon) witness(p flight.Plan) (happened, known bool) {
	if p.Ruling == "" || !slices.Contains(witnessed, p.Name()) {
		return false, false
	}
	steps := act.History{Files: d.undo, Memory: d.memory}.Steps()
	return slices.ContainsFunc(steps, func(s act.Step) bool { return s.Ruling == p.Ruling && len(s.Paths) > 0 }), true
}

// actuators are all that can be done.
func (d *Daemon) actuators() (*act.Table, error) {
	history := act.History{Files: d.undo, Memory: d.memory}
	memex := act.Memex{Store: d.memory, Now: d.now, Inbox: inbox, Find: d.mirror.Search, PrivateTags: d.s.PrivacyTags, Closed: d.closed, Labels: d.labels}
	files := act.Files{History: history, Label: d.label(memex), Skip: d.unreadable, PrivateTags: d.s.PrivacyTags, Labels: d.labels}
	ours := slices.Concat(files.Tools(), memex.Tools(), history.Tools(), act.Web{Credentials: d.s.WebCredentials, Value: d.kept.get, Mask: d.redact}.Tools(), act.Plain())
	tools, err := act.NewToolbox(append(ours, d.skillTools(ours)...)...)
	if err != nil {
		return nil, err
	}
	shell := act.Shell{
		Dir: d.s.MemexDir, WriteRoots: d.writeRoots(), Hidden: d.newSealer().paths, Secluded: d.watched(memex), History: history, Labels: d.labels,
		Trial: d.s.Trial, Trials: filepath.Join(d.s.StateDir, "trials"),
	}
	all := []act.Actuator{
		tools,
		shell,
		act.Tests{Shell: shell},
		act.Planner{},
		act.Speaker{Channel: "system", Deliver: d.broadcast},
		act.Editor{Channel: editor, Ask: d.askEditor},
	}
	for _, c := range slices.Concat(channels, d.remote()) {
		if c != editor {
			all = append(all, act.Speaker{Channel: c}) // in-band: the turn's reply is the message
		}
	}
	return act.NewTable(all...)
}

func (d *Daemon) writeRoots() []string {
	return append([]string{d.s.MemexDir}, d.s.WriteRoots...)
}

// hidden is what no command may see: the daemon's own state, and the policy.
func (d *Daemon) hidden() []string {
	return slices.Concat([]string{d.s.StateDir}, d.s.Hidden)
}

// basePolicy is the part of the policy that follows from the settings and from
// what the kernel offers.
func (d *Daemon) basePolicy() gate.Policy {
	return gate.Policy{
		Home: d.s.Home, User: d.s.User, Cwd: d.s.MemexDir,
		ReadRoots: []string{"/"}, WriteRoots: d.writeRoots(), Own: append(d.own(), d.s.SocketPath),
		Steering:      []string{filepath.Join(d.s.MemexDir, "system")},
		Hosts:         d.s.Hosts,
		LocalChannels: channels,
		PrivacyTags:   d.s.PrivacyTags,
		Sandbox:       d.level(),
	}
}

// meanwhile begins to find something out, and returns how to wait for it.
func meanwhile[T any](find func() T) (wait func() T) {
	var found T
	done := make(chan struct{})
	go func() {
		defer close(done)
		found = find()
	}()
	return func() T { <-done; return found }
}

// sandboxLevel is what this machine can offer, in the gates' words.
func sandboxLevel() gate.Sandbox {
	switch sandbox.Strength(context.Background()) {
	case sandbox.Full:
		return gate.SandboxFull
	case sandbox.Isolated:
		return gate.SandboxPart
	case sandbox.None:
	}
	return gate.SandboxNone
}

// broadcast tells a session's clients something that is no answer.
func (d *Daemon) broadcast(session string, cause proto.ID, text string) error {
	d.hub.emit(session, proto.Message{
		Kind: proto.Log, Meta: sexp.P(sexp.Keyword("SESSION-ID"), session, sexp.Keyword("TURN"), string(cause)),
		Payload: sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("MESSAGE"), sexp.Keyword("TEXT"), text),
	})
	return nil
}

// recorder is the journal as the agent needs it.
type recorder struct{ d *Daemon }

func (r recorder) Append(p sexp.Plist) error {
	_, err := r.d.journal.Append(p)
	r.d.recorded(p, err)
	return err
}

func (r recorder) Note(p sexp.Plist) error {
	_, err := r.d.journal.AppendLazy(p)
	r.d.recorded(p, err)
	return err
}
