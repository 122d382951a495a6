package lisp_test

import (
	"strings"
	"testing"

	"passepartout/internal/lisp"
	"passepartout/internal/sexp"
)

// TestWhatTakesLongCostsMuch runs builtins on much data and looks at what they cost:
// each has work to do that grows with the data, so its price has to grow with it.
func TestWhatTakesLongCostsMuch(t *testing.T) {
	if testing.Short() {
		t.Skip("builtins on much data: run by make test")
	}
	images := map[string]*lisp.Image{}
	const text = `(defvar *a* (concatenate 'string (make-string 100000 :initial-element #\a) "b"))
(defvar *b* (copy-seq *a*))
(defvar *u* (concatenate 'string (make-string 50000 :initial-element #\é) "b"))
(defvar *s* (make-symbol *u*))`
	const numbers = `(defvar *a* (1+ (ash 1 800000)))
(defvar *b* (1+ (ash 1 800000)))
(defvar *r* (/ (1+ (ash 1 20000)) (ash 1 19999)))
(defvar *q* (/ (+ 3 (ash 1 20000)) (ash 1 19999)))
(defvar *minus* (- *a*))`
	const lists = `(defvar *l* (loop for i below 3000 collect i))
(defvar *v* (make-array 20000 :initial-element 7))
(defvar *w* (make-array 20000 :initial-element 8))
(defvar *h* (make-hash-table))
(dotimes (i 20000) (setf (gethash i *h*) i))
(defvar *bag* (map 'string #'code-char (loop for i from 1000 below 21000 collect i)))`
	const code = `(defvar *names* (loop repeat 2000 collect (gensym)))
(defvar *specs* (mapcar (lambda (n) (list n 1)) *names*))
(defvar *slots* (loop for i below 2000 collect (intern (format nil "S~d" i))))
(defclass c0 () ())
(dotimes (i 500) (eval (list 'defclass (intern (format nil "C~d" (1+ i))) (list (intern (format nil "C~d" i))) nil)))
(eval (list 'defclass 'wide () *slots*))
(defvar *wide* (make-instance 'wide))
(defvar *deep* (make-instance 'c500))
(eval (list 'defun 'keys (cons '&key *names*) 1))`
	for _, c := range []struct {
		setup, form string
		cost        uint64 // at least, in steps and cells
	}{
		{code, `(eval (list 'let *specs* 1))`, 120_000},
		{code, `(eval (list* 'let* *specs* (loop repeat 2000 collect (first *names*))))`, 240_000},
		{code, `(eval (list 'let* *specs* (list* 'lambda () *names*)))`, 120_000},
		{code, `(eval (list 'let () (list* 'declare (list (cons 'special *names*))) (list* 'let *specs* '(1))))`, 120_000},
		{code, `(eval (list 'lambda () (list* 'tagbody (loop for n in *names* append (list n (list 'go (first *names*)))))))`, 1_000_000},
		{code, `(eval (list 'defclass 'wider () *slots*))`, 250_000},
		{code, `(eval (list 'defclass 'deeper (list 'c500) ()))`, 500},
		{code, `(slot-exists-p *wide* 's1999)`, 100},
		{code, `(typep *deep* 'c0)`, 30},
		{code, `(apply #'keys :allow-other-keys t (make-list 4000 :initial-element :x))`, 100_000},
		{text, `(uiop:string-prefix-p *a* *b*)`, 3_000},
		{text, `(uiop:string-suffix-p *a* *b*)`, 3_000},
		{text, `(string= *a* *b* :start1 1 :start2 1)`, 3_000},
		{text, `(sxhash *a*)`, 3_000},
		{text, `(sxhash *s*)`, 3_000},
		{text, `(let ((h (make-hash-table :test 'equal))) (gethash *a* h))`, 3_000},
		{text, `(let ((h (make-hash-table :test 'equalp))) (gethash *a* h))`, 3_000},
		{text, `(string *s*)`, 3_000},
		{text, `(symbol-name *s*)`, 3_000},
		{text, `(read-from-string (make-string 100000 :initial-element #\Space) nil nil)`, 3_000},
		{text, `(parse-integer (make-string 100000 :initial-element #\Space) :junk-allowed t)`, 3_000},
		{text, `(cl-ppcre:scan "b" *u* :start 50000)`, 1_000},
		{numbers, `(ash *a* -1)`, 5_000},
		{numbers, `(= *a* *b*)`, 400},
		{numbers, `(< *a* *b*)`, 400},
		{numbers, `(eql *a* *b*)`, 300},
		{numbers, `(equal *a* *b*)`, 300},
		{numbers, `(member *a* (list *b*))`, 300},
		{numbers, `(logbitp 3 *minus*)`, 300},
		{numbers, `(integer-length *minus*)`, 300},
		{numbers, `(float *r*)`, 150},
		{numbers, `(< *r* *q*)`, 1_000},
		{numbers, `(floor *r*)`, 1_000},
		{numbers, `(sxhash *r*)`, 150},
		{numbers, `(let ((h (make-hash-table))) (gethash *a* h))`, 100_000},
		{lists, `(get-properties (mapcan #'list *l* *l*) (mapcar #'1- (mapcar #'- *l*)))`, 9_000_000},
		{lists, `(replace *v* *w*)`, 20_000},
		{lists, `(fill *v* 1)`, 20_000},
		{lists, `(reverse *v*)`, 20_000},
		{lists, `(block nil (maphash (lambda (k v) k v (return)) *h*))`, 1_000},
		{lists, `(string-trim *bag* (make-string 20000 :initial-element (char *bag* 19999)))`, 20_000},
	} {
		if images[c.setup] == nil {
			images[c.setup] = loadImage(t, c.setup)
		}
		th := images[c.setup].Thread(lisp.Budget{Steps: 1e9, Cells: 1e9, Depth: 2000, Output: 4096})
		before := th.Left()
		if _, err := th.EvalString("form", c.form); err != nil {
			t.Errorf("%s: %v", c.form, err)
		}
		after := th.Left()
		if paid := before.Steps - after.Steps + before.Cells - after.Cells; paid < c.cost {
			t.Errorf("%s cost %d: want at least %d", c.form, paid, c.cost)
		}
	}
}

// TestNoProgramMeetsAnInternalError tries what builtins once took on trust.
func TestNoProgramMeetsAnInternalError(t *testing.T) {
	img := newImage(t)
	for _, src := range []string{
		`(length (make-array 2 :fill-pointer 5))`, `(make-array 2 :element-type 'character :fill-pointer 5)`, `(make-array '(2 2) :fill-pointer 1)`,
		`(let ((v (make-array 2 :fill-pointer 0))) (length (adjust-array v 3 :fill-pointer 9)))`,
		`(let ((a (make-array '(3 3)))) (aref (adjust-array a '(2 2)) 1 1))`, `(let ((a (make-array 9))) (aref (adjust-array a '(2 2)) 1 1))`,
		`(setf (aref (copy-seq "abc")) #\x)`, `(parse-integer "0" :radix 1)`, `(parse-integer "12345678901234567890123" :radix 100)`,
		`(prin1-to-string (make-array 2 :element-type 'bit :initial-element 'x))`, `(prin1-to-string (substitute 'x 1 #*0110))`,
		`(let ((*print-base* 1)) (prin1-to-string 12))`, `(let ((*print-base* 99)) (prin1-to-string (expt 10 30)))`,
		`(let ((*read-base* 99)) (read-from-string "123456789012345678901234567890"))`,
		`(cl-ppcre:regex-replace "a" "a" '(9223372036854775807))`, `(cl-ppcre:regex-replace "a" "a" "\\{9223372036854775807}")`, `(cl-ppcre:regex-replace "a" "a" "\\{")`,
		`(unread-char #\a (make-string-input-stream ""))`,
	} {
		th := img.Thread(small)
		vals, err := th.EvalString("", src)
		if err == nil {
			_, err = th.Print(vals[0])
		}
		if err != nil && strings.Contains(err.Error(), "internal error") {
			t.Errorf("%s: %v", src, err)
		}
	}
}

// TestLongListsAreNoDeepOnes: only nesting costs depth.
func TestLongListsAreNoDeepOnes(t *testing.T) {
	img := newImage(t)
	for src, want := range map[string]string{
		`(length (subst 1 2 (make-list 10000 :initial-element 2)))`:                                       "10000",
		`(reduce #'+ (subst 1 2 (make-list 10000 :initial-element 2)))`:                                   "10000",
		`(tree-equal (make-list 10000) (make-list 10000))`:                                                "T",
		`(subst 'x '(3) '(1 2 3) :test #'equal)`:                                                          "(1 2 . X)",
		`(let ((l '(a (b c) . d))) (list (subst 1 'z l) (eq l (subst 1 'z l)) (subst 1 'd l)))`:           "((A (B C) . D) T (A (B C) . 1))",
		`(let* ((l (list 'a 'b 'c)) (m (subst 'x 'a l))) (list m (eq (cdr m) (cdr l))))`:                  "((X B C) T)",
		`(sublis '((a . 1) (c . 3)) '(a b (c . a)))`:                                                      "(1 B (3 . 1))",
		`(list (tree-equal '(1 (2) . 3) '(1 (2) . 3)) (tree-equal '(1 2) '(1 2 3)) (tree-equal '(1) '1))`: "(T NIL NIL)",
	} {
		if got := eval1(t, img.Thread(small), src); got != want {
			t.Errorf("%s is %s: want %s", src, got, want)
		}
	}
}

// TestWhatLeavesTheJailIsBounded gives out one long text many times.
func TestWhatLeavesTheJailIsBounded(t *testing.T) {
	img := newImage(t)
	for _, thing := range []string{`(make-string 100000)`, `(ash 1 30000)`, `(/ 1 (1+ (ash 1 10000)))`, `(make-symbol (make-string 100000))`} {
		for _, many := range []string{"(make-list 50000 :initial-element x)", "(make-array 50000 :initial-element x)"} {
			th := img.Thread(small)
			vals, err := th.EvalString("", "(let ((x "+thing+")) "+many+")")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := th.ToData(vals[0]); !lisp.Exhausted(err) {
				t.Errorf("%s of %s came out: want the budget to stop it, got %v", many, thing, err)
			}
		}
	}
}

// TestABuiltinCannotSwallowExhaustion has a host function that loses the error of
// what it called.
func TestABuiltinCannotSwallowExhaustion(t *testing.T) {
	img := newImage(t, lisp.Builtin{Name: "quietly", Usage: "(quietly f)", Doc: "calls f", Fn: func(th *lisp.Thread, a []lisp.Value) (lisp.Value, error) {
		_, _ = th.Apply(a[0])
		return lisp.Nil, nil
	}})
	_, err := img.Thread(small).EvalString("", "(defun f () (1+ (f))) (quietly #'f) 'escaped")
	if !lisp.Exhausted(err) {
		t.Errorf("got %v: want the budget to end it", err)
	}
}

// TestAHostWalksACircularListOnTheBudget uses what host functions use.
func TestAHostWalksACircularListOnTheBudget(t *testing.T) {
	img := newImage(t, lisp.Builtin{Name: "walk", Usage: "(walk l)", Doc: "walks l", Fn: func(th *lisp.Thread, a []lisp.Value) (lisp.Value, error) {
		for range th.Pairs(a[0]) {
		}
		return lisp.Nil, nil
	}})
	_, err := img.Thread(small).EvalString("", "(let ((l (list :a 1))) (setf (cddr l) l) (walk l))")
	if !lisp.Exhausted(err) {
		t.Errorf("got %v: want the budget to end it", err)
	}
}

// TestANumberThatLeavesTheJailCanBeReadAgain: it may be journaled.
func TestANumberThatLeavesTheJailCanBeReadAgain(t *testing.T) {
	img := newImage(t)
	for src, want := range map[string]bool{
		"(expt 10 9000)": true, "(/ (expt 10 4000) 7)": true, "(expt 10 10001)": false, "(/ (expt 10 6000) (1+ (expt 10 6000)))": false,
	} {
		th := img.Thread(small)
		vals, err := th.EvalString("", src)
		if err != nil {
			t.Fatal(err)
		}
		d, err := th.ToData(vals[0])
		if (err == nil) != want {
			t.Errorf("%s: %v", src, err)
			continue
		}
		if err == nil {
			if _, err := sexp.Read([]byte(sexp.Print(d)), sexp.Limits{}); err != nil {
				t.Errorf("%s: %v", src, err)
			}
		}
	}
}
