package lisp_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"passepartout/internal/lisp"
)

// benchSource defines the four programs that are compared with SBCL.
const benchSource = `
(defun fib (n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(defun tak (x y z) (if (not (< y x)) z (tak (tak (- x 1) y z) (tak (- y 1) z x) (tak (- z 1) x y))))
(defparameter *patterns* '((:rm "\\brm\\s+-rf\\b") (:token "(ghp|gho)_[A-Za-z0-9]{20,}") (:pem "BEGIN [A-Z ]*PRIVATE KEY")))
(defparameter *secret-paths* '(".ssh" ".gnupg" "id_rsa" ".env"))
(defun gate (action)
  (let* ((payload (getf action :payload)) (cmd (getf payload :cmd)))
    (dolist (p *patterns*)
      (when (cl-ppcre:scan (second p) cmd)
        (return-from gate (list :type :log :payload (list :level :error :text (format nil "blocked: ~a" (first p)))))))
    (dolist (path *secret-paths*)
      (when (search path cmd)
        (return-from gate (list :type :log :payload (list :level :error :text (format nil "secret path ~a" path))))))
    (if (> (length (getf action :explanation "")) 10) action (list :type :log :payload (list :text "no explanation")))))
(defparameter *action* '(:type :request :target :shell :explanation "list the files of the project" :payload (:cmd "ls -la /home/user/projects && cat README.org")))
(defun walk (plist) (let ((n 0)) (labels ((w (x) (cond ((consp x) (w (car x)) (w (cdr x))) ((keywordp x) (incf n))))) (w plist) n)))
(defparameter *tree* (let ((x '(:a 1 :b (:c 2 :d (:e 3))))) (dotimes (i 6 x) (setq x (list :l x :r x)))))
`

// benchRows are the calls measured, and how often SBCL repeats each.
var benchRows = []struct {
	name, form string
	repeat     int
}{
	{"fib 25", "(fib 25)", 1},
	{"tak 18 12 6", "(tak 18 12 6)", 1},
	{"string/regex gate", "(gate *action*)", 100},
	{"plist walk", "(walk *tree*)", 10},
}

func benchImage(tb testing.TB) *lisp.Image {
	tb.Helper()
	th := newImage(tb).Thread(generous)
	if _, err := th.Load("bench.lisp", []byte(benchSource)); err != nil {
		tb.Fatal(err)
	}
	for i, r := range benchRows {
		if _, err := th.EvalString("", fmt.Sprintf("(defun bench-%d () %s)", i, r.form)); err != nil {
			tb.Fatal(err)
		}
	}
	img, err := th.Freeze()
	if err != nil {
		tb.Fatal(err)
	}
	return img
}

// BenchmarkPrograms measures one call on a fresh thread, as a gate is run.
func BenchmarkPrograms(b *testing.B) {
	img := benchImage(b)
	for i, r := range benchRows {
		name := fmt.Sprintf("bench-%d", i)
		b.Run(strings.ReplaceAll(r.name, " ", "-"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				th := img.Thread(generous)
				if _, err := th.Call(name); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	img := newImage(b)
	b.SetBytes(int64(len(benchSource)))
	for b.Loop() {
		if _, err := img.Thread(generous).Load("bench.lisp", []byte(benchSource)); err != nil {
			b.Fatal(err)
		}
	}
}

// TestSpeedBesideSBCL prints one table of our times and SBCL's, interpreted and
// compiled, from one run. It judges nothing: the machine may be busy.
func TestSpeedBesideSBCL(t *testing.T) {
	if os.Getenv("PASSEPARTOUT_SPEED") == "" {
		t.Skip("set PASSEPARTOUT_SPEED=1 to measure")
	}
	if _, err := exec.LookPath("sbcl"); err != nil {
		t.Skip("sbcl is not installed")
	}
	interpreted, compiled := sbclTimes(t, ":interpret"), sbclTimes(t, ":compile")
	img := benchImage(t)
	t.Logf("%-20s %14s %18s %14s", "µs per call", "passepartout", "sbcl interpreted", "sbcl compiled")
	for i, r := range benchRows {
		name := fmt.Sprintf("bench-%d", i)
		n := 0
		start := time.Now()
		for time.Since(start) < 300*time.Millisecond {
			if _, err := img.Thread(generous).Call(name); err != nil {
				t.Fatal(err)
			}
			n++
		}
		ours := float64(time.Since(start).Microseconds()) / float64(n)
		t.Logf("%-20s %14.1f %18s %14s", r.name, ours, interpreted[i], compiled[i])
	}
}

// sbclTimes runs the rows in SBCL's evaluator or compiler.
func sbclTimes(t *testing.T, mode string) []string {
	t.Helper()
	var b strings.Builder
	b.WriteString("(require :asdf)\n(let ((*standard-output* (make-broadcast-stream)) (*error-output* (make-broadcast-stream))) (handler-bind ((warning #'muffle-warning)) (asdf:load-system :cl-ppcre)))\n")
	fmt.Fprintf(&b, "(setf sb-ext:*evaluator-mode* %s)\n%s", mode, benchSource)
	for i, r := range benchRows {
		fmt.Fprintf(&b, "(defun bench-%d () (dotimes (i %d) %s))\n", i, r.repeat, r.form)
		fmt.Fprintf(&b, "(let ((start (get-internal-real-time)) (n 0)) (loop (bench-%d) (incf n) (when (> (- (get-internal-real-time) start) 300000) (return))) (format t \"~,1f~%%\" (/ (- (get-internal-real-time) start) (* n %d) 1.0)))\n", i, r.repeat)
	}
	file := filepath.Join(t.TempDir(), "speed.lisp")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("sbcl", "--script", file).Output()
	if err != nil {
		t.Fatalf("sbcl: %v\n%s", err, out)
	}
	return strings.Fields(string(out))
}
