package lisp_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"passepartout/internal/lisp"
	"passepartout/internal/sexp"
)

const capWrite lisp.Caps = 1

func eval1(t *testing.T, th *lisp.Thread, src string) string {
	t.Helper()
	vals, err := th.EvalString("test", src)
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	if len(vals) == 0 {
		return ""
	}
	s, err := th.Print(vals[0])
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestBuiltinsAreThoseOfTheGolden makes a new power a visible diff.
func TestBuiltinsAreThoseOfTheGolden(t *testing.T) {
	var b strings.Builder
	for _, x := range newImage(t).Builtins() {
		if x.Doc == "" || x.Usage == "" {
			t.Errorf("%s has no doc or usage", x.Name)
		}
		fmt.Fprintf(&b, "%s\n\t%s\n", x.Usage, x.Doc)
	}
	golden := filepath.Join("testdata", "builtins.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Error("the table of builtins has changed: review it and run with -update")
	}
}

func TestHostFunctionGetsOneArgumentForEachName(t *testing.T) {
	var got []lisp.Value
	img := newImage(t,
		lisp.Builtin{Name: "host:probe", Usage: "(probe a &optional b &key c d)", Doc: "test", Fn: func(_ *lisp.Thread, a []lisp.Value) (lisp.Value, error) {
			got = append([]lisp.Value(nil), a...)
			return lisp.String("seen"), nil
		}},
		lisp.Builtin{Name: "host:fails", Usage: "(fails)", Doc: "test", Fn: func(*lisp.Thread, []lisp.Value) (lisp.Value, error) {
			return nil, errors.New("no such thing")
		}})
	th := img.Thread(generous)
	if s := eval1(t, th, `(host:probe 1 2 :d 4)`); s != `"seen"` {
		t.Errorf("got %s", s)
	}
	if len(got) != 4 || got[2] != nil || got[3] != lisp.Value(lisp.Int(4)) {
		t.Errorf("arguments %v: want 1 2 nil 4", got)
	}
	if s := eval1(t, th, `(handler-case (host:fails) (error (c) (princ-to-string c)))`); s != `"no such thing"` {
		t.Errorf("an error of the host reads %s", s)
	}
	if _, err := th.EvalString("", `(host:probe)`); err == nil {
		t.Error("too few arguments: want an error")
	}
}

func TestBuiltinsAreDeclaredWholeAndOnce(t *testing.T) {
	ok := func(*lisp.Thread, []lisp.Value) (lisp.Value, error) { return nil, nil }
	for name, b := range map[string]lisp.Builtin{
		"no function":    {Name: "h:f", Usage: "(f)", Doc: "d"},
		"no doc":         {Name: "h:f", Usage: "(f)", Fn: ok},
		"a taken name":   {Name: "car", Usage: "(car x)", Doc: "d", Fn: ok},
		"a bad usage":    {Name: "h:f", Usage: "(f &whole x)", Doc: "d", Fn: ok},
		"a special form": {Name: "if", Usage: "(if x)", Doc: "d", Fn: ok},
		"no name":        {Usage: "(f)", Doc: "d", Fn: ok},
		"an empty usage": {Name: "h:f", Usage: "()", Doc: "d", Fn: ok},
	} {
		if _, err := lisp.New([]lisp.Builtin{b}); err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
}

func TestDroppedPowersDoNotComeBack(t *testing.T) {
	img := newImage(t, lisp.Builtin{
		Name: "host:write", Usage: "(write text)", Doc: "test", Needs: capWrite,
		Fn: func(*lisp.Thread, []lisp.Value) (lisp.Value, error) { return lisp.String("written"), nil },
	})
	th := img.Thread(generous)
	eval1(t, th, `(host:write "x")`)
	th.Drop(capWrite)
	for _, src := range []string{`(host:write "x")`, `(funcall 'host:write "x")`, `(apply #'host:write '("x"))`, `(mapcar #'host:write '("x"))`, `(eval '(host:write "x"))`} {
		if _, err := th.EvalString("", src); err == nil {
			t.Errorf("%s: want it refused", src)
		}
	}
}

func loadImage(t *testing.T, src string) *lisp.Image {
	t.Helper()
	th := newImage(t).Thread(generous)
	if _, err := th.Load("skill.lisp", []byte(src)); err != nil {
		t.Fatal(err)
	}
	img, err := th.Freeze()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := th.EvalString("", "1"); err == nil {
		t.Error("a frozen thread still runs")
	}
	return img
}

const stateful = `
(defvar *count* 0)
(defvar *table* (make-hash-table :test 'equal))
(setf (gethash "a" *table*) 1)
(defstruct box v)
(defvar *box* (make-box :v 1))
(defvar *vec* (vector 1 2 3))
(defvar *list* (list 1 2 3))
(defvar *plist* (list :a 1))
(defun bump () (incf *count*))
(defun counter () (let ((n 0)) (lambda () (incf n))))
`

func TestWhatAThreadChangesStaysInTheThread(t *testing.T) {
	img := loadImage(t, stateful)
	for range 2 {
		th := img.Thread(generous)
		for _, c := range [][2]string{
			{"(bump)", "1"},
			{"(bump)", "2"},
			{`(setf (gethash "b" *table*) 2)`, "2"},
			{"(hash-table-count *table*)", "2"},
			{`(remhash "a" *table*)`, "T"},
			{`(gethash "a" *table*)`, "NIL"},
			{"(setf (box-v *box*) 9)", "9"},
			{"(box-v *box*)", "9"},
			{"(setf (aref *vec* 0) 'x)", "X"},
			{"*vec*", "#(X 2 3)"},
			{"(push 0 *list*)", "(0 1 2 3)"},
			{"(setf (getf *plist* :a) 5)", "5"},
			{"*plist*", "(:A 5)"},
			{"(defun bump () 'redefined)", "BUMP"},
			{"(bump)", "REDEFINED"},
			{"(intern \"FRESH\")", "FRESH"},
			{"(let ((*count* 50)) *count*)", "50"},
		} {
			if got := eval1(t, th, c[0]); got != c[1] {
				t.Errorf("%s gave %s, want %s", c[0], got, c[1])
			}
		}
	}
}

func TestALaterLoadMayChangeWhatAnEarlierOneMade(t *testing.T) {
	img := loadImage(t, stateful)
	for i, src := range []string{`(setf (gethash "b" *table*) 2 (box-v *box*) 5)`, `(setf (gethash "c" *table*) 3) (setf (aref *vec* 1) 'y)`} {
		th := img.Thread(generous)
		if _, err := th.Load("later.lisp", []byte(src)); err != nil {
			t.Fatal(i, err)
		}
		next, err := th.Freeze()
		if err != nil {
			t.Fatal(err)
		}
		if got := eval1(t, img.Thread(generous), "(hash-table-count *table*)"); got != fmt.Sprint(i+1) {
			t.Errorf("the older image has %s keys, want %d", got, i+1)
		}
		img = next
	}
	th := img.Thread(generous)
	if got := eval1(t, th, "(list (hash-table-count *table*) (box-v *box*) *vec*)"); got != "(3 5 #(1 Y 3))" {
		t.Errorf("after two loads: %s", got)
	}
	eval1(t, th, `(setf (gethash "d" *table*) 4)`)
	if got := eval1(t, th, "(hash-table-count *table*)"); got != "4" {
		t.Errorf("a thread's own change is lost: %s keys", got)
	}
	if got := eval1(t, img.Thread(generous), "(hash-table-count *table*)"); got != "3" {
		t.Errorf("a thread's change leaked: %s keys", got)
	}
}

func TestSharedConsesAndStringsCannotBeChanged(t *testing.T) {
	img := loadImage(t, stateful+`(defvar *name* (copy-seq "abc"))`)
	for _, src := range []string{"(setf (car *list*) 9)", "(rplacd *list* nil)", "(nconc *list* (list 4))", "(setf (char *name* 0) #\\x)"} {
		if _, err := img.Thread(generous).EvalString("", src); err == nil {
			t.Errorf("%s: want an error", src)
		}
	}
}

func TestManyThreadsRunOverOneImage(t *testing.T) {
	img := loadImage(t, stateful+`
(defun work (n)
  (dotimes (i n) (bump) (setf (gethash i *table*) (cl-ppcre:regex-replace-all "[aeiou]" "education" "*")) (intern (format nil "S~a" i)))
  (list *count* (hash-table-count *table*)))`)
	var wg sync.WaitGroup
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			th := img.Thread(generous)
			v, err := th.Call("work", lisp.Int(50))
			if err != nil {
				t.Error(err)
				return
			}
			if s, _ := th.Print(v); s != "(50 51)" {
				t.Errorf("got %s, want (50 51)", s)
			}
		}()
	}
	wg.Wait()
}

func TestRunsAreDeterministic(t *testing.T) {
	img := newImage(t)
	src := `(let ((h (make-hash-table :test 'equal)))
  (dotimes (i 200) (setf (gethash (format nil "k~a" (mod (* i 7919) 211)) h) i))
  (loop for k being the hash-keys of h using (hash-value v) collect (list k v (gensym))))`
	var first string
	var left lisp.Budget
	for i := range 3 {
		th := img.Thread(generous)
		s := eval1(t, th, src)
		if i == 0 {
			first, left = s, th.Left()
		}
		if s != first || th.Left() != left {
			t.Fatal("two runs of the same program differ in result or cost")
		}
	}
}

func TestErrorsSayFileAndLine(t *testing.T) {
	th := newImage(t).Thread(generous)
	_, err := th.Load("skills/gate.lisp", []byte("(defun f (x)\n  (car x))\n\n(f\n  5)\n"))
	var c *lisp.ConditionError
	if !errors.As(err, &c) || c.Type != "TYPE-ERROR" || c.File != "skills/gate.lisp" || c.Line != 4 {
		t.Errorf("got %v (%+v), want a type-error at skills/gate.lisp:4", err, c)
	}
	_, err = th.Load("a.lisp", []byte("(list 1\n  2"))
	var s *sexp.SyntaxError
	if !errors.As(err, &s) || !s.Incomplete || s.File != "a.lisp" {
		t.Errorf("got %v, want an incomplete form in a.lisp", err)
	}
	_, err = th.Load("a.lisp", []byte("(list 1))\n"))
	if !errors.As(err, &s) || s.Incomplete || s.Line != 1 {
		t.Errorf("got %v, want an unmatched parenthesis on line 1", err)
	}
}

func TestDataGoesInAndOut(t *testing.T) {
	th := newImage(t).Thread(generous)
	const text = `(:A 1 :B "x" :C (1/2 FOO #\c (1 . 2)) :D #(1 2) :E 123456789012345678901234567890)`
	v, err := sexp.Read([]byte(text), sexp.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	x, err := th.FromData(v)
	if err != nil {
		t.Fatal(err)
	}
	back, err := th.ToData(x)
	if err != nil {
		t.Fatal(err)
	}
	if !sexp.Equal(v, back) {
		t.Errorf("%s came back as %s", v, back)
	}
	if got, err := th.Apply(mustEval(t, th, "(lambda (p) (getf p :b))"), x); err != nil || got == nil {
		t.Errorf("calling with data: %v, %v", got, err)
	}
	for _, src := range []string{"#'car", "(make-hash-table)", "(list 1 #'car)"} {
		if _, err := th.ToData(mustEval(t, th, src)); err == nil {
			t.Errorf("%s as data: want an error", src)
		}
	}
}

func mustEval(t *testing.T, th *lisp.Thread, src string) lisp.Value {
	t.Helper()
	vals, err := th.EvalString("", src)
	if err != nil {
		t.Fatal(err)
	}
	return vals[0]
}

func TestOutputIsCollected(t *testing.T) {
	th := newImage(t).Thread(generous)
	mustEval(t, th, `(progn (format t "a~%") (princ 'b) (print "c"))`)
	if got := th.Output(); got != "a\nB\n\"c\" " {
		t.Errorf("output %q", got)
	}
}

func TestAThreadCanBeRenewedByItsHost(t *testing.T) {
	th := newImage(t).Thread(small)
	mustEval(t, th, "(defvar *kept* 7)")
	if _, err := th.EvalString("", "(loop)"); !lisp.Exhausted(err) {
		t.Fatal(err)
	}
	th.Renew(small)
	if got := eval1(t, th, "*kept*"); got != "7" {
		t.Errorf("after renewal *kept* is %s", got)
	}
}

func TestDocAndAproposFindNames(t *testing.T) {
	th := newImage(t).Thread(generous)
	if d := th.Doc("mapcar"); !strings.Contains(d, "(mapcar function list &rest more)") {
		t.Errorf("doc of mapcar: %q", d)
	}
	if d := th.Doc("when"); d == "" {
		t.Error("when has no doc")
	}
	found := th.Apropos("regex-rep")
	if len(found) < 2 || !strings.Contains(strings.Join(found, " "), "cl-ppcre:regex-replace-all") {
		t.Errorf("apropos: %v", found)
	}
}

func TestRegexesThatNeedBacktrackingAreRefused(t *testing.T) {
	th := newImage(t).Thread(generous)
	for _, re := range []string{`a(?=b)`, `a(?!b)`, `(?<=a)b`, `(?<!a)b`, `(a)\\1`, `(?>a)`} {
		_, err := th.EvalString("", `(cl-ppcre:scan "`+re+`" "ab")`)
		if err == nil || !strings.Contains(err.Error(), "not supported") {
			t.Errorf("%s: got %v, want it named as not supported", re, err)
		}
	}
}
