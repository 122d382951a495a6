package sandbox

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Probe finds out what the machine offers by building a sandbox with nothing
// in it, each way there is. It also clears away what a killed process left.
func Probe(ctx context.Context) Status {
	sweepCgroups()
	st := Status{LandlockABI: landlockABI()}
	ns := probe(ctx, Namespaces)
	bw := probe(ctx, Bubblewrap)
	switch {
	case ns == nil:
		st.Level, st.Method = Isolated, Namespaces
	case bw == nil:
		st.Level, st.Method = Isolated, Bubblewrap
	}
	if st.Level == Isolated && st.LandlockABI > 0 {
		st.Level = Full
	}
	st.Parts = []Part{
		outcome("namespaces", ns, "user, mount, PID, network, IPC and UTS namespaces with a seccomp filter"),
		outcome("bubblewrap", bw, "installed, usable instead of own namespaces"),
		landlockPart(st.LandlockABI),
		groupPart("pids", "the number of processes is bounded by limits of the user only"),
		groupPart("memory", "memory is bounded for each process, not for all of a run together"),
		overlayPart(),
	}
	return st
}

// Strength is the level Probe would find. It builds one sandbox where the first way
// works, and what it finds out about that spares the first run from trying.
func Strength(ctx context.Context) Level {
	sweepCgroups()
	err := namespacesWork(ctx)
	if err != nil {
		err = probe(ctx, Bubblewrap)
	}
	switch {
	case err != nil:
		return None
	case landlockABI() > 0:
		return Full
	}
	return Isolated
}

func outcome(name string, err error, good string) Part {
	if err != nil {
		return Part{Name: name, Note: err.Error()}
	}
	return Part{Name: name, OK: true, Note: good}
}

func landlockPart(abi int) Part {
	if abi == 0 {
		return Part{Name: "landlock", Note: "not in this kernel (5.13 and later have it): the mount tree is the only wall around files"}
	}
	return Part{Name: "landlock", OK: true, Note: fmt.Sprintf("version %d", abi)}
}

func groupPart(controller, without string) Part {
	p := Part{Name: controller + " control group"}
	own, err := ownGroups()
	switch {
	case err != nil:
		p.Note = err.Error() + "; " + without
	case own[controller] == "":
		p.Note = "not delegated to this process; " + without
	case unix.Access(own[controller], unix.W_OK) != nil:
		p.Note = own[controller] + " is not writable; " + without
	default:
		p.OK, p.Note = true, own[controller]
	}
	return p
}

func overlayPart() Part {
	if _, err := os.Stat("/sys/module/overlay"); err != nil && !overlayListed() {
		return Part{Name: "overlay", Note: "no overlay file system: commands cannot be tried before they are approved"}
	}
	return Part{Name: "overlay", OK: true, Note: "commands can be run dry"}
}

// probe builds a sandbox with method m and starts nothing in it.
func probe(ctx context.Context, m Method) error {
	if m == Bubblewrap {
		if _, err := bubblewrapPath(); err != nil {
			return err
		}
	}
	p, err := newPlan(Spec{Argv: []string{"none"}})
	if err != nil {
		return err
	}
	p.Probe = true
	j := &job{plan: p, method: m, sink: &lockedSink{}}
	_, err = j.run(ctx, nil)
	return err
}

// known remembers that namespaces work (or do not), so that Auto costs one
// probe for each process and not one for each run.
var known struct {
	mu   sync.Mutex // guards the rest
	done bool
	err  error
}

func namespacesWork(ctx context.Context) error {
	known.mu.Lock()
	defer known.mu.Unlock()
	if known.done {
		return known.err
	}
	err := probe(ctx, Namespaces)
	if ctx.Err() == nil { // a cancelled probe has found out nothing
		known.done, known.err = true, err
	}
	return err
}

func overlayListed() bool {
	b, err := os.ReadFile("/proc/filesystems")
	return err == nil && strings.Contains(string(b), "\toverlay\n")
}
