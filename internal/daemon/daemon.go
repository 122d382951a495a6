// Package daemon puts the parts together and serves clients.
//
// The central types:
//
//   - [Settings] say where everything lies and how it is limited.
//   - [Daemon] is the running whole: [Open] builds it, [Daemon.Run] serves until its
//     context ends, and everything it started has ended when Run returns.
//   - parts.go is the manifest: all gates, tools, actuators and engines are named
//     there and nowhere else.
//
// Delivery, as clients may rely on it: every message that is accepted gets exactly
// one terminal :RESPONSE carrying the message's own :ID as :IN-REPLY-TO. Statuses,
// traces, approvals and terminal responses are never dropped; stream chunks may
// be, for a client that reads slowly. A client that does not read at all is cut
// off. Frames of one turn arrive in order.
//
// The rule a newcomer will break: a client's claims are not facts. Origin comes
// from the socket's credentials, sensors from a short list, depth and taint from
// the kernel.
package daemon

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"passepartout/internal/act"
	"passepartout/internal/agent"
	"passepartout/internal/durable"
	"passepartout/internal/flight"
	"passepartout/internal/fovea"
	"passepartout/internal/gate"
	"passepartout/internal/journal"
	"passepartout/internal/label"
	"passepartout/internal/llm"
	"passepartout/internal/memory"
	"passepartout/internal/proto"
	"passepartout/internal/pulse"
	"passepartout/internal/recall"
	"passepartout/internal/sexp"
	"passepartout/internal/skill"
	"passepartout/internal/undo"
)

// Settings are what a daemon is built from. Paths are absolute.
type Settings struct {
	MemexDir   string
	StateDir   string
	SkillsDir  string // installed skills; "" loads none, not even bundled ones
	SocketPath string
	TCPAddr    string // "" for none; loopback only
	TokenFile  string // proof for TCP clients
	Assistant  string
	Addressee  string // how it addresses the person
	Fallback   string // where a reply goes that came from no channel
	Diary      string // what is written about turns into daily/: "trace", "talk", "all"; else nothing
	Notices    string // when paired telephones are told what nobody asked for: "local" never, "always"; else when no client listens
	// RequireSandbox refuses to start where a command could not be shut in.
	RequireSandbox bool
	JournalBytes   int64 // size at which a journal segment is full; 0 is the journal's own
	Home, User     string
	PrivacyTags    []string
	Hosts          []string          // that may be reached without asking
	WriteRoots     []string          // besides the memex
	Trial          time.Duration     // a command may be tried before a person is asked; 0: never
	UndoBytes      int64             // of old contents kept; 0 for the usual
	UndoFile       int64             // of the largest file kept; 0 for the usual
	Hidden         []string          // the agent's own files besides StateDir
	Secrets        map[string]string // values that never leave, by name
	Vault          []string          // entries of the vault that is open
	// ReadVault reads the vault again; nil: that takes a restart.
	ReadVault      func() (Kept, error)
	WebCredentials []act.Credential // which host is shown which entry of it
	Models         Models
	Channels       Channels
	ApprovalTTL    time.Duration
	Approvers      flight.Approvers
	Step           func(name string) // told of each step of an approval; for tests that end the process there
	NotifySocket   string            // of the service manager, "" for none
	IdleExit       time.Duration     // 0: stay; else end after so long without a client
	MaxClients     int
	// FrameTimeout is how long a frame that has begun may take to arrive, and
	// how long a client may take to introduce itself; 0 is ten seconds.
	FrameTimeout time.Duration
	Log          *slog.Logger
	Now          func() time.Time // nil: the real clock
}

// resolved are the settings with the links of the memex's own path followed. Actions
// name what is in it by its real path, and so must whoever compares with that: what
// is private, and what strangers sent, would not be recognised otherwise.
func (s Settings) resolved() Settings {
	if real, err := filepath.EvalSymlinks(s.MemexDir); err == nil { // else there is none, which is said later
		s.MemexDir = real
	}
	return s
}

// A Daemon is one running instance. Its fields are constant after Open, but for
// the counters.
type Daemon struct {
	s        Settings // with the links of MemexDir resolved
	memex    string   // as the settings name it
	log      *slog.Logger
	now      func() time.Time
	lock     *os.File
	journal  *journal.Journal
	talks    *conversations // who said what where in the journal
	memory   *memory.Store
	mirror   *fovea.Mirror // the index of the memory
	feed     *recall.Feed  // a provider's vectors for it; nil for none
	gazes    *gazes        // where each session looks
	undo     *undo.Store
	labels   *label.Store        // of files that do not say themselves where their text came from
	still    sync.RWMutex        // held for reading while a command runs that must not be blamed for what we open
	watching atomic.Int32        // how many such commands run
	skills   *skill.Library      // nil: none
	level    func() gate.Sandbox // what this machine offers, found out once
	policy   *policySource
	engine   *llm.Engine
	books    *os.File // of the cost ledger; nil until it is open
	tape     *os.File // what providers say is recorded there; nil for nowhere
	plans    *flight.Log
	board    *flight.Board
	seen     atomic.Pointer[flight.Board] // board, for the goroutine that watches the memex
	agent    *agent.Agent
	pulse    *pulse.Pulse
	redact   func(string) string // removes credentials
	replies  replies             // what jobs wait for
	causes   causes              // which turn a ruling belongs to
	diary    *diary              // nil: none is kept
	edits    edits               // which text of the memex is the agent's own
	stirred  chan struct{}       // the memex has changed
	outlook  atomic.Pointer[outlook]
	hub      *hub
	asked    editsAsked // of editors, and not answered yet
	tasks    tasks      // long work of clients

	lines lines
	watch *watch   // for credentials
	kept  *entries // of the vault

	token   []byte
	started time.Time

	conns   sync.WaitGroup
	clients atomic.Int64
	open    openConns

	choosing sync.Mutex // keeps choices of models apart, and their file whole
}

// ErrRunning means another daemon serves this state directory.
var ErrRunning = errors.New("a daemon is already running")

// Open builds a daemon. Nothing listens yet.
func Open(ctx context.Context, s Settings) (*Daemon, error) {
	d := &Daemon{s: s.resolved(), memex: s.MemexDir, log: s.Log, now: s.Now, hub: newHub(), stirred: make(chan struct{}, 1), lines: lines{begun: make(chan struct{})}}
	if d.now == nil {
		d.now = time.Now
	}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if d.s.FrameTimeout == 0 {
		d.s.FrameTimeout = frameTimeout
	}
	d.started = d.now()
	if err := durable.MkdirAll(s.StateDir, 0o700); err != nil {
		return nil, err
	}
	if err := d.takeLock(); err != nil {
		return nil, err
	}
	d.forgetStart() // of a daemon that was killed
	if err := d.build(ctx); err != nil {
		return nil, errors.Join(err, d.release())
	}
	return d, nil
}

// build opens the parts, in the order in which each needs the one before.
func (d *Daemon) build(ctx context.Context) error {
	d.level = meanwhile(sandboxLevel) // a process of its own finds that out
	defer d.level()
	if d.s.RequireSandbox && d.level() != gate.SandboxFull {
		return fmt.Errorf("a full sandbox is required and this machine offers %q: see passepartout doctor", d.level())
	}
	var err error
	if d.token, err = d.readToken(); err != nil {
		return err
	}
	j, rec, err := journal.Open(filepath.Join(d.s.StateDir, "journal"), journal.Options{Now: d.now, SegmentBytes: d.s.JournalBytes})
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	d.journal, d.talks = j, newConversations(d.s.StateDir, d.log)
	if rec.Torn() {
		d.log.Warn("the journal had a torn end", "recovery", rec.String())
	}
	if d.labels, err = label.Open(filepath.Join(d.s.StateDir, "labels")); err != nil {
		return err
	}
	if d.memory, err = d.openMemory(ctx); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("there is no folder of notes at %s: make it, or set MEMEX_DIR to yours, or look around first with `passepartout --demo`", d.s.MemexDir)
		}
		return fmt.Errorf("memex %s: %w", d.s.MemexDir, err)
	}
	d.mirror = fovea.NewMirror(recall.Options{Hashing: d.s.Models.Hashing})
	if d.undo, err = d.openUndo(); err != nil {
		return fmt.Errorf("undo: %w", err)
	}
	return d.assemble()
}

// release gives back what build has opened.
func (d *Daemon) release() error {
	var errs []error
	if d.lock != nil {
		d.forgetStart()
	}
	if d.pulse != nil {
		errs = append(errs, d.pulse.Close())
	}
	if d.agent != nil {
		d.agent.Close()
	}
	for _, l := range d.lines.list() {
		errs = append(errs, l.gateway.Close())
	}
	if d.plans != nil {
		errs = append(errs, d.plans.Close())
	}
	if d.board != nil {
		d.board.Close()
	}
	if d.undo != nil {
		errs = append(errs, d.undo.Close())
	}
	if d.memory != nil {
		errs = append(errs, d.memory.Close())
	}
	errs = append(errs, d.labels.Close())
	if d.journal != nil {
		errs = append(errs, d.talks.close(), d.journal.Close())
	}
	for _, f := range []*os.File{d.books, d.tape} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	if d.lock != nil {
		errs = append(errs, d.lock.Close())
	}
	return errors.Join(errs...)
}

// Run serves until the context ends, then says goodbye in order: no new clients,
// turns end with their replies, replies are written, files are closed.
func (d *Daemon) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	d.pulse.Tick(d.now()) // clients find the orders read
	listeners, err := d.listen(ctx)
	if err != nil {
		return errors.Join(err, d.release())
	}
	d.forgetStart()
	d.log.Info("listening", "socket", d.s.SocketPath, "memex", d.s.MemexDir, "headings", d.memory.View().Len())
	d.notify(ctx, "READY=1\nSTATUS=Listening on "+d.s.SocketPath)
	d.conns.Go(func() { d.follow(ctx) })
	d.conns.Go(func() { d.indexTalks(ctx) })
	d.conns.Go(func() { d.pulse.Run(ctx) })
	d.conns.Go(func() { d.watchMemex(ctx) })
	// The diary outlives the context: turns that are cut short by its end are in it, too.
	writing, written := context.WithCancel(context.WithoutCancel(ctx))
	defer written()
	if d.diary != nil {
		d.conns.Go(func() { d.diary.write(writing) })
	}
	waitGateways := d.runGateways(ctx)
	if d.s.IdleExit > 0 {
		d.conns.Add(1)
		go func() {
			defer d.conns.Done()
			d.watchIdle(ctx, stop)
		}()
	}
	<-ctx.Done()
	d.log.Info("shutting down")
	d.notify(context.WithoutCancel(ctx), "STOPPING=1")
	var errs []error
	for _, l := range listeners {
		errs = append(errs, l.Close())
	}
	waitGateways() // before the agent: turns that are cut short now are no answers
	d.agent.Close()
	written()
	d.open.closeAll()
	d.conns.Wait()
	return errors.Join(append(errs, d.release())...)
}

// watchIdle ends the daemon when nobody has been connected for a while.
func (d *Daemon) watchIdle(ctx context.Context, stop func()) {
	tick := time.NewTicker(max(d.s.IdleExit/4, 50*time.Millisecond))
	defer tick.Stop()
	idle := time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if d.clients.Load() > 0 || d.lines.any() { // who may be written to stays
			idle = 0
			continue
		}
		if idle += max(d.s.IdleExit/4, 50*time.Millisecond); idle >= d.s.IdleExit {
			d.log.Info("no client for a while", "idle", d.s.IdleExit)
			stop()
			return
		}
	}
}

// readToken reads the proof TCP clients must know. Without TCP there is none.
func (d *Daemon) readToken() ([]byte, error) {
	if d.s.TCPAddr == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(d.s.TokenFile)
	if err != nil {
		return nil, fmt.Errorf("token file for TCP clients: %w", err)
	}
	st, err := os.Stat(d.s.TokenFile)
	if err != nil {
		return nil, err
	}
	token := strings.TrimSpace(string(raw))
	switch {
	case st.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("token file %s has mode %v: others can read it; chmod 600", d.s.TokenFile, st.Mode().Perm())
	case len(token) < 16:
		return nil, fmt.Errorf("token file %s holds %d characters: want at least 16", d.s.TokenFile, len(token))
	}
	return []byte(token), nil
}

// ids are random, short enough to type, and without letters people confuse.
var idText = base32.NewEncoding("abcdefghjkmnpqrstuvwxyz023456789").WithPadding(base32.NoPadding)

func (d *Daemon) newID(prefix string) proto.ID {
	var b [6]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails
	return proto.ID(prefix + "-" + idText.EncodeToString(b[:]))
}

func (d *Daemon) nonce() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails
	return idText.EncodeToString(b[:])
}

// capabilities are what the greeting promises.
func (d *Daemon) capabilities() []string { return []string{"APPROVALS", "TRACE", "INTERRUPT"} }

// health is the daemon's state for clients and for doctor.
func (d *Daemon) health() sexp.Plist {
	seq, head := d.journal.Head()
	chain := d.policy.chain()
	h := sexp.P(
		sexp.Keyword("STATUS"), sexp.Keyword("DONE"),
		sexp.Keyword("PID"), os.Getpid(),
		sexp.Keyword("STARTED"), d.started.UTC().Format(time.RFC3339),
		sexp.Keyword("MEMEX"), d.memex,
		sexp.Keyword("HEADINGS"), d.memory.View().Len(),
		sexp.Keyword("CLIENTS"), d.clients.Load(), sexp.Keyword("GOROUTINES"), runtime.NumGoroutine(),
		sexp.Keyword("GATES"), chain.Gates(),
		sexp.Keyword("POLICY"), chain.Policy().String(),
		sexp.Keyword("JOURNAL"), int64(seq), sexp.Keyword("HEAD"), head.String())
	if p, ok := d.mirror.Progress(); ok {
		h = h.With("EMBEDDINGS", embeddings(p).List())
	}
	if err := d.policy.problem(); err != nil {
		h = h.With("POLICY-PROBLEM", sexp.String(err.Error()))
	}
	return h
}

// openConns lets a shutdown end connections that wait for their clients.
type openConns struct {
	mu   sync.Mutex // guards what follows
	set  map[net.Conn]bool
	over bool
}

func (o *openConns) add(c net.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.set == nil {
		o.set = map[net.Conn]bool{}
	}
	o.set[c] = true
}

func (o *openConns) remove(c net.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.set, c)
}

// closing reports whether the daemon is shutting down.
func (o *openConns) closing() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.over
}

// closeAll makes every reader stop; writers drain what is queued.
func (o *openConns) closeAll() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
	for c := range o.set {
		_ = c.SetReadDeadline(time.Unix(1, 0)) // a closed connection needs no deadline
	}
}
