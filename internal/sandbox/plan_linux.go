package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// plan is a checked Spec, as the stage gets it. Every path in it is absolute,
// clean and was free of symbolic links when it was checked; the stage opens
// paths in a way that refuses links, so a later swap is an error.
type plan struct {
	Argv       []string
	Dir        string
	Env        []string
	ReadRoots  []string // nil: everything
	Links      []link   // symbolic links to make where the root is built from ReadRoots
	WriteRoots []string // outermost first
	Pins       []string // directories made mount points, so that they cannot be moved
	Masks      []mask
	Overlays   []overlayDirs // for write roots that are run dry

	Limits      Limits
	UnixSockets bool
	Proxy       bool
	PTY         bool
	ABI         int  // of Landlock
	PIDMax      bool // bound processes with the PID namespace's own limit
	Bubblewrap  bool // the mount tree is already built
	Probe       bool // build everything, start nothing

	placeholders []string // made by prepare, to be removed after the run
}

type link struct{ Path, Target string }

// mask hides a path.
type mask struct {
	Path string
	Dir  bool
}

// privateDirs are always the run's own, unless they are a write root: other
// programs' sockets and files live there.
var privateDirs = []string{"/tmp", "/var/tmp", "/run", "/dev/shm"}

// kernelDirs are built by the stage and can be neither roots nor below one.
var kernelDirs = []string{"/proc", "/sys", "/dev"}

// rootOnly lists files that only a run as root could read. No command needs
// them, so they are hidden without being named.
var rootOnly = []string{"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-"}

// SystemRoots lists the directories that programs need to start, for use in
// Spec.ReadRoots together with the roots a command is about.
func SystemRoots() []string {
	var out []string
	for _, p := range []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt",
		"/nix/store", "/gnu/store",
	} {
		if _, err := os.Lstat(p); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// Everything is what a nil Spec.ReadRoots shows, and the paths besides, which may
// lie in directories that are otherwise private. It is nil when it can be.
func Everything(also ...string) []string {
	private := slices.ContainsFunc(also, func(p string) bool {
		return slices.ContainsFunc(privateDirs, func(d string) bool { return within(p, d) })
	})
	entries, err := os.ReadDir("/")
	if !private || err != nil {
		return nil
	}
	out := slices.Clone(also)
	for _, e := range entries {
		if p := "/" + e.Name(); !slices.Contains(privateDirs, p) && !slices.Contains(kernelDirs, p) {
			out = append(out, p)
		}
	}
	return out
}

// newPlan checks s. It changes nothing on disk.
func newPlan(s Spec) (*plan, error) {
	limits, err := s.Limits.withDefaults()
	if err != nil {
		return nil, err
	}
	p := &plan{
		Argv: s.Argv, Limits: limits, UnixSockets: s.UnixSockets, PTY: s.PTY,
		Proxy: s.Network != nil, ABI: landlockABI(),
	}
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return nil, fmt.Errorf("%w: no command", ErrSpec)
	}
	for _, a := range s.Argv {
		if strings.ContainsRune(a, 0) {
			return nil, fmt.Errorf("%w: argument %q contains a zero byte", ErrSpec, a)
		}
	}
	if p.Env, err = environment(s); err != nil {
		return nil, err
	}
	if err := p.addRoots(s); err != nil {
		return nil, err
	}
	hidden := s.Hidden
	if os.Geteuid() == 0 {
		hidden = slices.Concat(hidden, rootOnly)
	}
	for _, h := range hidden {
		if err := p.hide(h); err != nil {
			return nil, err
		}
	}
	p.tidyMasks()
	return p, p.chooseDir(s.Dir)
}

// refusedEnv holds variables that make a loader, shell or interpreter run
// code of their value's choice before the judged command starts.
var refusedEnv = []string{"BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PS4", "PROMPT_COMMAND", "GCONV_PATH", "IFS"}

// environment is the fixed minimum, then the caller's, then the proxy's.
func environment(s Spec) ([]string, error) {
	env := map[string]string{
		"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME": "/tmp", "TMPDIR": "/tmp", "LANG": "C.UTF-8", "TERM": "dumb",
	}
	if s.PTY {
		env["TERM"] = "xterm-256color"
	}
	for k, v := range s.Env {
		switch {
		case k == "" || strings.ContainsAny(k, "=\x00") || strings.ContainsRune(v, 0):
			return nil, fmt.Errorf("%w: environment variable %q is not well formed", ErrSpec, k)
		case strings.HasPrefix(k, "LD_"), strings.HasPrefix(k, "BASH_FUNC_"), slices.Contains(refusedEnv, k):
			return nil, fmt.Errorf("%w: environment variable %s can run code and is refused", ErrSpec, k)
		}
		env[k] = v
	}
	if s.Network != nil {
		url := "http://" + proxyAddr
		for _, k := range []string{"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"} {
			env[k] = url
		}
		env["no_proxy"], env["NO_PROXY"] = "localhost,127.0.0.1,::1", "localhost,127.0.0.1,::1"
	}
	var out []string
	for _, k := range slices.Sorted(maps.Keys(env)) {
		out = append(out, k+"="+env[k])
	}
	return out, nil
}

// addRoots checks the read and write roots.
func (p *plan) addRoots(s Spec) error {
	for _, w := range s.WriteRoots {
		if err := checkReal(w); err != nil {
			return fmt.Errorf("write root: %w", err)
		}
		if w == "/" || slices.ContainsFunc(kernelDirs, func(d string) bool { return within(w, d) && !within(w, "/dev/shm") }) {
			return fmt.Errorf("%w: %s cannot be a write root", ErrSpec, w)
		}
		p.WriteRoots = append(p.WriteRoots, w)
	}
	slices.Sort(p.WriteRoots)
	p.WriteRoots = slices.Compact(p.WriteRoots)
	if s.ReadRoots == nil || slices.Contains(s.ReadRoots, "/") {
		return nil
	}
	p.ReadRoots = []string{}
	for _, r := range s.ReadRoots {
		if target, err := os.Readlink(r); err == nil && filepath.IsAbs(r) {
			p.Links = append(p.Links, link{filepath.Clean(r), target})
			continue
		}
		if err := checkReal(r); err != nil {
			return fmt.Errorf("read root: %w", err)
		}
		if slices.ContainsFunc(kernelDirs, func(d string) bool { return within(r, d) }) {
			return fmt.Errorf("%w: %s cannot be a read root", ErrSpec, r)
		}
		p.ReadRoots = append(p.ReadRoots, r)
	}
	slices.Sort(p.ReadRoots)
	p.ReadRoots = slices.Compact(p.ReadRoots)
	return nil
}

// checkReal wants an existing path that is its own real name.
func checkReal(path string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return fmt.Errorf("%w: wanted an absolute, clean path, got %q", ErrSpec, path)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSpec, err)
	}
	if real != path {
		return fmt.Errorf("%w: %s goes through a symbolic link; its real name is %s", ErrSpec, path, real)
	}
	return nil
}

// within tells whether path is dir or lies below it.
func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

func (p *plan) writable(path string) (root string, ok bool) {
	for _, w := range p.WriteRoots {
		if within(path, w) {
			return w, true
		}
	}
	return "", false
}

// visible tells whether path would be seen if nothing were masked.
func (p *plan) visible(path string) bool {
	if _, ok := p.writable(path); ok {
		return true
	}
	if slices.ContainsFunc(p.ReadRoots, func(r string) bool { return within(path, r) }) {
		return true
	}
	private := slices.ContainsFunc(slices.Concat(privateDirs, kernelDirs), func(d string) bool { return within(path, d) })
	return p.ReadRoots == nil && !private
}

// hide plans the mask for one hidden path. A path that does not exist yet is
// masked too where a command could create it.
func (p *plan) hide(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("%w: hidden path %q is not absolute", ErrSpec, path)
	}
	real, missing, err := p.resolveHidden(filepath.Clean(path))
	if err != nil {
		return err
	}
	full := filepath.Join(real, missing)
	for _, r := range slices.Concat(p.WriteRoots, p.ReadRoots) {
		if within(r, full) {
			return fmt.Errorf("%w: root %s lies in hidden path %s", ErrSpec, r, path)
		}
	}
	if !p.visible(full) {
		return nil
	}
	if missing == "" {
		info, err := os.Lstat(real)
		if err != nil {
			return fmt.Errorf("%w: hidden path: %w", ErrSpec, err)
		}
		p.mask(mask{real, info.IsDir()})
		return nil
	}
	if _, ok := p.writable(full); !ok {
		return nil // the file system around it is read-only
	}
	first, rest, _ := strings.Cut(missing, "/")
	m := mask{filepath.Join(real, first), rest != ""}
	p.mask(m)
	p.placeholders = append(p.placeholders, m.Path)
	return nil
}

// resolveHidden follows path as far as it exists: real is that part's real
// name, missing the rest. A link that a command could replace is refused,
// because a mask on its target would then protect nothing.
func (p *plan) resolveHidden(path string) (real, missing string, err error) {
	for at := path; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(at); errors.Is(err, fs.ErrNotExist) {
			missing = filepath.Join(filepath.Base(at), missing)
			continue
		} else if err != nil {
			return "", "", fmt.Errorf("%w: hidden path: %w", ErrSpec, err)
		}
		if real, err = filepath.EvalSymlinks(at); err != nil {
			return "", "", fmt.Errorf("%w: hidden path: %w", ErrSpec, err)
		}
		if real != at {
			if w, ok := p.linkInRoot(at); ok {
				return "", "", fmt.Errorf("%w: hidden path %s goes through a symbolic link in write root %s", ErrSpec, path, w)
			}
		}
		return real, missing, nil
	}
}

// linkInRoot tells whether a component of path is a link that lies in a write root.
func (p *plan) linkInRoot(path string) (root string, found bool) {
	for at := path; at != "/"; at = filepath.Dir(at) {
		info, err := os.Lstat(at)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		dir, err := filepath.EvalSymlinks(filepath.Dir(at))
		if err != nil {
			return "", false
		}
		if w, ok := p.writable(dir); ok {
			return w, true
		}
	}
	return "", false
}

// mask adds m and pins the directories between it and its write root: a mount
// point cannot be renamed, but the directory around one can.
func (p *plan) mask(m mask) {
	p.Masks = append(p.Masks, m)
	root, ok := p.writable(m.Path)
	if !ok {
		return
	}
	for d := filepath.Dir(m.Path); d != root && within(d, root); d = filepath.Dir(d) {
		p.Pins = append(p.Pins, d)
	}
}

// tidyMasks orders outer paths first and drops what lies under a mask.
func (p *plan) tidyMasks() {
	slices.SortFunc(p.Masks, func(a, b mask) int { return strings.Compare(a.Path, b.Path) })
	p.Masks = slices.Compact(p.Masks)
	covered := func(path string) bool {
		return slices.ContainsFunc(p.Masks, func(m mask) bool { return m.Path != path && within(path, m.Path) })
	}
	p.placeholders = slices.DeleteFunc(p.placeholders, covered)
	var outer []mask
	for _, m := range p.Masks {
		if !covered(m.Path) {
			outer = append(outer, m)
		}
	}
	p.Masks = outer
	slices.Sort(p.Pins)
	p.Pins = slices.Compact(p.Pins)
	p.Pins = slices.DeleteFunc(p.Pins, func(d string) bool {
		return slices.ContainsFunc(p.Masks, func(m mask) bool { return within(d, m.Path) })
	})
}

func (p *plan) chooseDir(dir string) error {
	switch {
	case dir == "" && len(p.WriteRoots) > 0:
		dir = p.WriteRoots[0]
		if info, err := os.Stat(dir); err == nil && !info.IsDir() {
			dir = filepath.Dir(dir)
		}
	case dir == "":
		dir = "/tmp"
	case !filepath.IsAbs(dir):
		return fmt.Errorf("%w: working directory %q is not absolute", ErrSpec, dir)
	}
	p.Dir = filepath.Clean(dir)
	return nil
}

// scratchDirs are the private directories this run may write to.
func (p *plan) scratchDirs() []string {
	var out []string
	for _, d := range privateDirs {
		if _, err := os.Lstat(d); err == nil && !slices.Contains(p.WriteRoots, d) {
			out = append(out, d)
		}
	}
	return out
}
