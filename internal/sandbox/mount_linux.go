package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// devices are the only nodes in the run's /dev.
var devices = []string{"null", "zero", "full", "random", "urandom"}

// The new root is assembled on a private tmpfs over this directory, which
// exists on every system; nobody outside the mount namespace sees it.
const workDir = "/tmp"

// tree is a mount tree under construction.
type tree struct {
	plan *plan
	root int // descriptor of the new root
	base string
}

// buildTree makes the mount namespace what the plan says and moves into it.
func buildTree(p *plan) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	// Sources are opened before anything is covered.
	sources, err := openSources(p)
	if err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", workDir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=1m"); err != nil {
		return fmt.Errorf("work area: %w", err)
	}
	t := &tree{plan: p, base: workDir + "/root"}
	steps := []func() error{
		t.baseRoot,
		func() error { return t.readRoots(sources, false) },
		t.scratch,
		func() error { return t.readRoots(sources, true) },
		t.links, t.dev, t.sys, t.proc,
		func() error { return t.writeRoots(sources) },
		t.pins, t.masks, t.enter,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// openSources opens every root, refusing symbolic links anywhere in its path:
// what is mounted is what was judged, or nothing.
func openSources(p *plan) (map[string]int, error) {
	fds := map[string]int{}
	paths := slices.Concat(p.ReadRoots, p.WriteRoots)
	for _, o := range p.Overlays {
		paths = append(paths, o.Upper, o.Work)
	}
	for _, path := range paths {
		fd, err := openNoLinks(unix.AT_FDCWD, path)
		if err != nil {
			return nil, err
		}
		fds[path] = fd
	}
	return fds, nil
}

func openNoLinks(dir int, path string) (int, error) {
	fd, err := unix.Openat2(dir, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return -1, fmt.Errorf("opening %s without following links: %w", path, err)
	}
	return fd, nil
}

// fdPath names an open descriptor for mount(2).
func fdPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

func bind(from, to string) error {
	return unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, "")
}

func setAttr(path string, set, clear uint64) error {
	return unix.MountSetattr(unix.AT_FDCWD, path, unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: set, Attr_clr: clear})
}

const inert = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV

// baseRoot starts with everything, read-only, or with nothing.
func (t *tree) baseRoot() error {
	if err := os.Mkdir(t.base, 0o755); err != nil {
		return fmt.Errorf("new root: %w", err)
	}
	if t.plan.ReadRoots != nil {
		if err := unix.Mount("tmpfs", t.base, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=1m"); err != nil {
			return fmt.Errorf("new root: %w", err)
		}
	} else {
		if err := bind("/", t.base); err != nil {
			return fmt.Errorf("new root: %w", err)
		}
		if err := setAttr(t.base, unix.MOUNT_ATTR_RDONLY|inert, 0); err != nil {
			return fmt.Errorf("making the root read-only: %w", err)
		}
	}
	fd, err := unix.Open(t.base, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("new root: %w", err)
	}
	t.root = fd
	return nil
}

// at opens path in the new root for mounting on, making it where the tree is
// the run's own. No link is followed.
func (t *tree) at(path string, dir bool) (string, error) {
	rel := strings.TrimPrefix(path, "/")
	fd, err := openNoLinks(t.root, rel)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeIn(t.base+path, dir); err != nil {
			return "", fmt.Errorf("place for %s: %w", path, err)
		}
		fd, err = openNoLinks(t.root, rel)
	}
	if err != nil {
		return "", err
	}
	return fdPath(fd), nil
}

func makeIn(path string, dir bool) error {
	if dir {
		return os.MkdirAll(path, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

func isDir(fd int) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
}

// graft binds an opened source at path with the given attributes.
func (t *tree) graft(fd int, path string, set, clear uint64) error {
	to, err := t.at(path, isDir(fd))
	if err != nil {
		return err
	}
	if err := bind(fdPath(fd), to); err != nil {
		return fmt.Errorf("mounting %s: %w", path, err)
	}
	if err := setAttr(t.base+path, set, clear); err != nil {
		return fmt.Errorf("protecting %s: %w", path, err)
	}
	return nil
}

// readRoots grafts the roots outside the private directories, then (after
// those were covered) the ones inside.
func (t *tree) readRoots(sources map[string]int, private bool) error {
	for _, r := range t.plan.ReadRoots {
		if slices.ContainsFunc(privateDirs, func(d string) bool { return within(r, d) }) != private {
			continue
		}
		if err := t.graft(sources[r], r, unix.MOUNT_ATTR_RDONLY|inert, 0); err != nil {
			return err
		}
	}
	return nil
}

func (t *tree) links() error {
	for _, l := range t.plan.Links {
		if err := os.MkdirAll(filepath.Dir(t.base+l.Path), 0o755); err != nil {
			return fmt.Errorf("link %s: %w", l.Path, err)
		}
		if err := os.Symlink(l.Target, t.base+l.Path); err != nil {
			return fmt.Errorf("link: %w", err)
		}
	}
	return nil
}

// scratch gives the run its own temporary directories. Inodes are bounded as
// well as bytes: a million empty files are no smaller a nuisance.
func (t *tree) scratch() error {
	opts := fmt.Sprintf("mode=1777,size=%d,nr_inodes=%d", t.plan.Limits.Scratch, max(t.plan.Limits.Scratch>>12, 1024))
	for _, d := range t.plan.scratchDirs() {
		if d == "/dev/shm" {
			continue // made with /dev
		}
		if err := t.tmpfs(d, opts, 0); err != nil {
			return err
		}
	}
	return nil
}

func (t *tree) tmpfs(path, opts string, flags uintptr) error {
	to, err := t.at(path, true)
	if err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", to, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|flags, opts); err != nil {
		return fmt.Errorf("tmpfs on %s: %w", path, err)
	}
	return nil
}

// dev holds the harmless nodes, a terminal multiplexer of its own and shared
// memory; the host's disks and terminals are not there at all.
func (t *tree) dev() error {
	if err := t.tmpfs("/dev", "mode=0755,size=1m", 0); err != nil {
		return err
	}
	names := devices
	if t.plan.PTY {
		names = append(slices.Clone(names), "tty")
	}
	for _, n := range names {
		to, err := t.at("/dev/"+n, false)
		if err != nil {
			return err
		}
		if err := unix.Mount("/dev/"+n, to, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("device %s: %w", n, err)
		}
	}
	for _, d := range []string{"/dev/pts", "/dev/shm"} {
		if err := os.Mkdir(t.base+d, 0o755); err != nil {
			return fmt.Errorf("device directory: %w", err)
		}
	}
	if err := unix.Mount("devpts", t.base+"/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0600"); err != nil {
		return fmt.Errorf("terminals: %w", err)
	}
	opts := fmt.Sprintf("mode=1777,size=%d", t.plan.Limits.Scratch)
	if err := t.tmpfs("/dev/shm", opts, 0); err != nil {
		return err
	}
	for name, target := range map[string]string{
		"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
	} {
		if err := os.Symlink(target, t.base+"/dev/"+name); err != nil {
			return fmt.Errorf("device link: %w", err)
		}
	}
	return setAttrOnly(t.base+"/dev", unix.MOUNT_ATTR_RDONLY)
}

// setAttrOnly changes one mount, not those below it.
func setAttrOnly(path string, set uint64) error {
	if err := unix.MountSetattr(unix.AT_FDCWD, path, 0, &unix.MountAttr{Attr_set: set}); err != nil {
		return fmt.Errorf("protecting %s: %w", path, err)
	}
	return nil
}

// cpuInfo is the one corner of /sys that programs size themselves by.
const cpuInfo = "/sys/devices/system/cpu"

func (t *tree) sys() error {
	if err := t.tmpfs("/sys", "mode=0755,size=1m", 0); err != nil {
		return err
	}
	if _, err := os.Stat(cpuInfo); err == nil {
		to, err := t.at(cpuInfo, true)
		if err != nil {
			return err
		}
		if err := unix.Mount(cpuInfo, to, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("processor information: %w", err)
		}
	}
	return setAttr(t.base+"/sys", unix.MOUNT_ATTR_RDONLY|inert|unix.MOUNT_ATTR_NOEXEC, 0)
}

// maskedProc lists what of /proc describes the whole machine's secrets.
var maskedProc = []string{"kcore", "keys", "key-users", "kmsg", "kallsyms", "timer_list", "sched_debug", "latency_stats", "sysrq-trigger"}

// proc is the PID namespace's own and read-only: the kernel lets uid 0 write
// its settings by uid alone, capabilities or not.
func (t *tree) proc() error {
	to, err := t.at("/proc", true)
	if err != nil {
		return err
	}
	if err := unix.Mount("proc", to, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting /proc (is part of it masked, as in a container?): %w", err)
	}
	if t.plan.PIDMax {
		if err := t.limitPIDs(); err != nil {
			return err
		}
	}
	for _, n := range maskedProc {
		if _, err := os.Lstat(t.base + "/proc/" + n); err == nil {
			if err := unix.Mount("/dev/null", t.base+"/proc/"+n, "", unix.MS_BIND, ""); err != nil {
				return fmt.Errorf("masking /proc/%s: %w", n, err)
			}
		}
	}
	return setAttrOnly(t.base+"/proc", unix.MOUNT_ATTR_RDONLY)
}

// minPIDMax is the smallest limit the kernel accepts.
const minPIDMax = 301

// limitPIDs bounds the processes of a run as root, for whom the process limit
// of setrlimit does not count.
func (t *tree) limitPIDs() error {
	n := max(t.plan.Limits.Processes, minPIDMax)
	if err := os.WriteFile(t.base+"/proc/sys/kernel/pid_max", []byte(strconv.Itoa(n)), 0); err != nil {
		return fmt.Errorf("bounding the processes of a run as root: %w", err)
	}
	return nil
}

func (t *tree) writeRoots(sources map[string]int) error {
	for _, w := range t.plan.WriteRoots {
		i := slices.IndexFunc(t.plan.Overlays, func(o overlayDirs) bool { return o.Root == w })
		if i < 0 {
			if err := t.graft(sources[w], w, inert, 0); err != nil {
				return err
			}
			continue
		}
		o := t.plan.Overlays[i]
		to, err := t.at(w, true)
		if err != nil {
			return err
		}
		opts := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s,userxattr",
			fdPath(sources[w]), fdPath(sources[o.Upper]), fdPath(sources[o.Work]))
		if err := unix.Mount("overlay", to, "overlay", unix.MS_NOSUID|unix.MS_NODEV, opts); err != nil {
			return fmt.Errorf("overlay on %s: %w", w, err)
		}
	}
	return nil
}

func (t *tree) pins() error {
	for _, d := range t.plan.Pins {
		to, err := t.at(d, true)
		if err != nil {
			return err
		}
		if err := bind(to, to); err != nil {
			return fmt.Errorf("pinning %s: %w", d, err)
		}
	}
	return nil
}

func (t *tree) masks() error {
	for _, m := range t.plan.Masks {
		if m.Dir {
			if err := t.tmpfs(m.Path, "mode=0000,size=4k,nr_inodes=2", unix.MS_RDONLY|unix.MS_NOEXEC); err != nil {
				return fmt.Errorf("hiding: %w", err)
			}
			continue
		}
		to, err := t.at(m.Path, false)
		if err != nil {
			return fmt.Errorf("hiding: %w", err)
		}
		if err := bind(t.base+"/dev/null", to); err != nil {
			return fmt.Errorf("hiding %s: %w", m.Path, err)
		}
		// Without devices, even reading it is refused.
		if err := setAttrOnly(t.base+m.Path, unix.MOUNT_ATTR_RDONLY|inert); err != nil {
			return fmt.Errorf("hiding: %w", err)
		}
	}
	return nil
}

// enter makes the tree the root and lets go of the old one.
func (t *tree) enter() error {
	if t.plan.ReadRoots != nil {
		if err := setAttrOnly(t.base, unix.MOUNT_ATTR_RDONLY); err != nil {
			return err
		}
	}
	if err := unix.Chdir(t.base); err != nil {
		return fmt.Errorf("entering the new root: %w", err)
	}
	// Stacking the old root on the new one's place saves a directory for it.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("letting go of the old root: %w", err)
	}
	return unix.Chdir("/")
}
