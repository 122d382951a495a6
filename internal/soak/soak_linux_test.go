package soak

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"passepartout/internal/channel/channeltest"
)

// TestSoak is the long run. SOAK is how long (20m), SOAKFAULTS how many faults there
// must be (500), SOAKSEED what decides their order.
func TestSoak(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("SOAK"))
	if err != nil {
		t.Skip("run by make soak")
	}
	least := 500
	if n, err := strconv.Atoi(os.Getenv("SOAKFAULTS")); err == nil {
		least = n
	}
	pause := max(200*time.Millisecond, min(length/time.Duration(max(least, 1)), 4*time.Second))
	soak(t, plan{length: length, watch: length / 3, pause: pause, clock: true, least: least})
}

// TestEverybodyAtOnceWhileThingsBreak is a miniature of the long run.
func TestEverybodyAtOnceWhileThingsBreak(t *testing.T) {
	if testing.Short() {
		t.Skip("half a minute with everybody at once: run by make test")
	}
	soak(t, plan{length: 20 * time.Second, pause: 700 * time.Millisecond, least: 20})
}

func soak(t *testing.T, p plan) {
	t.Helper()
	if dir := os.Getenv(dirVar); dir != "" {
		seed, err := strconv.ParseUint(os.Getenv("SOAKSEED"), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		play(t, newWorld(t, dir, os.Getenv(stageVar), seed, p))
		return
	}
	dir, err := os.MkdirTemp("", "ppsoak") // short: socket paths are limited
	if err != nil {
		t.Fatal(err)
	}
	seed := os.Getenv("SOAKSEED")
	if _, err := strconv.ParseUint(seed, 10, 64); err != nil {
		seed = strconv.FormatInt(time.Now().UnixNano(), 10)
	}
	t.Setenv("SOAKSEED", seed)
	t.Logf("seed %s (SOAKSEED=%s runs the same again), %v in %s", seed, seed, p.length, dir)
	for _, d := range []string{"bin", "state", "memex", "lisp"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := copyTree(filepath.Join("..", "..", "emacs"), filepath.Join(dir, "lisp")); err != nil {
		t.Fatal(err)
	}
	build(t, dir, p.clock)
	if err := enter(t, dir); err != nil {
		t.Fatalf("seed %s: %v; everything is kept in %s", seed, err, dir)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Error(err)
	}
}

// play is the run itself.
func play(t *testing.T, w *world) {
	t.Helper()
	host := "127.0.0.1"
	if w.stage == runNow {
		host = elsewhere
	}
	w.telegram = channeltest.NewTelegram()
	defer w.telegram.Close()
	if err := w.startServers(host); err != nil {
		t.Fatal(err)
	}
	ctx, over := context.WithCancel(context.Background())
	var daemon sync.WaitGroup
	daemon.Go(func() { w.keep(ctx) })
	if err := w.prepare(ctx); err != nil {
		over()
		daemon.Wait()
		t.Fatal(err)
	}
	w.storm(ctx)
	w.calm(ctx)
	over()
	daemon.Wait()
	w.check()
}

// startServers starts the model and the proxies.
func (w *world) startServers(host string) error {
	if err := w.startModel(host); err != nil {
		return err
	}
	var err error
	w.http, err = w.startProxy("http", "tcp", net.JoinHostPort(host, "0"), 0, func() (net.Conn, error) { return net.Dial("tcp", w.model.addr) })
	if err != nil {
		return err
	}
	w.socket, err = w.startProxy("socket", "unix", w.path("far", "pp.sock"), 0xff, func() (net.Conn, error) { return net.Dial("unix", w.path("run", "passepartout.sock")) })
	w.env = w.settings(w.http.ln.Addr().String())
	w.far = append(w.env[:len(w.env):len(w.env)], "PASSEPARTOUT_SOCKET="+w.path("far", "pp.sock"))
	return err
}

// prepare waits for the daemon, fills the vault and pairs the person.
func (w *world) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c := w.command(ctx, w.env, "vault", "set", "--guard", "file", "SOAK_CANARY")
	stdin, err := os.Open(w.path("home", "canary"))
	if err != nil {
		return err
	}
	defer stdin.Close()
	c.Stdin = stdin
	if out, err := c.CombinedOutput(); err != nil {
		return errors.Join(err, errors.New(string(out)))
	}
	if err := os.Remove(w.path("home", "canary")); err != nil {
		return err
	}
	for !w.up(ctx) {
		if !rest(ctx, 20*time.Millisecond) {
			return errors.New("the daemon does not come up")
		}
	}
	w.term(ctx, nil) // with the vault it has now
	for !w.up(ctx) {
		if !rest(ctx, 20*time.Millisecond) {
			return errors.New("the daemon does not come up again")
		}
	}
	return w.pairOwner(ctx)
}

// up reports whether the daemon answers.
func (w *world) up(ctx context.Context) bool {
	_, nc, err := w.connect(ctx, w.path("run", "passepartout.sock"), "cli")
	if err == nil {
		nc.Close()
	}
	return err == nil
}

// storm has everybody at work while things break.
func (w *world) storm(ctx context.Context) {
	work, stop := context.WithTimeout(ctx, w.plan.length)
	defer stop()
	var all sync.WaitGroup
	emacs, err := w.startEmacs(ctx, w.path("lisp"))
	if err != nil {
		w.t.Error(err)
	}
	terminal, err := w.startTerminal()
	if err != nil {
		w.t.Error(err)
	}
	all.Go(func() { w.commandLine(work, "cli-0", w.env, true) })
	all.Go(func() { w.commandLine(work, "cli-1", w.far, false) })
	all.Go(func() { w.commandLine(work, "cli-2", w.far, false) })
	all.Go(func() { w.wireClient(work, "wire-0", w.path("far", "pp.sock")) })
	all.Go(func() { w.wireClient(work, "wire-1", w.path("run", "passepartout.sock")) })
	for i := range cellFiles {
		all.Go(func() { w.cellWriter(work, i) })
	}
	all.Go(func() { w.editor(work) })
	all.Go(func() { w.approver(work) })
	all.Go(func() { w.street(work) })
	all.Go(func() { w.skillMaker(work) })
	all.Go(func() { w.sample(work) })
	if emacs {
		all.Go(func() { w.atEmacs(work) })
	}
	if terminal {
		all.Go(func() { w.atTerminal(work) })
	}
	w.model.misbehave(modelFaulty, false)
	w.misbehaving(telegramFaulty)
	all.Go(func() { w.breakMachine(work) })
	all.Go(func() { w.breakConnections(work) })
	all.Wait()
}

// calm heals everything and wants an answer from every kind of client.
func (w *world) calm(ctx context.Context) {
	w.note("calm")
	w.watching.Store(false)
	w.model.misbehave(0, false)
	w.misbehaving(0)
	w.socket.next.Store(nil)
	w.http.next.Store(nil)
	if err := errors.Join(w.setClock(0), os.WriteFile(w.path("home", "data", "skills", "soaker.org"), []byte(goodSkill(99999)), 0o600)); err != nil {
		w.t.Error(err)
	}
	w.term(ctx, nil) // shuts nobody out any more
	for end := w.now() + patience; !w.up(ctx); rest(ctx, 50*time.Millisecond) {
		if w.now() > end {
			w.books.wrong("when nothing was broken any more, the daemon did not come up within %v", patience)
			return
		}
	}
	w.lastWords(ctx)
}
