package soak

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"passepartout/internal/channel/channeltest"
)

// A plan says how long a run is and what takes part in it.
type plan struct {
	length time.Duration
	watch  time.Duration // of it, at the end: nothing ends the daemon, and what it uses must stay flat
	pause  time.Duration // between faults, on average
	clock  bool          // the binary's clock can be set
	least  int           // faults there must have been
}

// A world is one run: its directories, its daemon, and the record of what was sent
// and broken.
type world struct {
	t     *testing.T
	plan  plan
	dir   string
	stage string
	seed  uint64
	began time.Time
	env   []string // of clients that reach the daemon directly
	far   []string // of clients that reach it through the proxy

	ledger   ledger
	daemon   keeper
	model    *model
	telegram *channeltest.Telegram
	socket   *proxy // before the daemon
	http     *proxy // before the model
	canaries []canary
	books    books
	readings []reading // of the watch

	logMu  sync.Mutex
	events *os.File
	faults tally
	hurt   atomic.Int32 // faults in force that may keep a daemon from starting

	watching atomic.Bool // the watch has begun
}

// path is a file of the run.
func (w *world) path(elem ...string) string {
	return filepath.Join(append([]string{w.dir}, elem...)...)
}

// now is how long the run has gone on, by a clock nobody sets.
func (w *world) now() time.Duration { return time.Since(w.began) }

// note writes a line into the run's log.
func (w *world) note(format string, args ...any) {
	w.logMu.Lock()
	defer w.logMu.Unlock()
	fmt.Fprintf(w.events, "%9.3f %s\n", w.now().Seconds(), fmt.Sprintf(format, args...))
}

// fault counts a fault that was injected, and writes it down.
func (w *world) fault(kind, format string, args ...any) {
	w.faults.add(kind)
	w.note("fault %s: %s", kind, fmt.Sprintf(format, args...))
}

// random is a source of its own for each part, so that the order in which parts run
// does not change what each of them does.
func (w *world) random(part string) *rand.Rand {
	var h uint64 = 1469598103934665603
	for _, b := range []byte(part) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return rand.New(rand.NewPCG(w.seed, h))
}

// rest waits a while, or until the run ends; true means go on.
func rest(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// A tally counts by name.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *tally) add(kind string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[kind]++
}

func (c *tally) all() (total int, each map[string]int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	each = map[string]int{}
	for k, n := range c.n {
		each[k] = n
		total += n
	}
	return total, each
}

// A message is one thing that was said, and what became of it.
type message struct {
	mark    string // a word that no other message has
	kind    string
	by      string
	cell    string // which it wants to change
	value   string
	sent    time.Duration
	ended   time.Duration // 0: nobody knows when, if ever
	fate    fate
	status  string // of the answer
	text    string
	answers int
}

// done reports whether the sender was told that the effect happened.
func (m *message) done() bool {
	return m.fate == answered && strings.Contains(m.text, m.mark+" done.")
}

type fate uint8

const (
	waiting  fate = iota // for its answer
	answered             // exactly what was waited for
	reported             // the sender was told that there is no answer
)

// A ledger holds every message of the run.
type ledger struct {
	mu   sync.Mutex
	all  []*message
	byID map[string]*message
}

// open begins a message: its text contains the mark.
func (l *ledger) open(w *world, by, kind, cell string) (*message, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byID == nil {
		l.byID = map[string]*message{}
	}
	m := &message{mark: fmt.Sprintf("m%05d", len(l.all)+1), kind: kind, by: by, cell: cell, sent: w.now()}
	l.all = append(l.all, m)
	l.byID[m.mark] = m
	text := "soak " + kind + " " + m.mark
	if cell != "" {
		text += " " + cell
	}
	return m, text
}

// answer closes a message with what came back.
func (l *ledger) answer(w *world, m *message, status, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m.fate, m.status, m.text, m.ended = answered, status, text, w.now()
	m.answers++
}

// report closes a message whose sender was told that there will be no answer.
func (l *ledger) report(w *world, m *message, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m.fate, m.text = reported, why
}

// newWorld makes the directories of a run.
func newWorld(t *testing.T, dir, stage string, seed uint64, p plan) *world {
	t.Helper()
	w := &world{t: t, plan: p, dir: dir, stage: stage, seed: seed, began: time.Now()}
	var err error
	if w.events, err = os.Create(w.path("events.log")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.furnish(), w.setClock(0)); err != nil {
		t.Fatal(err)
	}
	return w
}

// settings are the environment of the program and its clients.
func (w *world) settings(host string) []string {
	return []string{
		"HOME=" + w.path("home"), "PATH=" + w.path("bin") + ":" + os.Getenv("PATH"), "TMPDIR=" + w.path("tmp"), "LC_ALL=C.UTF-8", "TERM=tmux-256color",
		"MEMEX_DIR=" + w.path("memex", "notes"), "PASSEPARTOUT_STATE_DIR=" + w.path("state", "s"), "PASSEPARTOUT_DATA_DIR=" + w.path("home", "data"),
		"PASSEPARTOUT_CONFIG_DIR=" + w.path("home", "config"), "PASSEPARTOUT_RUNTIME_DIR=" + w.path("run"), clockVar + "=" + w.path("clock"),
		"LOCAL_URL=http://" + host + "/v1", "OLLAMA_URL=http://127.0.0.1:1", "PROVIDER_CASCADE=local",
		"PASSEPARTOUT_MODELS=cognition=local/tiny,reasoning=local/tiny", "REQUEST_TIMEOUT=5s",
		"TURN_BUDGET_USD=none", "SESSION_BUDGET_USD=none", "JOB_BUDGET_USD=none", "DAY_BUDGET_USD=none", "MONTH_BUDGET_USD=none",
		"PASSEPARTOUT_APPROVAL_EXPIRY=1m", "PASSEPARTOUT_TRY_SECONDS=0", "PASSEPARTOUT_DIARY=none", "PASSEPARTOUT_JOURNAL_BYTES=2097152",
		"TELEGRAM_API_URL=" + w.telegram.URL, "TELEGRAM_BOT_TOKEN=" + channeltest.Token, "OPENAI_API_KEY=" + w.canaryOf("environment"),
	}
}

// command is the program with a client's arguments.
func (w *world) command(ctx context.Context, env []string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, w.path("bin", "passepartout"), args...)
	c.Env = env
	c.Dir = w.path("home")
	c.WaitDelay = 5 * time.Second
	return c
}

// run runs a client to its end.
func (w *world) run(ctx context.Context, env []string, args ...string) (stdout, stderr string, code int) {
	c := w.command(ctx, env, args...)
	var out, talk bytes.Buffer
	c.Stdout, c.Stderr = &out, &talk
	_ = c.Run() // the exit code says it
	return out.String(), talk.String(), c.ProcessState.ExitCode()
}

// A keeper starts the daemon, again whenever it has ended.
type keeper struct {
	mu      sync.Mutex
	starts  int
	excused string // why its end is expected
	strange []string
	logs    *os.File
}

// inOrder is the excuse of a daemon that was asked to end and must do so well.
const inOrder = "asked to end"

// excuse says beforehand that the daemon will end.
func (k *keeper) excuse(why string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.excused = why
}

// keep runs daemons until the run ends. One that a client has started meanwhile is
// as good: then this one waits for its end.
func (w *world) keep(ctx context.Context) {
	k := &w.daemon
	var err error
	if k.logs, err = os.OpenFile(w.path("daemon.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		w.t.Error(err)
		return
	}
	defer k.logs.Close()
	for ctx.Err() == nil {
		hurt := w.hurt.Load() > 0
		c := exec.Command(w.path("bin", "passepartout"), "daemon")
		c.Env, c.Dir = w.env, w.path("home")
		var tail bytes.Buffer
		c.Stdout, c.Stderr = k.logs, &tee{k.logs, &tail}
		k.mu.Lock()
		k.starts++
		k.excused = ""
		k.mu.Unlock()
		began := w.now()
		if err := c.Start(); err != nil {
			w.t.Errorf("starting the daemon: %v", err)
			return
		}
		stop := context.AfterFunc(ctx, func() { c.Process.Signal(syscall.SIGTERM) })
		err := c.Wait()
		stop()
		k.mu.Lock()
		excused := k.excused
		k.mu.Unlock()
		w.note("daemon %d ended after %v: %v (%s)", c.Process.Pid, w.now()-began, err, excused)
		switch {
		case excused == inOrder && err != nil && ctx.Err() == nil && w.now()-began > time.Second:
			k.mu.Lock()
			k.strange = append(k.strange, fmt.Sprintf("at %v the daemon, asked to end, ended with %v\n%s", w.now(), err, last(tail.String(), 1500)))
			k.mu.Unlock()
		case ctx.Err() != nil, excused != "":
		case strings.Contains(tail.String(), "already running"):
			w.awaitFree(ctx)
		case hurt, w.hurt.Load() > 0:
			rest(ctx, 100*time.Millisecond)
		default:
			k.mu.Lock()
			k.strange = append(k.strange, fmt.Sprintf("at %v the daemon ended by itself: %v\n%s", w.now(), err, last(tail.String(), 1500)))
			k.mu.Unlock()
			rest(ctx, 200*time.Millisecond)
		}
	}
}

// awaitFree waits until nobody has the daemon's lock.
func (w *world) awaitFree(ctx context.Context) {
	for ctx.Err() == nil {
		if f, err := os.Open(w.path("state", "s", "daemon.lock")); err == nil {
			err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
			f.Close()
			if err == nil {
				return
			}
		}
		rest(ctx, 20*time.Millisecond)
	}
}

// pid is the process that serves now, 0 for none.
func (w *world) pid() int {
	raw, err := os.ReadFile(w.path("state", "s", "daemon.lock"))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil || pid <= 1 {
		return 0
	}
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil || exe != w.path("bin", "passepartout") {
		return 0
	}
	return pid
}

// A tee writes to a file and remembers.
type tee struct {
	f *os.File
	b *bytes.Buffer
}

func (t *tee) Write(p []byte) (int, error) {
	t.b.Write(p)
	if t.b.Len() > 1<<20 {
		t.b.Next(t.b.Len() - 1<<16)
	}
	return t.f.Write(p)
}

func last(s string, n int) string { return s[max(0, len(s)-n):] }
