;;; Evaluates the forms of a file in SBCL and prints one line for each: the
;;; list of its values, or the most specific standard type of its error.
;;; It is loaded by the tests, which then call (driver::main FILE).
(require :asdf)
(handler-bind ((warning #'muffle-warning))
  (let ((*standard-output* (make-broadcast-stream)) (*error-output* (make-broadcast-stream)))
    (asdf:load-system :cl-ppcre)))
(defpackage :driver (:use :cl))
(in-package :driver)
(defparameter *types*
  '(division-by-zero floating-point-overflow floating-point-underflow floating-point-invalid-operation
    arithmetic-error unbound-variable undefined-function unbound-slot cell-error
    end-of-file reader-error package-error parse-error stream-error type-error program-error control-error
    simple-error warning error condition))
(defun one-line (string)
  (with-output-to-string (s)
    (loop for c across string do
      (case c
        (#\Newline (write-string "\\n" s))
        (#\Return (write-string "\\r" s))
        (t (write-char c s))))))
(defun classify (c)
  (let ((user (type-of c)))
    (if (and (symbolp user) (eq (symbol-package user) (find-package :cl-user)))
        (symbol-name user)
        (symbol-name (find-if (lambda (type) (typep c type)) *types*)))))
(defun answer (form)
  (let ((out (make-broadcast-stream)))
    (handler-bind ((warning #'muffle-warning))
      (handler-case
          (let* ((values (let ((*standard-output* out) (*error-output* out) (*trace-output* out))
                           (multiple-value-list (eval form)))))
            (format nil "= ~a" (one-line (prin1-to-string values))))
        (sb-sys:interactive-interrupt () (sb-ext:exit :code 1))
        (sb-kernel::heap-exhausted-error () "! STORAGE-CONDITION")
        (sb-kernel::control-stack-exhausted () "! STORAGE-CONDITION")
        (error (c) (format nil "! ~a" (classify c)))))))
(defun main (file)
  (let ((*print-pretty* nil) (*package* (find-package :cl-user)) (*read-default-float-format* 'single-float)
        (stdout (sb-sys:make-fd-stream 1 :output t :external-format :utf-8 :buffering :full)))
    (with-open-file (s file :external-format :utf-8)
      (loop for form = (read s nil s)
            until (eq form s)
            do (write-line (answer form) stdout))
      (finish-output stdout))))
