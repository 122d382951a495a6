package lisp_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"passepartout/internal/lisp"
)

var update = flag.Bool("update", false, "rewrite golden files; those of SBCL need sbcl")

// generous is a budget no honest test form exhausts.
var generous = lisp.Budget{Steps: 1e9, Cells: 1e8, Depth: 10000, Output: 1 << 20}

func newImage(tb testing.TB, host ...lisp.Builtin) *lisp.Image {
	tb.Helper()
	img, err := lisp.New(host)
	if err != nil {
		tb.Fatal(err)
	}
	return img
}

// splitForms cuts a file into forms: each starts in the first column.
func splitForms(src string) []string {
	var out []string
	for _, line := range strings.Split(src, "\n") {
		switch {
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, ";"):
		case line[0] == ' ' && len(out) > 0:
			out[len(out)-1] += "\n" + line
		default:
			out = append(out, line)
		}
	}
	return out
}

// conditionTypes are the types the driver tells apart, most specific first;
// ours are named by class, so subtypes are mapped to the one SBCL answers.
var conditionTypes = map[string]string{
	"SIMPLE-TYPE-ERROR": "TYPE-ERROR", "READER-PACKAGE-ERROR": "READER-ERROR", "FILE-ERROR": "ERROR", "REGEX-SYNTAX-ERROR": "SIMPLE-ERROR",
	"PRINT-NOT-READABLE": "ERROR",
}

func answer(th *lisp.Thread, form string) string {
	vals, err := th.EvalString("", form)
	if err != nil {
		var c *lisp.ConditionError
		if !errors.As(err, &c) {
			return "! " + err.Error()
		}
		if t, ok := conditionTypes[c.Type]; ok {
			return "! " + t
		}
		return "! " + c.Type
	}
	parts := make([]string, len(vals))
	for i, v := range vals {
		s, err := th.Print(v)
		if err != nil {
			return "! printing: " + err.Error()
		}
		parts[i] = s
	}
	s := "(" + strings.Join(parts, " ") + ")"
	if len(parts) == 0 {
		s = "NIL"
	}
	return "= " + strings.NewReplacer("\n", `\n`, "\r", `\r`).Replace(s)
}

// askSBCL evaluates a file in SBCL; it reports false when there is no SBCL.
func askSBCL(t *testing.T, file string) ([]string, bool) {
	t.Helper()
	if _, err := exec.LookPath("sbcl"); err != nil {
		return nil, false
	}
	var stderr bytes.Buffer
	cmd := exec.Command("sbcl", "--noinform", "--no-sysinit", "--no-userinit", "--disable-debugger", "--load", filepath.Join("testdata", "driver.lisp"), "--eval", "(driver::main \""+filepath.ToSlash(file)+"\")", "--quit")
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("sbcl %s: %v\n%s", file, err, stderr.Bytes())
	}
	return strings.Split(strings.TrimRight(string(out), "\n"), "\n"), true
}

// TestFormsAnswerAsInSBCL runs every form of testdata/forms and compares values
// or condition types with SBCL's answers kept in testdata/sbcl. With -update
// the answers are asked for again.
func TestFormsAnswerAsInSBCL(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "forms", "*.lisp"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no forms found: %v", err)
	}
	img := newImage(t)
	total := 0
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".lisp")
		golden := filepath.Join("testdata", "sbcl", name+".golden")
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		forms := splitForms(string(src))
		total += len(forms)
		t.Run(name, func(t *testing.T) {
			if *update {
				lines, ok := askSBCL(t, file)
				if !ok {
					t.Skip("sbcl is not installed: its answers cannot be renewed")
				}
				if len(lines) != len(forms) {
					t.Fatalf("sbcl read %d forms, we cut the file into %d", len(lines), len(forms))
				}
				if err := os.WriteFile(golden, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			data, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
			if len(want) != len(forms) {
				t.Fatalf("%d forms but %d answers: run with -update", len(forms), len(want))
			}
			th := img.Thread(generous)
			for i, form := range forms {
				if got := answer(th, form); got != want[i] {
					t.Errorf("%s\n  here %s\n  sbcl %s", form, got, want[i])
				}
			}
		})
	}
	if total < 2000 {
		t.Errorf("%d forms are compared: want at least 2000", total)
	}
}
