package main_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"passepartout/internal/channel/channeltest"
	"passepartout/internal/sandbox"
)

// binary is the real program, built once for all tests of this package.
var binary string

func TestMain(m *testing.M) {
	sandbox.Init()
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "ppbin")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "passepartout")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the binary: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// TestScripts runs the real binary as its users do. Each script has a home of its
// own, and its daemon is stopped when it ends.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			run, err := os.MkdirTemp("", "pp") // short: socket paths are limited
			if err != nil {
				return err
			}
			e.Values["telegram"] = map[string]*channeltest.Telegram{}
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("PATH", filepath.Dir(binary)+string(os.PathListSeparator)+os.Getenv("PATH"))
			e.Setenv("XDG_RUNTIME_DIR", run)
			e.Setenv("TMPDIR", run)
			e.Setenv("MEMEX_DIR", filepath.Join(e.WorkDir, "memex"))
			e.Defer(func() {
				stopDaemon(filepath.Join(e.WorkDir, "home", ".local", "state", "passepartout", "daemon.lock"))
				os.RemoveAll(run)
			})
			return os.MkdirAll(filepath.Join(e.WorkDir, "home"), 0o755)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":    exits,
			"telegram": telegram,
			"halt": func(ts *testscript.TestScript, _ bool, _ []string) {
				stopDaemon(filepath.Join(ts.Getenv("HOME"), ".local", "state", "passepartout", "daemon.lock"))
			},
			"crash": func(ts *testscript.TestScript, _ bool, _ []string) {
				killDaemon(filepath.Join(ts.Getenv("HOME"), ".local", "state", "passepartout", "daemon.lock"))
			},
		},
	})
}

// exits runs a command and wants its exit code: exits 3 passepartout why x.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND…")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if ee := (*exec.ExitError)(nil); err != nil && errors.As(err, &ee) {
		code = ee.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if fmt.Sprint(code) != args[0] {
		ts.Fatalf("%v exits with %d, want %s\nstdout: %s\nstderr: %s", args[1:], code, args[0], ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}
