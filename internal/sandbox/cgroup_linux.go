package sandbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// cgroup is a control group for one run: one directory on cgroup v2, one for
// each controller on v1. A nil cgroup does nothing.
type cgroup struct{ dirs []string }

// newCgroup makes a group that bounds processes, and memory where that
// controller can be had. The error says why processes could not be bounded.
func newCgroup(l Limits) (*cgroup, error) {
	name := fmt.Sprintf("%s%d-%s", groupPrefix(), os.Getpid(), rand.Text())
	own, err := ownGroups()
	if err != nil {
		return nil, err
	}
	g := &cgroup{}
	dir := filepath.Join(own["pids"], name)
	if err := g.make(dir, "pids.max", int64(l.Processes)); err != nil {
		g.remove()
		return nil, err
	}
	// Memory is a bonus over the limit of each process, so its absence is
	// only noted by Probe. The two controllers share a directory on v2.
	if parent, ok := own["memory"]; ok {
		_ = g.make(filepath.Join(parent, name), memoryFile(parent), l.Memory)
	}
	return g, nil
}

// groupPrefix is followed by the number of the process that made the group, so
// that groups a killed process left behind can be told from those in use. A number
// means something in its own PID namespace only: a container may see the groups of
// its host, and must not take them for abandoned.
func groupPrefix() string {
	space, err := os.Readlink("/proc/self/ns/pid") // pid:[4026531836]
	if err != nil {
		space = "unknown"
	}
	return "passepartout-" + strings.Trim(space, "pid:[]") + "-"
}

// sweepCgroups removes groups whose maker is gone.
func sweepCgroups() {
	own, err := ownGroups()
	if err != nil {
		return
	}
	prefix := groupPrefix()
	for _, parent := range own {
		list, err := os.ReadDir(parent)
		if err != nil {
			continue
		}
		for _, e := range list {
			rest, ok := strings.CutPrefix(e.Name(), prefix)
			pid, _, found := strings.Cut(rest, "-")
			if !ok || !found {
				continue
			}
			if _, err := os.Stat(filepath.Join("/proc", pid)); errors.Is(err, os.ErrNotExist) {
				_ = os.Remove(filepath.Join(parent, e.Name())) // fails while anything runs in it
			}
		}
	}
}

func (g *cgroup) make(dir, file string, limit int64) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("control group: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, file), []byte(strconv.FormatInt(limit, 10)), 0o644); err != nil {
		_ = os.Remove(dir)
		return fmt.Errorf("control group: %w", err)
	}
	g.dirs = append(g.dirs, dir)
	return nil
}

func memoryFile(parent string) string {
	if _, err := os.Stat(filepath.Join(parent, "memory.limit_in_bytes")); err == nil {
		return "memory.limit_in_bytes"
	}
	return "memory.max"
}

// cgroupMount is where every distribution mounts control groups.
var cgroupMount = "/sys/fs/cgroup"

// ownGroups maps a controller to the directory of the group this process is in.
func ownGroups() (map[string]string, error) {
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("control groups: %w", err)
	}
	own := map[string]string{}
	for line := range strings.Lines(string(b)) {
		// hierarchy:controllers:path, with no controllers on v2
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		if f[1] == "" {
			dir := filepath.Join(cgroupMount, f[2])
			have, _ := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
			for _, c := range strings.Fields(string(have)) {
				own[c] = dir
			}
			continue
		}
		for c := range strings.SplitSeq(f[1], ",") {
			dir := filepath.Join(cgroupMount, c, f[2])
			if _, err := os.Stat(dir); err == nil {
				own[c] = dir
			}
		}
	}
	if own["pids"] == "" {
		return nil, errors.New("control groups: no pids controller is delegated to this process")
	}
	return own, nil
}

func (g *cgroup) add(pid int) error {
	if g == nil {
		return nil
	}
	for _, d := range g.dirs {
		if err := os.WriteFile(filepath.Join(d, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
			return fmt.Errorf("control group: %w", err)
		}
	}
	return nil
}

// remove deletes the group, which is empty once the run is over.
func (g *cgroup) remove() {
	if g == nil {
		return
	}
	for _, d := range g.dirs {
		_ = os.Remove(d)
	}
}

// pidMaxIsPerNamespace tells whether the kernel (6.14 and later) gives each
// PID namespace a limit of its own; on older ones the file is the machine's.
func pidMaxIsPerNamespace() bool {
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return false
	}
	var major, minor int
	if _, err := fmt.Sscanf(string(b), "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major > 6 || major == 6 && minor >= 14
}
