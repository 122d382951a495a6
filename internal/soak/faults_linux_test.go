package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"time"
)

// A fault of the process or its machine: what it is called, how often it is chosen,
// and how it is done. Each ends, and heals what it broke, before the next begins.
type machineFault struct {
	name   string
	weight int
	do     func(*world, context.Context, *rand.Rand)
}

func (w *world) machineFaults() []machineFault {
	all := []machineFault{
		{"kill", 28, (*world).kill},
		{"term", 4, (*world).term},
		{"stop", 14, (*world).freeze},
		{"permissions", 16, (*world).revoke},
		{"org", 14, func(w *world, ctx context.Context, r *rand.Rand) { w.vandal(ctx, r, r.IntN(victimFiles)) }},
	}
	if w.plan.clock {
		all = append(all, machineFault{"clock", 12, (*world).turnClock})
	}
	if w.stage == runNow {
		all = append(all, machineFault{"full disk", 10, (*world).fill})
	}
	return all
}

// breakMachine injects faults of the process, one after the other.
func (w *world) breakMachine(ctx context.Context) {
	r := w.random("machine")
	all := w.machineFaults()
	total := 0
	for _, f := range all {
		total += f.weight
	}
	for rest(ctx, w.spread(r, w.plan.pause)) {
		n := r.IntN(total)
		for _, f := range all {
			if n -= f.weight; n < 0 {
				f.do(w, ctx, r)
				break
			}
		}
	}
}

// spread is a pause around the average.
func (w *world) spread(r *rand.Rand, mean time.Duration) time.Duration {
	return mean/4 + time.Duration(r.Int64N(int64(mean)*3/2))
}

// breakConnections injects faults of connections, one after the other.
func (w *world) breakConnections(ctx context.Context) {
	r := w.random("connections")
	for rest(ctx, w.spread(r, w.plan.pause)) {
		p := w.socket
		if r.IntN(3) == 0 {
			p = w.http
		}
		kind := proxyFaults[r.IntN(len(proxyFaults))]
		p.next.Store(&kind)
		if r.IntN(20) == 0 {
			w.model.misbehave(1, true)
			w.note("the model is down")
			rest(ctx, time.Duration(r.Int64N(int64(2*time.Second))))
			w.model.misbehave(modelFaulty, false)
		}
	}
}

// How often calls to the services go wrong.
const (
	modelFaulty    = 0.08
	telegramFaulty = 0.12
)

// kill ends the daemon as a crash does.
func (w *world) kill(_ context.Context, _ *rand.Rand) {
	if pid := w.pid(); pid != 0 && !w.watching.Load() {
		w.daemon.excuse("killed")
		if syscall.Kill(pid, syscall.SIGKILL) == nil {
			w.fault("kill", "pid %d", pid)
		}
	}
}

// term asks the daemon to end, which it must do in order and soon.
func (w *world) term(ctx context.Context, _ *rand.Rand) {
	pid := w.pid()
	if pid == 0 || w.watching.Load() {
		return
	}
	w.daemon.excuse(inOrder)
	if syscall.Kill(pid, syscall.SIGTERM) != nil {
		return
	}
	w.fault("term", "pid %d", pid)
	for end := w.now() + patience; w.pid() == pid; {
		if w.now() > end {
			w.books.wrong("the daemon %d did not end within %v of being asked to", pid, patience)
			w.daemon.excuse("killed because it did not end")
			syscall.Kill(pid, syscall.SIGKILL)
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// freeze stops the process for a while.
func (w *world) freeze(ctx context.Context, r *rand.Rand) {
	pid := w.pid()
	if pid == 0 || syscall.Kill(pid, syscall.SIGSTOP) != nil {
		return
	}
	d := time.Duration(100+r.IntN(1900)) * time.Millisecond
	w.fault("stop", "pid %d for %v", pid, d)
	rest(ctx, d)
	syscall.Kill(pid, syscall.SIGCONT)
}

// turnClock sets the wall clock, forwards or back.
func (w *world) turnClock(_ context.Context, r *rand.Rand) {
	steps := []time.Duration{-40 * time.Hour, -23 * time.Hour, -time.Hour, -time.Minute, -2 * time.Second, 0, 0, 2 * time.Second, time.Minute, time.Hour, 23 * time.Hour, 40 * time.Hour}
	off := steps[r.IntN(len(steps))]
	if err := w.setClock(off); err != nil {
		w.t.Error(err)
		return
	}
	w.fault("clock", "wrong by %v", off)
}

// revoke takes the permissions of a file or folder away for a while.
func (w *world) revoke(ctx context.Context, r *rand.Rand) {
	places := []string{
		w.path("state", "s", "journal"), w.path("state", "s", "memory"), w.path("state", "s", "flight"), w.path("state", "s", "channels"), w.path("state", "s", "pulse"),
		w.notes("inbox"), w.notes("inbox", "inbox.org"), w.notes("notes"), w.notes("notes", cellFile(r.IntN(cellFiles))), w.notes("system"), w.notes("work"),
		w.notes("system", "permissions.org"), w.path("home", "data", "skills"), w.notes(),
	}
	place := places[r.IntN(len(places))]
	st, err := os.Lstat(place)
	if err != nil {
		return
	}
	w.hurt.Add(1)
	defer w.hurt.Add(-1)
	mode := st.Mode().Perm()
	if err := os.Chmod(place, 0); err != nil {
		w.note("chmod: %v", err)
		return
	}
	d := time.Duration(100+r.IntN(1200)) * time.Millisecond
	w.fault("permissions", "%s for %v", place, d)
	if r.IntN(3) == 0 { // it must also say so when it cannot even start
		w.kill(ctx, r)
	}
	rest(ctx, d)
	if err := os.Chmod(place, mode); err != nil && !errors.Is(err, os.ErrNotExist) {
		w.note("chmod back: %v", err)
	}
	rest(ctx, 50*time.Millisecond)
}

// fill leaves no room on one of the two disks for a while. When there is room again
// the daemon must go on, the one that was there or the next.
func (w *world) fill(ctx context.Context, r *rand.Rand) {
	disk := w.path([]string{"state", "memex"}[r.IntN(2)])
	w.hurt.Add(1)
	defer w.hurt.Add(-1)
	filler := disk + "/filler"
	if err := occupy(disk, filler); err != nil {
		w.note("filling %s: %v", disk, err)
	}
	d := time.Duration(200+r.IntN(1500)) * time.Millisecond
	w.fault("full disk", "%s for %v", disk, d)
	if r.IntN(3) == 0 {
		w.kill(ctx, r)
	}
	rest(ctx, d)
	if err := os.Remove(filler); err != nil {
		w.note("filler: %v", err)
	}
	rest(ctx, 50*time.Millisecond)
}

// occupy makes a file of all that is free, to the last block.
func occupy(disk, filler string) error {
	var st syscall.Statfs_t
	if err := syscall.Statfs(disk, &st); err != nil {
		return err
	}
	f, err := os.OpenFile(filler, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	size := int64(st.Bavail) * st.Bsize
	for step := size; step >= st.Bsize; {
		at, err := f.Seek(0, 2)
		if err != nil {
			return err
		}
		if syscall.Fallocate(int(f.Fd()), 0, at, step) != nil {
			step /= 2
			continue
		}
		if err := syscall.Statfs(disk, &st); err != nil {
			return err
		}
		if st.Bavail == 0 {
			return nil
		}
		step = min(step, int64(st.Bavail)*st.Bsize)
	}
	return fmt.Errorf("%d blocks are still free", st.Bavail)
}
