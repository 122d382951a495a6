;;; Symbols, packages, the reader and the printer.
'a
'foo-bar
:key
'|a b|
'|Foo|
'|foo|
'foo\bar
'|a\|b|
'||
'|123|
'123abc
'1+
'+
'-
'...a
'a.b
'|a.b|
'|1.5|
'|1e5|
'|1/2|
'|+1|
'|.|
'|a:b|
'|a(b|
'|a;b|
'|a#b|
'|#a|
'|a'b|
'|A"B|
:|foo bar|
'cl:car
'cl-user::zot
'keyword::foo
nil
t
'nil
()
'()
''a
'#'car
'(a . b)
'(a b . c)
'(a . (b . (c . nil)))
'(quote a b)
'(quote)
'(1 2.5 "s" #\c :k nil t)
#(1 2 (3))
#()
'#(a b)
#*1010
#2A((1 2) (3 4))
#b1010
#o777
#xFF
#x-1f
#36rZZ
#x1/2
1/2
4/2
-3/6
+5
5.
-5.
"string"
""
(quote #:foo)
(symbol-name '#:foo)
(symbol-name :foo)
(symbol-name nil)
(symbol-package :foo)
(symbol-package 'car)
(symbol-package '#:x)
(symbol-package 'sym-here)
(symbol-name 5)
(symbolp 'a)
(symbolp nil)
(symbolp "a")
(keywordp :a)
(keywordp 'a)
(keywordp nil)
(eq 'abc 'ABC)
(eq '|abc| 'abc)
(eq :a :a)
(eq '#:a '#:a)
(intern "ZOT")
(intern "zot")
(multiple-value-bind (s st) (intern "CAR") (list s st))
(multiple-value-bind (s st) (intern "NEW-SYM-XYZ") (list s st))
(multiple-value-bind (s st) (intern "NEW-SYM-XYZ") (list s st))
(intern "ABC" :keyword)
(intern 5)
(find-symbol "CAR")
(find-symbol "NO-SUCH-SYM-Q")
(find-symbol "CAR" :cl)
(find-symbol "X" :no-such-package)
(package-name *package*)
(package-name (find-package :cl))
(package-name (find-package "CL-USER"))
(find-package :no-such)
(packagep (find-package :keyword))
(make-symbol "abc")
(make-symbol "ABC")
(eq (make-symbol "A") (make-symbol "A"))
(defpackage :my-pkg (:use :cl) (:export #:exported))
(in-package :my-pkg)
(package-name *package*)
'local-sym
'cl-user::other
(in-package :cl-user)
'my-pkg:exported
'my-pkg::hidden
(find-symbol "EXPORTED" :my-pkg)
(symbol-package 'my-pkg:exported)
(use-package :my-pkg)
'exported
(defun my-pkg::hf (x) (* x 2))
(my-pkg::hf 4)
(make-package "DYN-PKG" :use '(:cl))
(intern "DSYM" "DYN-PKG")
(export (intern "DSYM" "DYN-PKG") "DYN-PKG")
'dyn-pkg:dsym
(make-package "DYN-PKG")
(let ((n 0)) (do-symbols (s :dyn-pkg) (when (string= (symbol-name s) "DSYM") (incf n))) n)
(let ((l nil)) (do-external-symbols (s :dyn-pkg l) (push s l)))
(import 'my-pkg::imp-sym)
'imp-sym
(import 'my-pkg::imp-sym)
(let ((*print-case* :downcase)) (prin1-to-string 'foo-bar))
(let ((*print-case* :capitalize)) (prin1-to-string 'foo-bar))
(let ((*print-base* 2)) (prin1-to-string 10))
(let ((*print-base* 16) (*print-radix* t)) (prin1-to-string 255))
(let ((*print-radix* t)) (prin1-to-string 1/2))
(let ((*print-length* 2)) (prin1-to-string '(1 2 3)))
(let ((*print-level* 1)) (prin1-to-string '(1 (2))))
(let ((*print-escape* nil)) (write-to-string "a"))
(let ((*read-base* 16)) (read-from-string "ff"))
(let ((*read-default-float-format* 'double-float)) (read-from-string "1.5"))
(let ((*read-default-float-format* 'double-float)) (prin1-to-string 1.5))
(let ((*read-default-float-format* 'double-float)) (prin1-to-string 1.5d0))
(let ((*print-gensym* nil)) (prin1-to-string '#:a))
(prin1-to-string '(a "b" #\c 1.5))
(princ-to-string '(a "b" #\c 1.5))
(princ-to-string '|a b|)
(prin1-to-string '|a b|)
(prin1-to-string '(function car))
(prin1-to-string ''(1))
(prin1-to-string #(1 "a"))
(princ-to-string #(1 "a"))
(prin1-to-string nil)
(prin1-to-string '(nil))
(read-from-string "(a b . c)")
(read-from-string "(a . (b))")
(read-from-string "A:B:C")
(read-from-string "abc|DEF|ghi")
(read-from-string "\\a")
(read-from-string "#\\a")
(read-from-string "#\\Space")
(read-from-string "#\\newline")
(read-from-string "#\\foo")
(read-from-string "#+sbcl-no 1 2")
(read-from-string "#-sbcl-no 1")
(read-from-string "#+(or common-lisp foo) yes")
(read-from-string "#:foo")
(read-from-string "1e3")
(read-from-string "1d3")
(read-from-string "1.5e-3")
(read-from-string "-1.5")
(read-from-string "1.e3")
(read-from-string "+.5")
(read-from-string "1+")
(read-from-string "-")
(read-from-string "1/0")
(read-from-string "#xzz")
(read-from-string ",a")
(read-from-string ".")
(read-from-string "...")
(read-from-string "#(1 2 . 3)")
(read-from-string "a;comment")
(read-from-string "#|a|#b")
(read-from-string "#3(1 2)")
(read-from-string "'(a 'b)")
(read-from-string "foo::bar")
(read-from-string ":foo")
(read-from-string "::foo")
(equal (read-from-string (prin1-to-string '(1 "a\"b" #\Newline |x y| :k 1.5 2/3))) '(1 "a\"b" #\Newline |x y| :k 1.5 2/3))
(list 'a :b "c" #\d 1.0 2d0 3/4)
(list #\Tab #\Return #\Rubout #\Page #\Nul)
(string #\Tab)
(proclaim '(special *proc-var*))
(let ((*proc-var* 5)) (symbol-value '*proc-var*))
(progn (declaim (special *decl-var*)) t)
(let ((*decl-var* 6)) (symbol-value '*decl-var*))
(declaim (optimize (speed 3)))
(declaim (inline foo))
(defun car (x) x)
(defvar car 5)
(setf (symbol-function 'car) #'cdr)
(let ((list '(1 2))) (list list))
(let ((string "a") (length 5)) (list string length))
(flet ((my-list (x) (list x x))) (my-list 1))
(boundp 'pi)
(setq pi 3)
(defparameter *doc-var* 1 "the doc")
(documentation '*doc-var* 'variable)
(progn (makunbound '*doc-var*) (boundp '*doc-var*))
*doc-var*
(symbol-value 'pi)
(identity '|hello World|)
'|HELLO world|
'hello\ world
(copy-symbol 'a)
(string 'abc)
(string :abc)
(list '|a| '|B| 'c)
(list (quote "x") '5)
(macroexpand-1 '(my-undefined-macro 1))
