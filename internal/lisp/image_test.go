package lisp_test

import (
	"sync"
	"testing"

	"passepartout/internal/lisp"
)

// TestNoThreadChangesTheImage runs programs that try, each in a thread of its own and
// many at once: all see the image as it was loaded, and with the race detector
// nothing of it is written.
func TestNoThreadChangesTheImage(t *testing.T) {
	th := newImage(t).Thread(small)
	if _, err := th.Load("image", []byte(`
(let ((n 0)) (defun counter () (incf n)) (defun look () n))
(defvar *adders* (let ((sum 10)) (list (lambda (x) (incf sum x)) (lambda () sum))))
(defvar *out* (make-string-output-stream))
(princ "loaded" *out*)
(defvar *in* (make-string-input-stream "abc"))
(defvar *list* (list 1 2 3))
(defun literal-list () '(1 2 3))
(defun literal-text () "abc")
(defun literal-vector () #(1 2 3))
(defun default (&optional (x '(1 2))) x)
(defmacro code () '(list 1 2))
(defstruct thing (a '(1 2)))
(defvar *thing* (make-thing))
(defclass gadget () ((s :initarg :s :initform (list 1) :accessor s)) (:default-initargs :s (load-time-value (list 7))))
(defmethod say ((x (eql 1))) "one")
(defun kernel (name form)
  (labels ((look (x) (cond ((and (symbolp x) (string= x name)) (return-from kernel x)) ((consp x) (look (car x)) (look (cdr x))))))
    (look form)))`)); err != nil {
		t.Fatal(err)
	}
	img, err := th.Freeze()
	if err != nil {
		t.Fatal(err)
	}
	for src, want := range map[string]string{
		`(list (counter) (counter) (look))`:                                                                                         "(1 2 2)",
		`(list (funcall (first *adders*) 5) (funcall (second *adders*)))`:                                                           "(15 15)",
		`(progn (princ "!" *out*) (get-output-stream-string *out*))`:                                                                `"loaded!"`,
		`(list (read-char *in*) (peek-char nil *in*))`:                                                                              `(#\a #\b)`,
		`(progn (close *in*) (open-stream-p *in*))`:                                                                                 "NIL",
		`(progn (fresh-line) (princ "text without an end") (fresh-line))`:                                                           "T",
		`(list (fresh-line) (princ 'x))`:                                                                                            "(NIL X)",
		`(progn (ignore-errors (setf (car (literal-list)) 9)) (literal-list))`:                                                      "(1 2 3)",
		`(progn (ignore-errors (setf (char (literal-text) 0) #\z)) (literal-text))`:                                                 `"abc"`,
		`(progn (setf (aref (literal-vector) 0) 9) (literal-vector))`:                                                               "#(9 2 3)",
		`(progn (ignore-errors (setf (car (default)) 9)) (default))`:                                                                "(1 2)",
		`(progn (ignore-errors (setf (second (macroexpand-1 '(code))) 9)) (code))`:                                                  "(1 2)",
		`(progn (ignore-errors (setf (car (thing-a (make-thing))) 9)) (thing-a (make-thing)))`:                                      "(1 2)",
		`(progn (setf (thing-a *thing*) 3) *thing*)`:                                                                                "#S(THING :A 3)",
		`(progn (ignore-errors (setf (car (s (make-instance 'gadget))) 9)) (s (make-instance 'gadget)))`:                            "(7)",
		`(progn (ignore-errors (funcall (kernel "TAIL-ADD" (macroexpand-1 '(loop for x in y collect x))) *list* 9)) *list*)`:        "(1 2 3)",
		`(progn (ignore-errors (funcall (kernel "TAIL-APPEND" (macroexpand-1 '(loop for x in y append x))) *list* '(9))) *list*)`:   "(1 2 3)",
		`(progn (ignore-errors (funcall (kernel "TAIL-NCONC" (macroexpand-1 '(loop for x in y nconc x))) *list* (list 9))) *list*)`: "(1 2 3)",
		`(progn (ignore-errors (funcall (kernel "SET-PRINTER" (macroexpand-1 '(defstruct (z (:print-object f)) x))) 'thing (lambda (o s) o (princ "mine" s)))) (make-thing))`: "#S(THING :A (1 2))",
	} {
		t.Run(src, func(t *testing.T) {
			var all sync.WaitGroup
			for i := range 4 {
				all.Go(func() {
					th := img.Thread(small)
					if i == 3 { // a new image is made of it meanwhile
						if _, err := th.Freeze(); err != nil {
							t.Error(err)
						}
						return
					}
					vals, err := th.EvalString("", src)
					if err != nil {
						t.Error(err)
						return
					}
					if got, err := th.Print(vals[0]); err != nil || got != want {
						t.Errorf("got %s, %v: want %s", got, err, want)
					}
				})
			}
			all.Wait()
		})
	}
}

// TestWhatALaterLoadChangesIsChanged: a thread that is frozen hands on its own
// versions of what it changed.
func TestWhatALaterLoadChangesIsChanged(t *testing.T) {
	th := newImage(t).Thread(small)
	for _, src := range []string{
		`(let ((n 0)) (defun counter () (incf n))) (defvar *out* (make-string-output-stream))`,
		`(counter) (counter) (princ "a" *out*)`,
		`(counter) (princ "b" *out*)`,
	} {
		if _, err := th.Load("", []byte(src)); err != nil {
			t.Fatal(err)
		}
		img, err := th.Freeze()
		if err != nil {
			t.Fatal(err)
		}
		th = img.Thread(small)
	}
	if got := eval1(t, th, `(list (counter) (get-output-stream-string *out*))`); got != `(4 "ab")` {
		t.Errorf("got %s", got)
	}
}

// TestAKeptMethodCallRunsInTheThreadThatCallsIt: a thread with more power made it, one
// with less calls it.
func TestAKeptMethodCallRunsInTheThreadThatCallsIt(t *testing.T) {
	img := newImage(t, lisp.Builtin{Name: "power", Usage: "(power)", Doc: "needs it", Needs: capWrite, Fn: func(*lisp.Thread, []lisp.Value) (lisp.Value, error) {
		return lisp.Int(1), nil
	}})
	th := img.Thread(small)
	if _, err := th.Load("", []byte(`
(defvar *kept* nil)
(defmethod m ((x integer)) (power))
(defmethod m :around ((x integer)) (setq *kept* #'call-next-method) (call-next-method))
(m 1)`)); err != nil {
		t.Fatal(err)
	}
	img, err := th.Freeze()
	if err != nil {
		t.Fatal(err)
	}
	weak := img.Thread(small)
	weak.Drop(capWrite)
	if vals, err := weak.EvalString("", "(funcall *kept*)"); err == nil {
		t.Errorf("got %v: want it refused", vals)
	}
}

// TestATypeThatIsItselfCostsDepth: it must not be Go's stack that ends it.
func TestATypeThatIsItselfCostsDepth(t *testing.T) {
	img := newImage(t)
	for _, src := range []string{"(typep 1 'a)", "(coerce '(1) 'a)", "(subtypep 'integer 'a)", "(concatenate 'a '(1))"} {
		th := img.Thread(lisp.Budget{Steps: 1e9, Cells: 1e9, Depth: 500})
		if _, err := th.EvalString("", "(deftype a () 'a) "+src); err == nil || err.Error() != (&lisp.ExhaustedError{What: "depth"}).Error() {
			t.Errorf("%s: got %v", src, err)
		}
	}
}
