// Package powercut shows tests what a disk may hold after the power failed, at every
// point of a piece of work, and lets them open each of these disks.
//
// It is a part of tests and of no program. [Run] starts the work in a process of its
// own and watches its system calls (trace_linux.go), so that what is examined is the
// code that ships, with no seam for tests in it. What was seen is a list of operations
// on files and directories (disk.go). For every beginning of that list the disks are
// made that POSIX allows (state.go): what was synced is there; of everything else any
// part may be missing, in any order between files:
//
//   - bytes written and not synced: lost, kept, cut at the end of each write, cut in the
//     middle of a sector, grown by zeros, or kept in some sectors of 512 bytes and not
//     in others;
//   - names made, changed or removed without a sync of their directory: as before, as
//     after, and at each step between, for every directory by itself. A directory that
//     is lost takes what is in it along.
//
// The rule a newcomer will break: a file that was synced is still lost when its name
// was not. Linux's usual file systems are kinder; the ones that are not are met once.
package powercut

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A Scenario is work on files and what must be true of them whenever it ends.
type Scenario struct {
	// Work runs once, in a process of its own, on an empty directory. It calls mark
	// for what it promises, when it does: after mark("paid") the checker expects it.
	Work func(dir string, mark func(promise string)) error
	// Check opens what is in a directory after a power cut, repairs it as the
	// program would, and says what is wrong. Marks are the promises made before. It
	// is called twice for one directory: opening again must not make it worse.
	Check func(dir string, marks []string) error
	// Every is how many disks there are to each that is checked, where a check takes
	// long; 0 is 1.
	Every int
	// Repair is the part of Check that is watched for a second cut; nil is all of it.
	Repair func(dir string) error
	// Again is how many of the disks, at most, are repaired under observation, so
	// that the power can fail a second time, during the repair. PASSEPARTOUT_SOAK
	// makes it ten times as many.
	Again int
}

// Variables of the environment that make a test the process that is watched.
const (
	dirVar   = "POWERCUT_DIR"
	marksVar = "POWERCUT_MARKS"
	markFile = 3 // the descriptor that marks are written to
	maxFails = 3
)

// Run does the work, and checks every disk it may leave. It skips where processes
// cannot be watched.
func Run(t *testing.T, s Scenario) {
	t.Helper()
	if dir := os.Getenv(dirVar); dir != "" {
		s.observed(dir)
	}
	if strings.Contains(t.Name(), "/") {
		t.Fatal("want a test of its own: the watched process runs it by name")
	}
	if os.Getenv("PASSEPARTOUT_SOAK") != "" {
		s.Again *= 10
	}
	c := &checker{t: t, s: s, dir: filepath.Join(room(t), "disk"), again: s.Again, seed: maphash.MakeSeed(), seen: map[uint64]bool{}}
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	tr := observe(t, c.dir, nil)
	n := c.all(tr, "", nil)
	second := c.secondCut()
	t.Logf("%d operations, %d disks; %d more after a second cut during repair", len(tr.ops), n, second)
}

// room is a directory for the test, in memory where there is such a place: repairs
// sync, and nobody pulls this plug.
func room(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "powercut-")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() {
		if err := removeAll(dir); err != nil {
			t.Error(err)
		}
	})
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// observed is the watched process: it never returns.
func (s Scenario) observed(dir string) {
	marks := os.NewFile(markFile, "marks")
	err := func() error {
		if raw := os.Getenv(marksVar); raw != "" {
			if s.Repair != nil {
				return s.Repair(dir)
			}
			var promised []string
			if err := json.Unmarshal([]byte(raw), &promised); err != nil {
				return err
			}
			return s.Check(dir, promised)
		}
		return s.Work(dir, func(promise string) {
			if _, err := marks.WriteString(promise); err != nil {
				panic(err)
			}
		})
	}()
	runtime.KeepAlive(marks) // or its number would be another file's
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// A checker makes disks and checks them, each once.
type checker struct {
	t       *testing.T
	s       Scenario
	dir     string // where every disk is put: files may name their own place
	failed  int
	seed    maphash.Seed
	seen    map[uint64]bool
	again   int
	sampled []state // disks for the second cut
	passed  int
}

// all checks the disks of a trace. After a first cut, that one's name and promises
// are those of the disk the trace began with.
func (c *checker) all(tr *trace, first string, promised []string) (states int) {
	tr.each(func(st state) bool {
		if first != "" {
			st.marks, st.name = promised, first+"; then, during repair, "+st.name
		}
		states += c.check(st)
		return c.failed < maxFails
	})
	return states
}

// check returns how many disks were new: none or one.
func (c *checker) check(st state) int {
	key := st.tree.hash(c.seed, len(st.marks))
	if c.seen[key] {
		return 0
	}
	c.seen[key] = true
	if len(c.seen)%max(1, c.s.Every) != 0 {
		return 0
	}
	c.put(st.tree)
	err := c.s.Check(c.dir, st.marks)
	if err == nil {
		if err = c.s.Check(c.dir, st.marks); err != nil {
			err = fmt.Errorf("opened a second time: %w", err)
		}
	}
	if err != nil {
		c.failed++
		c.t.Errorf("%s\n%s: %v\nthe disk: %s", st.story(), st.name, err, st.tree)
		return 1
	}
	c.passed++
	c.keep(st)
	return 1
}

// put makes a disk in the place of the one before.
func (c *checker) put(tr tree) {
	if err := errors.Join(removeAll(c.dir), tr.write(c.dir)); err != nil {
		c.t.Fatal(err)
	}
}

// keep spreads the samples over all disks: of n it keeps every 2^k-th, with k as
// small as it can be.
func (c *checker) keep(st state) {
	if c.again == 0 {
		return
	}
	stride := 1
	for c.passed/stride > c.again {
		stride *= 2
	}
	if c.passed%stride != 0 {
		return
	}
	if len(c.sampled) == c.again {
		half := c.sampled[:0]
		for i, x := range c.sampled {
			if i%2 == 1 {
				half = append(half, x)
			}
		}
		c.sampled = half
	}
	c.sampled = append(c.sampled, st)
}

// secondCut repairs the sampled disks in watched processes, and checks what a power
// cut during each repair may leave.
func (c *checker) secondCut() (states int) {
	c.again = 0
	for _, s := range c.sampled {
		if c.failed > 0 {
			break
		}
		c.put(s.tree)
		states += c.all(observe(c.t, c.dir, append([]string{}, s.marks...)), s.name, s.marks)
	}
	return states
}

// removeAll removes a directory even where the work took its own rights away.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// observe runs this test in a process of its own and records what it does below dir:
// the work, or the check of a disk on which promises were made.
func observe(t *testing.T, dir string, promised []string) *trace {
	t.Helper()
	d, err := newDisk(dir)
	if err != nil {
		t.Fatal(err)
	}
	marks := ""
	if promised != nil {
		raw, err := json.Marshal(promised)
		if err != nil {
			t.Fatal(err)
		}
		marks = string(raw)
	}
	out, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	env := append(os.Environ(), dirVar+"="+dir, marksVar+"="+marks, "GODEBUG=asyncpreemptoff=1", "GORACE=atexit_sleep_ms=0")
	err = watch(d, []string{os.Args[0], "-test.run=^" + t.Name() + "$", "-test.count=1"}, env, out)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skipf("processes cannot be watched here: %v", err)
	}
	if err != nil {
		said, _ := os.ReadFile(out.Name())
		t.Fatalf("the watched work: %v\n%s", err, bytes.TrimSpace(said))
	}
	return &d.trace
}
