package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"passepartout/internal/sandbox"
)

func TestStrengthIsTheLevelThatProbeFinds(t *testing.T) {
	if testing.Short() {
		t.Skip("builds sandboxes: run by make test")
	}
	if got, want := sandbox.Strength(context.Background()), sandbox.Probe(context.Background()).Level; got != want {
		t.Errorf("%s, and a probe finds %s", got, want)
	}
}

func TestProbeSaysWhatIsMissingInWords(t *testing.T) {
	st := sandbox.Probe(t.Context())
	if len(st.Parts) == 0 {
		t.Fatal("wanted parts, got none")
	}
	for _, p := range st.Parts {
		if p.Name == "" || p.Note == "" {
			t.Errorf("part without name or note: %+v", p)
		}
	}
	if st.Level == sandbox.None && len(st.Missing()) == 0 {
		t.Error("level none, but nothing is said to be missing")
	}
	t.Logf("level %s by %s", st.Level, st.Method)
	for _, m := range st.Missing() {
		t.Log(m)
	}
}

func TestACommandReportsHowItEnded(t *testing.T) {
	onEach(t, func(t *testing.T, b *box) {
		for _, c := range []struct {
			name, script string
			cause        sandbox.Cause
			code         int
			signal       string
		}{
			{"success", "exit 0", sandbox.Exited, 0, ""},
			{"failure", "exit 7", sandbox.Exited, 7, ""},
			{"a signal", "kill -TERM $$", sandbox.Signalled, -1, "SIGTERM"},
			{"an abort", "kill -ABRT $$", sandbox.Signalled, -1, "SIGABRT"},
		} {
			t.Run(c.name, func(t *testing.T) {
				res := b.on(t).sh(c.script)
				if res.Cause != c.cause || res.ExitCode != c.code || res.Signal != c.signal {
					t.Errorf("wanted %v %d %q, got %v %d %q", c.cause, c.code, c.signal, res.Cause, res.ExitCode, res.Signal)
				}
				if res.Method != b.method || res.Level == sandbox.None {
					t.Errorf("wanted method %v and a level, got %v and %v", b.method, res.Method, res.Level)
				}
			})
		}
	})
}

func TestStreamsStayApartAndReachTheSink(t *testing.T) {
	onEach(t, func(t *testing.T, b *box) {
		live := map[sandbox.Stream]string{}
		s := b.spec("cat; echo problem >&2")
		s.Stdin = strings.NewReader("typed text\n")
		s.Sink = func(c sandbox.Chunk) { live[c.Stream] += string(c.Data) }
		res := b.run(s)
		if got := res.Stdout.String(); got != "typed text\n" || live[sandbox.Stdout] != got {
			t.Errorf("stdout: got %q, live %q", got, live[sandbox.Stdout])
		}
		if got := res.Stderr.String(); got != "problem\n" || live[sandbox.Stderr] != got {
			t.Errorf("stderr: got %q, live %q", got, live[sandbox.Stderr])
		}
	})
}

func TestStdinThatNeverEndsDoesNotHoldUpTheEnd(t *testing.T) {
	onEach(t, func(t *testing.T, b *box) {
		r, w := io.Pipe()
		defer w.Close()
		s := b.spec("echo enough")
		s.Stdin = r
		if res := b.run(s); res.Stdout.String() != "enough\n" {
			t.Errorf("got %q", res.Stdout)
		}
	})
}

func TestATerminalIsGivenOnlyWhenAskedFor(t *testing.T) {
	onEach(t, func(t *testing.T, b *box) {
		const script = "test -t 0 && test -t 1 && echo terminal; (: >/dev/tty) 2>/dev/null && echo controlling; true"
		if res := b.sh(script); res.Stdout.Total != 0 {
			t.Errorf("without a terminal: got %q", res.Stdout)
		}
		s := b.spec(script + "; read line; echo got $line")
		s.PTY = true
		s.Stdin = strings.NewReader("word\n")
		res := b.run(s)
		got := res.Stdout.String()
		for _, want := range []string{"terminal", "controlling", "got word"} {
			if !strings.Contains(got, want) {
				t.Errorf("with a terminal: wanted %q in %q", want, got)
			}
		}
	})
}

func TestTheEnvironmentIsTheFixedMinimumAndWhatWasGiven(t *testing.T) {
	t.Setenv("PASSEPARTOUT_TEST_SECRET", "swordfish")
	onEach(t, func(t *testing.T, b *box) {
		s := b.spec("env")
		s.Env = map[string]string{"COLOUR": "blue"}
		got := b.run(s).Stdout.String()
		if strings.Contains(got, "swordfish") || !strings.Contains(got, "COLOUR=blue\n") || !strings.Contains(got, "PATH=") {
			t.Errorf("got %s", got)
		}
	})
}

func TestVariablesThatRunCodeAreRefused(t *testing.T) {
	for _, k := range []string{"LD_PRELOAD", "LD_AUDIT", "BASH_ENV", "ENV", "PROMPT_COMMAND", "BASH_FUNC_x%%", "A=B", "", "N\x00"} {
		_, err := sandbox.Run(t.Context(), sandbox.Spec{Argv: []string{"true"}, Env: map[string]string{k: "x"}})
		if !errors.Is(err, sandbox.ErrSpec) {
			t.Errorf("%q: wanted ErrSpec, got %v", k, err)
		}
	}
}

func TestSpecsThatCannotBeMeantAreRefused(t *testing.T) {
	dir := realTempDir(t)
	link := filepath.Join(dir, "link")
	if err := os.Symlink("/etc", link); err != nil {
		t.Fatal(err)
	}
	sub := filepath.Join(dir, "sub")
	mustWrite(t, filepath.Join(sub, "file"), "x")
	for name, s := range map[string]sandbox.Spec{
		"no command":                     {},
		"zero byte in an argument":       {Argv: []string{"true", "a\x00b"}},
		"relative write root":            {Argv: []string{"true"}, WriteRoots: []string{"here"}},
		"write root that is a link":      {Argv: []string{"true"}, WriteRoots: []string{link}},
		"write root through a link":      {Argv: []string{"true"}, WriteRoots: []string{link + "/ssl"}},
		"write root that does not exist": {Argv: []string{"true"}, WriteRoots: []string{dir + "/none"}},
		"write root with dots":           {Argv: []string{"true"}, WriteRoots: []string{sub + "/../sub"}},
		"everything writable":            {Argv: []string{"true"}, WriteRoots: []string{"/"}},
		"kernel settings writable":       {Argv: []string{"true"}, WriteRoots: []string{"/proc/sys"}},
		"devices writable":               {Argv: []string{"true"}, WriteRoots: []string{"/dev"}},
		"write root that is hidden":      {Argv: []string{"true"}, WriteRoots: []string{sub}, Hidden: []string{dir}},
		"relative hidden path":           {Argv: []string{"true"}, Hidden: []string{"secret"}},
		"hidden link in a write root":    {Argv: []string{"true"}, WriteRoots: []string{dir}, Hidden: []string{link}},
		"relative directory":             {Argv: []string{"true"}, Dir: "here"},
		"negative limit":                 {Argv: []string{"true"}, Limits: sandbox.Limits{Processes: -1}},
		"nonsense method":                {Argv: []string{"true"}, Method: 9},
		"host with a zero byte":          {Argv: []string{"true"}, Network: &sandbox.Network{Hosts: []string{"a\x00.example.org"}}},
		"whole top-level domain":         {Argv: []string{"true"}, Network: &sandbox.Network{Hosts: []string{"*.org"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := sandbox.Run(t.Context(), s); !errors.Is(err, sandbox.ErrSpec) {
				t.Errorf("wanted ErrSpec, got %v", err)
			}
		})
	}
}

func TestACommandThatCannotStartIsNotAnUnavailableSandbox(t *testing.T) {
	onEach(t, func(t *testing.T, b *box) {
		for name, s := range map[string]sandbox.Spec{
			"no such program":   {Argv: []string{"no-such-program"}},
			"no such path":      {Argv: []string{"/no/such/program"}},
			"no such directory": {Argv: []string{"true"}, Dir: "/no/such/dir"},
			"not executable":    {Argv: []string{"/etc/passwd"}},
		} {
			s.Method = b.method
			_, err := sandbox.Run(t.Context(), s)
			if !errors.Is(err, sandbox.ErrStart) || errors.Is(err, sandbox.ErrUnavailable) {
				t.Errorf("%s: wanted ErrStart, got %v", name, err)
			}
		}
	})
}

func TestArgumentsArriveByteForByte(t *testing.T) {
	onEach(t, func(t *testing.T, b *box) {
		odd := "a\xff\xfe\n'\"$x\\ ü"
		s := b.spec("")
		s.Argv = []string{"/usr/bin/printf", "%s|%s", odd, ""}
		s.Env = map[string]string{"ODD": odd}
		if got := b.run(s).Stdout.String(); got != odd+"|" {
			t.Errorf("wanted %q, got %q", odd, got)
		}
		s.Argv = []string{"/bin/sh", "-c", `printf %s "$ODD"`}
		if got := b.run(s).Stdout.String(); got != odd {
			t.Errorf("wanted %q, got %q", odd, got)
		}
	})
}

func TestRootsWithOddNamesAreMountedAsTheyAre(t *testing.T) {
	onEach(t, func(t *testing.T, b *box) {
		root := filepath.Join(b.root, "a,b:c\\d \xff\n")
		if err := os.Mkdir(root, 0o755); err != nil {
			t.Fatal(err)
		}
		s := b.spec("echo x > file; echo y > ../file")
		s.WriteRoots = []string{root}
		b.run(s)
		if mustRead(t, filepath.Join(root, "file")) != "x\n" {
			t.Error("the root was not written to")
		}
		if _, err := os.Stat(filepath.Join(b.root, "file")); err == nil {
			t.Error("the directory around the root was written to")
		}
		dir := filepath.Join(b.out, "over,lay:")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if b.method == sandbox.Namespaces {
			_, changes, err := sandbox.DryRun(t.Context(), s, dir)
			if errors.Is(err, sandbox.ErrUnavailable) {
				t.Skipf("no dry run here: %v", err)
			}
			if err != nil || len(changes) != 1 || changes[0].Path != filepath.Join(root, "file") {
				t.Errorf("dry run: got %+v %v", changes, err)
			}
		}
	})
}

func TestATerminalCanInterrupt(t *testing.T) {
	onEach(t, func(t *testing.T, b *box) {
		r, w := io.Pipe()
		s := b.spec("trap 'echo caught; exit 3' INT; echo ready; while :; do sleep 0.05; done")
		s.PTY, s.Stdin = true, r
		var once bool
		s.Sink = func(c sandbox.Chunk) {
			if !once && strings.Contains(string(c.Data), "ready") {
				once = true
				go func() { _, _ = w.Write([]byte{3}) }()
			}
		}
		res := b.run(s)
		if res.ExitCode != 3 || !strings.Contains(res.Stdout.String(), "caught") {
			t.Errorf("got %v %d %q", res.Cause, res.ExitCode, res.Stdout)
		}
	})
}

func TestRootIsBoundedWithoutControlGroupsOrRefused(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("the process limit binds an ordinary user by itself")
	}
	defer sandbox.HideCgroups()()
	b := newBox(t, sandbox.Namespaces)
	s := b.spec("")
	s.Argv = []string{b.self, attemptArg, "fork", "2000"}
	s.Limits.Processes = 64
	res, err := sandbox.Run(t.Context(), s)
	if err == nil && !strings.HasPrefix(res.Stdout.String(), "refused: process ") {
		t.Errorf("wanted a bound or ErrUnavailable, got %v %q", res.Cause, res.Stdout)
	}
	if err != nil && !errors.Is(err, sandbox.ErrUnavailable) {
		t.Errorf("wanted ErrUnavailable, got %v", err)
	}
	s.Method = sandbox.Bubblewrap
	if _, err := sandbox.Run(t.Context(), s); !errors.Is(err, sandbox.ErrUnavailable) {
		t.Errorf("bubblewrap: wanted ErrUnavailable, got %v", err)
	}
}

func TestNoControlGroupIsLeftBehind(t *testing.T) {
	onEach(t, func(t *testing.T, b *box) {
		left := func() int {
			n := 0
			_ = filepath.WalkDir("/sys/fs/cgroup", func(p string, d fs.DirEntry, err error) error {
				if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), fmt.Sprintf("passepartout-%d-", os.Getpid())) {
					n++
				}
				return nil
			})
			return n
		}
		b.sh("sleep 1000 & exit 0")
		s := b.spec("true")
		s.Dir = "/no/such/dir"
		if _, err := sandbox.Run(t.Context(), s); !errors.Is(err, sandbox.ErrStart) {
			t.Errorf("wanted ErrStart, got %v", err)
		}
		s = b.spec("sleep 1000")
		s.Limits.Wall = 50 * time.Millisecond
		b.run(s)
		if n := left(); n != 0 {
			t.Errorf("%d control groups are left", n)
		}
	})
}

func TestADeadlineAtAnyMomentOfTheSetUpLeavesNothingRunning(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run by make test")
	}
	onEach(t, func(t *testing.T, b *box) {
		m := marker(9)
		for ms := range 30 {
			s := b.spec("sleep " + m)
			s.Limits.Wall = time.Duration(1+2*ms) * time.Millisecond
			// The deadline may pass before there is a sandbox: then it is an
			// error that nothing was run.
			if res, err := sandbox.Run(t.Context(), s); err == nil && res.Cause != sandbox.TimedOut {
				t.Errorf("after %v: ended by %v", s.Limits.Wall, res.Cause)
			} else if err != nil && !errors.Is(err, sandbox.ErrUnavailable) {
				t.Errorf("after %v: %v", s.Limits.Wall, err)
			}
		}
		if n := survivors(t, m); n != 0 {
			t.Errorf("%d processes outlived their sandbox", n)
		}
	})
}

func TestASandboxKilledFromOutsideCountsAsRun(t *testing.T) {
	onEach(t, func(t *testing.T, b *box) {
		m := marker(8)
		s := b.spec("echo up; sleep " + m)
		s.Sink = func(sandbox.Chunk) {
			for _, pid := range children(t) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		res, err := sandbox.Run(t.Context(), s)
		if err != nil || res.Cause != sandbox.Signalled || res.Signal != "SIGKILL" {
			t.Errorf("wanted it killed, got %v %q %v", res.Cause, res.Signal, err)
		}
		if n := survivors(t, m); n != 0 {
			t.Errorf("%d processes are still running", n)
		}
	})
}

// children lists the processes this one started.
func children(t *testing.T) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var out []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		status, err := os.ReadFile(filepath.Join("/proc", e.Name(), "status"))
		if err == nil && strings.Contains(string(status), fmt.Sprintf("\nPPid:\t%d\n", os.Getpid())) {
			out = append(out, pid)
		}
	}
	return out
}

func TestReadRootsShowNothingElse(t *testing.T) {
	onEach(t, func(t *testing.T, b *box) {
		mustWrite(t, filepath.Join(b.out, "note"), "private")
		shown := filepath.Join(b.out, "..", "shown")
		mustWrite(t, filepath.Join(shown, "note"), "public")
		shown = filepath.Clean(shown)
		s := b.spec("cat " + b.out + "/note; cat " + shown + "/note; echo x > " + shown + "/new; echo y > " + b.root + "/new; ls /home")
		s.ReadRoots = append(sandbox.SystemRoots(), shown)
		res := b.run(s)
		if got := res.Stdout.String(); got != "public" {
			t.Errorf("wanted only what was shown, got %q (%s)", got, res.Stderr)
		}
		if _, err := os.Stat(filepath.Join(shown, "new")); err == nil {
			t.Error("a read root was written to")
		}
		if mustRead(t, filepath.Join(b.root, "new")) != "y\n" {
			t.Error("the write root was not written to")
		}
	})
}

func TestTemporaryDirectoriesArePrivateAndShort(t *testing.T) {
	onEach(t, func(t *testing.T, b *box) {
		name := "passepartout-" + marker(0)
		res := b.sh("for d in /tmp /var/tmp /run /dev/shm; do ls $d; echo x > $d/" + name + " || echo failed; done")
		if strings.Contains(res.Stdout.String(), "failed") {
			t.Errorf("got %s%s", res.Stdout, res.Stderr)
		}
		for _, d := range []string{"/tmp", "/var/tmp", "/run", "/dev/shm"} {
			if _, err := os.Lstat(filepath.Join(d, name)); err == nil {
				t.Errorf("%s is not private", d)
			}
		}
	})
}

func TestCancellingKillsEverythingAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, b *box) {
		ctx, cancel := context.WithCancel(t.Context())
		m := marker(1)
		s := b.spec("setsid nohup sleep " + m + " & echo up; sleep " + m)
		s.Sink = func(sandbox.Chunk) { cancel() }
		res, err := sandbox.Run(ctx, s)
		if err != nil || res.Cause != sandbox.Cancelled {
			t.Errorf("wanted cancelled, got %v %v", res.Cause, err)
		}
		if n := survivors(t, m); n != 0 {
			t.Errorf("%d processes are still running", n)
		}
	})
}

func TestOutputKeepsHeadAndTailAndSaysTheCut(t *testing.T) {
	onEach(t, func(t *testing.T, b *box) {
		s := b.spec("echo first; head -c 1000000 /dev/zero; echo last")
		s.Limits.Output = 4096
		res := b.run(s)
		got := res.Stdout.String()
		if !strings.HasPrefix(got, "first\n") || !strings.HasSuffix(got, "last\n") || !strings.Contains(got, " bytes cut]") {
			t.Errorf("got %.80q … %.80q", got, got[len(got)-80:])
		}
		if res.Stdout.Total != 1000000+6+5 || !res.Truncated() || len(got) > 5000 {
			t.Errorf("total %d, truncated %v, kept %d", res.Stdout.Total, res.Truncated(), len(got))
		}
	})
}

func TestManyRunsAtOnceShareNothing(t *testing.T) {
	onEach(t, func(t *testing.T, b *box) {
		done := make(chan string)
		const n = 8
		for range n {
			go func() {
				res, err := sandbox.Run(t.Context(), sandbox.Spec{
					Argv: []string{"/bin/sh", "-c", "ls /tmp; echo x > /tmp/f; cat /tmp/f"}, Method: b.method,
				})
				if err != nil {
					done <- err.Error()
					return
				}
				done <- res.Stdout.String()
			}()
		}
		for range n {
			if got := <-done; got != "x\n" {
				t.Errorf("got %q", got)
			}
		}
	})
}

func TestLimitsBind(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run by make test")
	}
	onEach(t, func(t *testing.T, b *box) {
		t.Run("file size", func(t *testing.T) {
			s := b.spec("head -c 2000000 /dev/zero > big")
			s.Limits.FileSize = 1 << 20
			b.on(t).run(s)
			if info, err := os.Stat(filepath.Join(b.root, "big")); err != nil || info.Size() > 1<<20 {
				t.Errorf("wanted at most a mebibyte, got %v %v", info, err)
			}
		})
		t.Run("scratch", func(t *testing.T) {
			s := b.spec("head -c 9000000 /dev/zero > /tmp/big; wc -c < /tmp/big")
			s.Limits.Scratch = 1 << 20
			if res := b.on(t).run(s); strings.TrimSpace(res.Stdout.String()) != "1048576" {
				t.Errorf("got %s", res.Stdout)
			}
		})
		t.Run("processor time", func(t *testing.T) {
			s := b.spec("while :; do :; done")
			s.Limits.CPU = time.Second
			if res := b.on(t).run(s); res.Cause != sandbox.Signalled {
				t.Errorf("wanted a signal, got %v", res.Cause)
			}
		})
		t.Run("memory", func(t *testing.T) {
			if raceEnabled {
				t.Skip("the race detector's shadow memory is larger than the limit")
			}
			s := b.spec("")
			s.Argv = []string{b.self, attemptArg, "memory", "536870912"}
			s.Limits.Memory = 128 << 20
			if res := b.on(t).run(s); res.OK() {
				t.Error("half a gibibyte fitted into 128 mebibytes")
			}
		})
		t.Run("wall clock", func(t *testing.T) {
			s := b.spec("sleep 600")
			s.Limits.Wall = 200 * time.Millisecond
			if res := b.on(t).run(s); res.Cause != sandbox.TimedOut {
				t.Errorf("wanted timed out, got %v", res.Cause)
			}
		})
	})
}
