package lisp_test

import (
	"runtime"
	"strings"
	"testing"

	"passepartout/internal/lisp"
)

// small is about what a gate gets.
var small = lisp.Budget{Steps: 2_000_000, Cells: 200_000, Depth: 2000, Output: 4096}

// TestJailStopsWhatDoesNotEnd checks that each program is stopped by its
// budget, whatever it does to go on.
func TestJailStopsWhatDoesNotEnd(t *testing.T) {
	img := newImage(t)
	for _, c := range []struct{ name, src string }{
		{"infinite loop", "(loop)"},
		{"infinite tagbody", "(tagbody a (go a))"},
		{"infinite do", "(do () (nil))"},
		{"infinite recursion", "(defun f (x) (1+ (f x))) (f 1)"},
		{"tail recursion", "(defun f (x) (f x)) (f 1)"},
		{"mutual recursion", "(defun f () (g)) (defun g () (f)) (f)"},
		{"recursion through mapcar", "(defun f (x) (mapcar #'f (list x))) (f 1)"},
		{"recursion through sort", "(defun f (a b) (sort (list 1 2 3) #'f) (< a b)) (f 1 2)"},
		{"recursion through apply", "(defun f (&rest r) (apply #'f r)) (f 1)"},
		{"recursion through eval", "(defun f () (eval '(f))) (f)"},
		{"recursion through handler", "(defun f () (handler-bind ((error (lambda (c) c (f)))) (error \"x\"))) (f)"},
		{"recursion through format", "(let ((a (list nil nil))) (setf (first a) \"~?\" (second a) a) (apply #'format nil \"~?\" a))"},
		{"recursion through print-object", "(defstruct s) (defmethod print-object ((x s) st) (prin1 x st)) (prin1-to-string (make-s))"},
		{"exponential macro", "(defmacro m (n) (if (= n 0) 1 `(+ (m ,(1- n)) (m ,(1- n))))) (m 60)"},
		{"endless macro", "(defmacro m () '(m)) (m)"},
		{"endless macro growth", "(defmacro m (x) `(m (,x ,x))) (m 1)"},
		{"huge array", "(make-array 1000000000)"},
		{"huge matrix", "(make-array '(100000 100000 100000))"},
		{"huge string", "(make-string 1000000000)"},
		{"huge list", "(make-list 1000000000)"},
		{"huge power", "(expt 2 10000000000)"},
		{"huge power of a ratio", "(expt 2/3 100000000)"},
		{"power tower", "(let ((x 3)) (loop (setq x (expt x x))))"},
		{"huge shift", "(ash 1 10000000000)"},
		{"huge shift of a bignum", "(ash 1 (expt 10 30))"},
		{"doubling numbers", "(let ((x 3)) (loop (setq x (* x x))))"},
		{"doubling strings", "(let ((s \"ab\")) (loop (setq s (concatenate 'string s s))))"},
		{"doubling lists", "(let ((s (list 1))) (loop (setq s (append s s))))"},
		{"doubling vectors", "(let ((s (vector 1))) (loop (setq s (concatenate 'vector s s))))"},
		{"doubling by replace", "(let ((s \"a\")) (loop (setq s (cl-ppcre:regex-replace-all \"a\" s \"aa\"))))"},
		{"doubling by format", "(let ((s \"a\")) (loop (setq s (format nil \"~a~a\" s s))))"},
		{"doubling by strcat", "(let ((s \"a\")) (loop (setq s (uiop:strcat s s))))"},
		{"vector-push-extend", "(let ((v (make-array 0 :fill-pointer t :adjustable t))) (loop (vector-push-extend 1 v)))"},
		{"growing table", "(let ((h (make-hash-table)) (n 0)) (loop (setf (gethash (incf n) h) n)))"},
		{"format width", "(format nil \"~1000000000a\" 1)"},
		{"format width from an argument", "(format nil \"~va\" 1000000000 1)"},
		{"format digits", "(format nil \"~,1000000000f\" 1.5)"},
		{"format repeat", "(format nil \"~1000000000%\")"},
		{"format column", "(format nil \"~1000000000ta\")"},
		{"format justify", "(format nil \"~1000000000<a~;b~>\")"},
		{"format money", "(format nil \"~1000000000$\" 1.5)"},
		{"format without end", "(format nil \"~{~a~:}\" (let ((l (list 1))) (setf (cdr l) l) l))"},
		{"format that consumes nothing", "(format nil \"~{x~}\" '(1))"},
		{"symbol flood", "(let ((n 0)) (loop (intern (format nil \"S~a\" (incf n)))))"},
		{"gensym flood", "(let ((l nil)) (loop (push (gensym) l)))"},
		{"keyword flood", "(let ((n 0)) (loop (intern (format nil \"S~a\" (incf n)) :keyword)))"},
		{"package flood", "(let ((n 0)) (loop (make-package (format nil \"P~a\" (incf n)))))"},
		{"closure flood", "(let ((l nil)) (loop (let ((x 1)) (push (lambda () (incf x)) l))))"},
		{"circular list walked", "(let ((l (list 1))) (setf (cdr l) l) (length l))"},
		{"circular list printed", "(let ((l (list 1))) (setf (cdr l) l) (prin1-to-string l))"},
		{"circular car printed", "(let ((l (list 1))) (setf (car l) l) (prin1-to-string l))"},
		{"circular lists compared", "(let ((a (list 1)) (b (list 1))) (setf (cdr a) a (cdr b) b) (equal a b))"},
		{"circular list copied", "(let ((l (list 1))) (setf (cdr l) l) (copy-list l))"},
		{"circular tree copied", "(let ((l (list 1))) (setf (car l) l) (copy-tree l))"},
		{"circular code", "(let ((l (list 'progn 1))) (setf (cddr l) (cdr l)) (eval l))"},
		{"circular lambda list", "(let ((l (list 'a 'b))) (setf (cddr l) l) (eval `(lambda ,l 1)))"},
		{"circular mapcar", "(let ((l (list 1))) (setf (cdr l) l) (mapcar #'1+ l))"},
		{"circular loop", "(let ((l (list 1))) (setf (cdr l) l) (loop for x in l sum x))"},
		{"circular member", "(let ((l (list 1))) (setf (cdr l) l) (member 2 l))"},
		{"circular getf", "(let ((l (list :a 1))) (setf (cddr l) l) (getf l :b))"},
		{"deep list equal", "(let ((a nil) (b nil)) (dotimes (i 100000) (setq a (list a) b (list b))) (equal a b))"},
		{"regex over much text", "(let ((s (make-string 400000 :initial-element #\\a))) (loop (cl-ppcre:scan \"(a|aa|aaa){0,50}b\" s)))"},
		{"last of a circular list", "(let ((l (list 1))) (setf (cdr l) l) (last l 1000000000000))"},
		{"format scale", "(format nil \"~,,10000000000f\" 1.5)"},
		{"format negative scale", "(format nil \"~,,-10000000000f\" 1.5)"},
		{"format negative scale from an argument", "(format nil \"~,,,ve\" -10000000000 1.5)"},
		{"format exponent digits", "(format nil \"~,,10000000000e\" 1.5)"},
		{"format that takes its body from itself", "(let ((a (list \"~{~}\" nil))) (setf (second a) a) (apply #'format nil \"~{~}\" a))"},
		{"a number of many digits", "(read-from-string (make-string 1000000 :initial-element #\\9))"},
		{"matches that look far", "(cl-ppcre:all-matches \"a(.*b)?\" (make-string 500000 :initial-element #\\a))"},
		{"matches of a counted lookahead", "(cl-ppcre:all-matches \"a(.{0,900}b)?\" (make-string 200000 :initial-element #\\a))"},
		{"replacement by all that follows", "(cl-ppcre:regex-replace \"a\" (make-string 500000 :initial-element #\\a) (apply #'concatenate 'string (make-list 20000 :initial-element \"\\\\'\")))"},
		{"replacement list of matches", "(cl-ppcre:regex-replace \"a+\" (make-string 500000 :initial-element #\\a) (make-list 20000 :initial-element :match))"},
		{"patterns that take long to read", "(loop for i from 0 do (cl-ppcre:create-scanner (format nil \"(?i)~a~a\" (apply #'concatenate 'string (make-list 900 :initial-element \"[a-\\\\x{ffff}]\")) i)))"},
		{"kept patterns", "(loop for i from 0 collect (cl-ppcre:create-scanner (format nil \"~dx{1000}\" i)))"},
		{"values carried through cleanups", "(progn (values-list (make-list 100000)) (loop (unwind-protect (values-list '(1 2)) 1)))"},
		{"output flood", "(loop (princ \"hello\"))"},
		{"catching everything", "(loop (handler-case (loop) (condition () nil) (serious-condition () nil)))"},
		{"ignoring errors", "(loop (ignore-errors (loop)))"},
		{"cleanup that goes on", "(unwind-protect (loop) (loop))"},
		{"nested cleanups", "(labels ((f () (unwind-protect (loop) (f)))) (f))"},
		{"catch and throw", "(loop (catch 'a (throw 'a 1)))"},
		{"throw from cleanup", "(block b (unwind-protect (loop) (return-from b 'escaped)))"},
		{"handlers for exhaustion", "(handler-bind ((condition (lambda (c) c (invoke-restart 'go-on)))) (restart-case (loop) (go-on () 'escaped)))"},
	} {
		t.Run(c.name, func(t *testing.T) {
			th := img.Thread(small)
			_, err := th.EvalString("jail", c.src)
			if !lisp.Exhausted(err) {
				t.Fatalf("want the budget to end it, got %v", err)
			}
			if _, err := th.EvalString("jail", "1"); err == nil {
				t.Error("the thread runs on after its budget was spent")
			}
		})
	}
}

func TestReaderBombsAreRefused(t *testing.T) {
	img := newImage(t)
	for name, src := range map[string]string{
		"open parentheses": strings.Repeat("(", 1_000_000),
		"quotes":           strings.Repeat("'", 1_000_000) + "a",
		"backquotes":       strings.Repeat("`", 100_000) + "a",
		"function quotes":  strings.Repeat("#'", 100_000) + "a",
		"vectors":          strings.Repeat("#(", 100_000),
		"vector size":      "#1000000(1)",
		"long list":        "'(" + strings.Repeat("a ", 1_000_000) + ")",
		"many symbols":     bigSymbols(300_000),
		"number of digits": strings.Repeat("9", 1_000_000),
		"library names":    strings.ReplaceAll(bigSymbols(300_000), "s", "sb-ext:s"),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := img.Thread(small).EvalString("bomb", src); err == nil {
				t.Fatal("want an error")
			}
		})
	}
}

func bigSymbols(n int) string {
	var b strings.Builder
	b.WriteString("'(")
	for i := range n {
		b.WriteString("s")
		for ; i > 0; i /= 10 {
			b.WriteByte(byte('0' + i%10))
		}
		b.WriteByte(' ')
	}
	return b.String() + ")"
}

// TestJailHasNoHostPowers tries what programs of other Lisps use to reach the
// world: every attempt is an error.
func TestJailHasNoHostPowers(t *testing.T) {
	img := newImage(t)
	for _, src := range []string{
		"(open \"/etc/passwd\")", "(with-open-file (s \"/etc/passwd\") (read-line s))", "(load \"x.lisp\")",
		"(delete-file \"x\")", "(directory \"/\")", "(ensure-directories-exist \"/tmp/x/\")", "(rename-file \"a\" \"b\")", "(compile-file \"x\")",
		"(uiop:run-program \"ls\")", "(uiop:launch-program \"ls\")", "(uiop:read-file-string \"/etc/passwd\")", "(uiop:quit)",
		"(random 10)", "(make-random-state t)", "(get-universal-time)", "(get-internal-real-time)", "(get-decoded-time)", "(sleep 1)",
		"(read-from-string \"#.(+ 1 2)\")", "(let ((*read-eval* t)) (read-from-string \"#.(+ 1 2)\"))", "(require :asdf)",
		"(sb-ext:run-program \"/bin/ls\" nil)", "(sb-posix:getpid)", "(read-from-string \"#S(foo)\")",
		"(defun car (x) x)", "(defmacro when (x) x)", "(setf (symbol-function 'cdr) #'car)", "(defconstant pi 3)", "(intern \"NEW\" :cl)", "(setq t 1)", "(setq pi 1)",
		"(read-line)", "(read)", "(disassemble 'car)", "(machine-instance)",
	} {
		if _, err := img.Thread(small).EvalString("", src); err == nil {
			t.Errorf("%s: want an error", src)
		}
	}
	for _, src := range []string{`(uiop:getenv "HOME")`, `(probe-file "/etc/passwd")`, `(uiop:file-exists-p #p"/etc/passwd")`, `(uiop:directory-exists-p "/etc")`} {
		if vals, err := img.Thread(small).EvalString("", src); err != nil || !lisp.IsNil(vals[0]) {
			t.Errorf("%s gave %v, %v: want NIL", src, vals, err)
		}
	}
}

// TestPatternsThatGrowAreRefused: a few characters can make a large program.
func TestPatternsThatGrowAreRefused(t *testing.T) {
	img := newImage(t)
	for _, src := range []string{
		`(apply #'concatenate 'string (make-list 100 :initial-element "x{1000}"))`,
		`(apply #'concatenate 'string (make-list 2000 :initial-element "(a?)"))`,
		`(make-string 20000 :initial-element #\a)`,
	} {
		_, err := img.Thread(small).EvalString("", "(cl-ppcre:scan "+src+" \"a\")")
		if err == nil || lisp.Exhausted(err) || !strings.Contains(err.Error(), "regular expression") {
			t.Errorf("%s: want it refused, got %v", src, err)
		}
	}
	if got := eval1(t, img.Thread(small), `(cl-ppcre:scan "^[a-z]{1,200}$" "abc")`); got != "0" {
		t.Errorf("a usual one gives %s", got)
	}
}

// TestALibraryThatIsNotHereIsAnErrorOfTheRun loads programs that name libraries in
// parts nobody runs.
func TestALibraryThatIsNotHereIsAnErrorOfTheRun(t *testing.T) {
	img := newImage(t)
	for _, src := range []string{
		"(defun f () (bt:make-thread (lambda () (sb-ext:quit))))", "(defun f () (bordeaux-threads:with-lock-held (l) 1))", "(defun f () (uiop:no-such-thing 1))",
		"(defun f () (uiop:with-output-file (s \"x\" :if-exists :supersede) (print 1 s)))", "(defun f () (with-open-file (s #p\"x\") (read s)))",
		"(defun f () (local-time:now))", "(defun f () #+sbcl (sb-thread:list-all-threads) #-sbcl (error \"none\"))", "(defun f () (asdf:load-system :x))",
		"(eval-when (:compile-toplevel :load-toplevel :execute) (defun f () (ql:quickload :x)))", "(declaim (optimize (speed 3))) (defun f () (json::anything))",
	} {
		th := img.Thread(small)
		if _, err := th.Load("f.lisp", []byte(src)); err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		if _, err := th.EvalString("", "(f)"); err == nil {
			t.Errorf("%s: calling it worked", src)
		}
		vals, err := th.EvalString("", "(handler-case (f) (error () :caught))")
		if err != nil || len(vals) != 1 {
			t.Errorf("%s: a program cannot handle it: %v", src, err)
		}
	}
	if _, err := img.Thread(small).EvalString("", "(nobody-knows-this:f)"); err == nil {
		t.Error("a name in an unknown package was read")
	}
	_, err := img.Thread(small).EvalString("", "(dex:get 1)")
	if err == nil || !strings.Contains(err.Error(), "not in the jail") {
		t.Errorf("got %v", err)
	}
}

// TestAHostMayGrantWhatTheLanguageRefuses puts a clock where there is none.
func TestAHostMayGrantWhatTheLanguageRefuses(t *testing.T) {
	clock := lisp.Builtin{Name: "cl:get-universal-time", Usage: "(get-universal-time)", Doc: "the time", Needs: 1, Fn: func(*lisp.Thread, []lisp.Value) (lisp.Value, error) { return lisp.Int(7), nil }}
	img, err := lisp.New([]lisp.Builtin{clock})
	if err != nil {
		t.Fatal(err)
	}
	th := img.Thread(small)
	if vals, err := th.EvalString("", "(get-universal-time)"); err != nil || vals[0] != lisp.Int(7) {
		t.Errorf("got %v, %v", vals, err)
	}
	th.Drop(1)
	if _, err := th.EvalString("", "(get-universal-time)"); err == nil {
		t.Error("the clock was read without the capability")
	}
	clock.Name = "cl:car"
	if _, err := lisp.New([]lisp.Builtin{clock}); err == nil {
		t.Error("a host took the name of a function that is there")
	}
}

func TestZeroBudgetPermitsNothing(t *testing.T) {
	img := newImage(t)
	for _, b := range []lisp.Budget{{}, {Steps: 1e6}, {Steps: 1e6, Cells: 1e6}, {Cells: 1e6, Depth: 100}, {Steps: 1e6, Depth: 100}} {
		if _, err := img.Thread(b).EvalString("", "(list 1 2)"); !lisp.Exhausted(err) {
			t.Errorf("%+v: want exhaustion, got %v", b, err)
		}
	}
	if _, err := img.Thread(lisp.Budget{Steps: 1e6, Cells: 1e6, Depth: 100}).EvalString("", "(princ 1)"); !lisp.Exhausted(err) {
		t.Errorf("printing without an output budget: want exhaustion, got %v", err)
	}
}

func TestMemoryIsBoundedAndReturned(t *testing.T) {
	img := newImage(t)
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 20 {
		th := img.Thread(lisp.Budget{Steps: 1e8, Cells: 500_000, Depth: 1000})
		if _, err := th.EvalString("", "(let ((l nil)) (loop (push (make-string 100) l)))"); !lisp.Exhausted(err) {
			t.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 32<<20 {
		t.Errorf("%d MB are still held after twenty exhausted threads", grown>>20)
	}
}
