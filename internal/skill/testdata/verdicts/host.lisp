;;; The harness skills were written for, as far as verdicts need it, for SBCL. It is
;;; written from the names and habits of that harness alone and shares nothing with
;;; the prelude of our jail, so that the two can be compared. The tests load it and
;;; call (host::main DIRECTORY MEMORY QUESTIONS).
(require :asdf)
(handler-bind ((warning #'muffle-warning))
  (let ((*standard-output* (make-broadcast-stream)) (*error-output* (make-broadcast-stream)))
    (asdf:load-system :cl-ppcre)))

;;; Libraries that skills name and do not need for a verdict.
(defpackage :uuid (:use) (:export #:make-v4-uuid))
(defpackage :dexador (:use) (:nicknames :dex) (:export #:get #:post))
(defpackage :bordeaux-threads (:use) (:nicknames :bt) (:export #:make-thread #:make-lock #:thread-alive-p #:destroy-thread))
(defpackage :quicklisp (:use) (:nicknames :ql) (:export #:quickload))
(defpackage :cl-json (:use) (:nicknames :json) (:export #:encode-json-to-string #:decode-json-from-string))
(defpackage :fiveam (:use :cl) (:nicknames :5am) (:export #:test #:is #:def-suite #:in-suite #:fail #:signals))

(defpackage :passepartout
  (:use :cl)
  (:nicknames :opencortex :org-agent)
  (:export
   #:defskill #:def-cognitive-tool #:register-actuator #:register-probabilistic-backend #:register-pre-reason-handler
   #:harness-log #:kernel-log #:proto-get #:inject-stimulus #:stimulus-inject
   #:org-object #:make-org-object #:org-object-id #:org-object-type #:org-object-attributes #:org-object-content #:org-object-parent-id
   #:org-object-children #:org-object-version #:org-object-vector #:org-object-hash #:org-object-last-sync
   #:lookup-object #:list-objects-with-attribute #:*memory* #:*object-store* #:org-id-new #:snapshot-memory #:rollback-memory
   #:validate-communication-protocol-schema #:skill-name #:getenv
   #:*vault-memory* #:*provider-cascade* #:*probabilistic-backends* #:vault-get-secret #:vault-set-secret
   #:get-tool-permission #:set-tool-permission
   #:utils-lisp-validate #:utils-lisp-check-structural #:utils-lisp-check-syntactic #:utils-lisp-check-semantic #:utils-lisp-eval
   #:utils-lisp-format #:utils-lisp-list-definitions #:utils-lisp-structural-extract #:utils-lisp-structural-inject
   #:utils-lisp-structural-slurp #:utils-lisp-structural-wrap
   #:utils-org-read-file #:utils-org-write-file #:utils-org-generate-id #:utils-org-id-format #:utils-org-set-property
   #:utils-org-set-todo #:utils-org-add-headline #:utils-org-find-headline-by-id #:utils-org-find-headline-by-title
   #:utils-org-modify #:utils-org-ast-to-org))
(in-package :passepartout)

(defvar *registered* nil)
(defvar *log* nil)
(defvar *injected* nil)
(defvar *ids* 0)
(defvar *vault-memory* (make-hash-table :test 'equal))
(defvar *provider-cascade* nil)
(defvar *probabilistic-backends* (make-hash-table :test 'equal))
(defvar *memory* (make-hash-table :test 'equal))
(defvar *object-store* *memory*)

(defmacro defskill (name &key priority trigger probabilistic deterministic mandate dependencies capabilities system-prompt-augment neuro symbolic)
  (declare (ignore mandate dependencies capabilities system-prompt-augment))
  `(push (list :name ',name :priority ,priority :trigger ,trigger
               :probabilistic ,(or probabilistic neuro) :deterministic ,(or deterministic symbolic))
         *registered*))
(defmacro def-cognitive-tool (name description parameters &key guard body read-only)
  (declare (ignore description parameters guard read-only))
  `(progn ',name ,body))
(defun register-actuator (name function) (declare (ignore function)) name)
(defun register-probabilistic-backend (name function) (declare (ignore function)) name)
(defun register-pre-reason-handler (sensor function) (declare (ignore function)) sensor)
(defun harness-log (control &rest arguments) (push (apply #'format nil control arguments) *log*) nil)
(defun kernel-log (control &rest arguments) (apply #'harness-log control arguments))
(defun inject-stimulus (message &key stream) (declare (ignore stream)) (push message *injected*) nil)
(defun stimulus-inject (message) (inject-stimulus message))
(defun getenv (name) (declare (ignore name)) nil)
(defun snapshot-memory () nil)
(defun skill-name (skill) (getf skill :name))

(defun proto-get (plist key)
  (let ((name (string key)))
    (or (getf plist (intern (string-upcase name) :keyword))
        (getf plist (intern (string-downcase name) :keyword)))))
(defun validate-communication-protocol-schema (message)
  (unless (listp message) (error "Message must be a plist"))
  (let ((type (proto-get message :type)))
    (unless (member type '(:request :event :response :log :status))
      (error "Invalid message type '~a'" type)))
  t)

(defstruct org-object id type attributes content parent-id children vector (version 0) last-sync hash)
(defun lookup-object (id) (gethash id *memory*))
(defun list-objects-with-attribute (key value)
  (loop for object being the hash-values of *memory*
        when (equal (getf (org-object-attributes object) key) value) collect object))
(defun next-id () (format nil "00000000-0000-4000-8000-~12,'0x" (incf *ids*)))
(defun org-id-new () (next-id))
(defun uuid:make-v4-uuid () (next-id))

(defpackage :host (:use :cl))
(in-package :host)

;; One world for both: the same time, an empty environment, no programs and no files.
(sb-ext:without-package-locks
  (setf (fdefinition 'get-universal-time) (lambda () (+ 1700000000 2208988800)))
  (setf (fdefinition 'uiop:getenv) (lambda (name) (declare (ignore name)) nil))
  (setf (fdefinition 'uiop:run-program) (lambda (&rest arguments) (declare (ignore arguments)) (error "refused")))
  (setf (fdefinition 'uiop:file-exists-p) (lambda (name) (declare (ignore name)) nil))
  (setf (fdefinition 'uiop:read-file-string) (lambda (&rest arguments) (declare (ignore arguments)) (error "refused")))
  (setf (fdefinition 'asdf:system-source-directory) (lambda (name) (declare (ignore name)) nil))
  (setf (fdefinition 'ensure-directories-exist) (lambda (&rest arguments) (declare (ignore arguments)) (error "refused")))
  (setf (fdefinition 'open) (lambda (&rest arguments) (declare (ignore arguments)) (error "refused"))))

(defun lines-of (file)
  (with-open-stream (s (sb-impl::make-fd-stream (sb-unix:unix-open (namestring file) 0 0) :external-format :utf-8 :buffering :full :input t))
    (loop for line = (read-line s nil) while line collect line)))

(defun code-of (file)
  "The text of the blocks of an Org file that are code: cut at the lines of the blocks, without tests."
  (with-output-to-string (out)
    (let ((in nil) (take nil))
      (dolist (line (lines-of file))
        (let ((clean (string-trim '(#\Space #\Tab #\Return) line)))
          (cond ((uiop:string-prefix-p "#+begin_src lisp" clean)
                 (let ((tangle (search ":tangle" clean)))
                   (setf in t take (not (and tangle (or (search "test" clean :start2 tangle) (search " no" clean :start2 tangle)))))))
                ((uiop:string-prefix-p "#+end_src" clean) (setf in nil))
                ((and in take)
                 (write-line (if (uiop:string-prefix-p ",#+" clean) (remove #\, line :count 1) line) out))))))))

(defun short-name (file)
  (let ((name (string-upcase (pathname-name file))))
    (if (uiop:string-prefix-p "ORG-SKILL-" name) (subseq name 10) name)))

(defun load-skill (file)
  "Evaluates a file in a package of its own, and shows the names that begin with the skill's to all."
  (let* ((short (short-name file))
         (package (make-package (concatenate 'string "OPENCORTEX.SKILLS.ORG-SKILL-" short) :use '(:cl :opencortex)))
         (passepartout::*registered* nil))
    (let ((*package* package) (*read-eval* nil) (*standard-output* (make-broadcast-stream)) (*error-output* (make-broadcast-stream)))
      (handler-bind ((warning #'muffle-warning))
        (eval (read-from-string (format nil "(progn ~a)" (code-of file))))))
    (do-symbols (s package)
      (when (and (eq (symbol-package s) package) (uiop:string-prefix-p short (symbol-name s)))
        (let ((old (find-symbol (symbol-name s) :opencortex)))
          (when (and old (not (eq old s))) (unintern old :opencortex)))
        (import s :opencortex)
        (export s :opencortex)))
    (list (string-downcase short) package (first passepartout::*registered*))))

(defparameter *types*
  '(division-by-zero arithmetic-error unbound-variable undefined-function cell-error end-of-file reader-error package-error parse-error
    stream-error type-error program-error control-error simple-error error))

(defun shown (value)
  (with-output-to-string (out)
    (loop for c across (prin1-to-string value)
          do (case c (#\Newline (write-string "\\n" out)) (#\Return (write-string "\\r" out)) (t (write-char c out))))))

(defun fresh (memory)
  "A copy, because some skills change what they find."
  (let ((copy (make-hash-table :test 'equal)))
    (maphash (lambda (id object)
               (setf object (passepartout::copy-org-object object)
                     (passepartout:org-object-attributes object) (copy-tree (passepartout:org-object-attributes object))
                     (gethash id copy) object))
             memory)
    copy))

(defun variables-of (package)
  "The skill's own variables: what is assigned to them lasts for one question."
  (loop for s being the present-symbols of package
        when (and (eq (symbol-package s) package) (boundp s) (not (constantp s))) collect s))

(defun answer (skill code)
  "What the code comes to in the skill's package: its values, what was injected on the way, or the type of its error."
  (destructuring-bind (name package registered) skill
    (declare (ignore name))
    (let ((*package* package) (passepartout::*injected* nil) (passepartout::*log* nil) (passepartout::*ids* 0)
          (passepartout::*registered* (list registered)) (*read-eval* nil)
          (passepartout:*vault-memory* (make-hash-table :test 'equal))
          (passepartout:*memory* (fresh passepartout:*memory*)))
      (handler-bind ((warning #'muffle-warning))
        (handler-case
            (let ((values (let ((*standard-output* (make-broadcast-stream)) (*error-output* (make-broadcast-stream))
                                (variables (variables-of package)))
                            (progv variables (mapcar #'symbol-value variables)
                              (multiple-value-list (eval (read-from-string code)))))))
              (format nil "= ~a~@[ & ~a~]" (shown values) (and passepartout::*injected* (shown (reverse passepartout::*injected*)))))
          (error (c) (format nil "! ~a" (find-if (lambda (type) (typep c type)) *types*))))))))

(defun passepartout::ask-gate (action context)
  (let ((gate (getf (first passepartout::*registered*) :deterministic)))
    (if gate (funcall gate action context) :no-gate)))

(defun passepartout::ask-trigger (context)
  (let ((trigger (getf (first passepartout::*registered*) :trigger)))
    (if trigger (and (funcall trigger context) t) :no-trigger)))

(defun remember (file)
  (dolist (line (lines-of file))
    (unless (uiop:string-prefix-p ";" line)
      (let ((object (apply #'passepartout:make-org-object (read-from-string line))))
        (setf (gethash (passepartout:org-object-id object) passepartout:*memory*) object)))))

(defun main (directory memory questions)
  "Answers each line of questions, NAME and then a form, with one line."
  (remember memory)
  (let* ((*print-pretty* nil)
         (out (sb-sys:make-fd-stream 1 :output t :external-format :utf-8 :buffering :full))
         (skills (mapcar #'load-skill (sort (directory (concatenate 'string directory "/*.org")) #'string< :key #'namestring))))
    (dolist (line (lines-of questions))
      (let* ((line (substitute #\Newline (code-char #x23CE) line))
             (cut (position #\Space line))
             (skill (or (assoc (subseq line 0 cut) skills :test #'string=) (error "no skill for ~a" line))))
        (write-line (answer skill (subseq line (1+ cut))) out)))
    (finish-output out)))
