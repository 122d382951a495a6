;;; What a skill finds besides the language. It is loaded once, into the image all
;;; jails start from. Everything here is written in the jailed language itself, so
;;; it can do nothing a skill could not.

(defpackage :passepartout
  (:use :cl)
  (:nicknames :opencortex :org-agent)
  (:export
   #:defskill #:def-cognitive-tool #:register-actuator #:register-probabilistic-backend
   #:register-pre-reason-handler #:harness-log #:proto-get #:inject-stimulus #:stimulus-inject
   #:org-object #:make-org-object #:org-object-id #:org-object-type #:org-object-attributes #:org-object-content
   #:org-object-parent-id #:org-object-children
   #:lookup-object #:list-objects-with-attribute #:unix-time
   #:reject #:require-approval #:action-args #:action-arg
   #:deftest #:is #:signals
   #:with-open-file #:merge-pathnames #:namestring))

(in-package :passepartout)

;;; Registration. One jail holds one skill and what it depends on; the host empties
;;; these before it loads the skill's own file.

(defvar *registered* nil "what defskill said, newest first")
(defvar *tools* nil "what def-cognitive-tool said, newest first")
(defvar *handlers* nil "(sensor . function), newest first")
(defvar *tests* nil "(name . function), newest first")

(defmacro defskill (name &rest fields &key priority trigger probabilistic deterministic mandate
                                        dependencies capabilities system-prompt-augment)
  "Says what the skill of this file does; see docs/skills.md."
  (declare (ignore priority trigger probabilistic deterministic mandate dependencies capabilities system-prompt-augment))
  `(push (list :name ',name ,@fields) *registered*))

(defmacro def-cognitive-tool (name description parameters &key guard body read-only)
  "Declares a tool. Parameters are (NAME :type TYPE :description TEXT :required T)."
  `(push (list :name ',name :description ,description :parameters ',parameters
               :guard ,guard :body ,body :read-only ,read-only)
         *tools*))

(defun register-pre-reason-handler (sensor function)
  "Claims the signals of a sensor before any model sees them."
  (push (cons sensor function) *handlers*)
  sensor)

(defun harness-log (control &rest arguments)
  "Writes a line to the skill's log."
  (format t "~&~?~%" control arguments)
  nil)

(defun register-actuator (name function)
  "Accepted and never used: actuators are compiled in, and run on a permit only."
  (declare (ignore function))
  (harness-log "register-actuator ~a: skills propose actions, they carry none out" name)
  name)

(defun register-probabilistic-backend (name function)
  "Accepted and never used: models are compiled in."
  (declare (ignore function))
  (harness-log "register-probabilistic-backend ~a: skills cannot add models" name)
  name)

(defun inject-stimulus (message &key stream)
  "Accepted and not submitted: a skill speaks through its tools and its gate."
  (declare (ignore stream))
  (harness-log "inject-stimulus: not submitted: ~s" message)
  nil)

(defun stimulus-inject (message) (inject-stimulus message))

;;; Messages.

(defparameter *words*
  '(:type :meta :payload :depth :target :request :event :response :log :status :source :session-id :role :sensor
    :action :tool :args :explanation :text :path :cmd :content :query :url :id :title :message :run
    :user-input :chat-message :tool-output :heartbeat :owner :guest :peer :job :cli :tui :emacs :shell :system
    :level :approval-required :warn :error)
  "Names of nearly every message: known to the image, they need not be made for each.")

(defun proto-get (plist key)
  "The value of a key that is a keyword, or is written as a string or a plain symbol in any case."
  (when (consp plist)
    (let ((value (getf plist key 'absent)))
      (if (not (eq value 'absent))
          value
          (loop for rest on plist by #'cddr
                unless (keywordp (car rest))
                  do (when (and (or (symbolp (car rest)) (stringp (car rest))) (string-equal (car rest) key))
                       (return (cadr rest))))))))

(defun action-args (action)
  "The arguments of an action, as a property list."
  (getf (getf action :payload) :args))

(defun action-arg (action key)
  "One argument of an action."
  (getf (action-args action) key))

(defun reject (control &rest arguments)
  "The verdict that refuses an action, with the reason."
  (list :type :log :payload (list :level :warn :text (format nil "~?" control arguments))))

(defun require-approval (action control &rest arguments)
  "The verdict that leaves an action to a person, with the reason."
  (list :type :event
        :payload (list :sensor :approval-required :level :approval-required :action action
                       :text (format nil "~?" control arguments))))

;;; The memex, with the capability :memory.

(defstruct org-object id type attributes content parent-id children)

(defun lookup-object (id)
  "The heading or file of that id, or NIL. Needs the capability :memory."
  (let ((found (passepartout-host:lookup-object id)))
    (and found (apply #'make-org-object found))))

(defun list-objects-with-attribute (key value)
  "The headings whose attribute has that value. Needs the capability :memory."
  (mapcar (lambda (found) (apply #'make-org-object found))
          (passepartout-host:objects-with-attribute (string key) (princ-to-string value))))

(defun unix-time ()
  "Seconds since 1970. Needs the capability :clock."
  (passepartout-host:unix-time))

;;; A skill's own tests.

(defmacro deftest (name &body body)
  "A test: it fails when its body signals an error."
  (let ((body (if (stringp (car body)) (cdr body) body))
        (name (if (consp name) (car name) name)))
    `(push (cons ',name (lambda () ,@body)) *tests*)))

(defmacro is (form &optional (control "~s does not hold") &rest arguments)
  "Fails the test when form is false, and shows what its arguments were."
  (declare (ignore control arguments))
  (if (and (consp form) (symbolp (car form)) (fboundp (car form))
           (not (macro-function (car form))) (not (special-operator-p (car form))))
      (let ((values (gensym)))
        `(let ((,values (list ,@(cdr form))))
           (unless (apply #',(car form) ,values)
             (error "~s does not hold for ~{~s~^, ~}" ',form ,values))
           t))
      `(or ,form (error "~s does not hold" ',form))))

(defmacro signals (condition &body body)
  "Fails the test unless body signals a condition of that type."
  `(handler-case (progn ,@body (error 'no-signal :wanted ',condition))
     (no-signal (c) (error c))
     (,condition () t)))

(define-condition no-signal (error)
  ((wanted :initarg :wanted :reader no-signal-wanted))
  (:report (lambda (c s) (format s "no ~s was signalled" (no-signal-wanted c)))))

(defpackage :fiveam
  (:use :cl)
  (:nicknames :5am)
  (:import-from :passepartout #:is #:signals)
  (:export #:test #:is #:signals #:is-true #:is-false #:finishes #:fail #:def-suite #:in-suite))

(defmacro fiveam:test (name &body body) `(deftest ,name ,@body))
(defmacro fiveam:is-true (form) `(is ,form))
(defmacro fiveam:is-false (form) `(is (not ,form)))
(defmacro fiveam:finishes (&body body) `(progn ,@body t))
(defmacro fiveam:def-suite (name &rest options) (declare (ignore options)) `',name)
(defmacro fiveam:in-suite (name) `',name)
(defun fiveam:fail (control &rest arguments) (error "~?" control arguments))

;;; Libraries that older skills name. Their symbols must exist for the file to be
;;; read; calling one says why it is not there.

(defmacro define-refusals (package &rest names)
  `(progn
     (defpackage ,package (:use) (:export ,@(mapcar #'symbol-name names)))
     ,@(loop for name in names
             for symbol = (intern (symbol-name name) :keyword)
             collect `(setf (symbol-function (intern ,(symbol-name symbol) ',package))
                            (lambda (&rest ignored)
                              (declare (ignore ignored))
                              (error "~(~a:~a~) is refused in the jail: skills have no threads, network or files"
                                     ',package ',symbol))))))

(define-refusals :bt #:make-thread #:thread-alive-p #:destroy-thread #:make-lock #:current-thread)
(define-refusals :dex #:get #:post)
(define-refusals :uuid #:make-v4-uuid)
(define-refusals :cl-json #:decode-json-from-string #:encode-json-to-string)

(defmacro with-open-file ((stream path &rest options) &body body)
  (declare (ignore stream options body))
  `(error "with-open-file ~a is refused in the jail: skills have no files" ,path))

(defun namestring (path) (princ-to-string path))

(defun merge-pathnames (path &optional (base ""))
  (if (and (plusp (length path)) (char= (char path 0) #\/))
      path
      (concatenate 'string base path)))

;;; What the host asks a jail after it has loaded a skill.

(defun plain-name (name)
  (let ((text (string-downcase (princ-to-string name))))
    (if (uiop:string-prefix-p ":" text) (subseq text 1) text)))

(defun describe-parameter (parameter)
  (destructuring-bind (name &key (type :string) (description "") required &allow-other-keys)
      (if (consp parameter) parameter (list parameter))
    (list :name (string-upcase (plain-name name)) :type (plain-name type) :doc (princ-to-string description)
          :required (and required t))))

(defun describe-tool (tool)
  (list :name (plain-name (getf tool :name)) :doc (princ-to-string (getf tool :description))
        :parameters (mapcar #'describe-parameter (getf tool :parameters))))

(defun describe-skill ()
  "What was registered, as data."
  (let ((skill (first *registered*)))
    (list :registered (length *registered*)
          :priority (or (getf skill :priority) 10)
          :mandate (let ((m (getf skill :mandate))) (cond ((stringp m) m) (m :function)))
          :gate (and (getf skill :deterministic) t)
          :trigger (and (getf skill :trigger) t)
          :prompt (and (getf skill :probabilistic) t)
          :dependencies (mapcar #'plain-name (getf skill :dependencies))
          :capabilities (mapcar #'plain-name (getf skill :capabilities))
          :tools (mapcar #'describe-tool (reverse *tools*))
          :handlers (mapcar (lambda (h) (plain-name (car h))) *handlers*))))

(defun forget-registrations ()
  (setq *registered* nil *tools* nil *handlers* nil *tests* nil))

(defun share-names (package prefix)
  "Makes the names of a skill that begin with its own name known to skills that build on it."
  (do-symbols (s package)
    (when (and (eq (symbol-package s) (find-package package))
               (uiop:string-prefix-p prefix (symbol-name s))
               (or (fboundp s) (boundp s))
               (not (find-symbol (symbol-name s) :passepartout)))
      (import s :passepartout)
      (export s :passepartout))))

(defun run-tests ()
  "Runs the tests in the order they stand; the first that fails ends it."
  (loop for (name . function) in (reverse *tests*)
        do (handler-case (funcall function)
             (error (c) (error "test ~(~a~): ~a" name c))))
  (length *tests*))

(defun tool-named (name)
  (find name *tools* :key (lambda (tool) (plain-name (getf tool :name))) :test #'string=))

(defun call-tool (name arguments)
  (let* ((tool (or (tool-named name) (error "no tool ~a" name)))
         (guard (getf tool :guard)))
    (when (and guard (not (funcall guard arguments nil)))
      (error "the tool's own guard refuses the arguments"))
    (let ((answer (funcall (getf tool :body) arguments)))
      (cond ((stringp answer) (list :status :success :content answer))
            ((and (consp answer) (getf answer :status))
             (list :status (getf answer :status)
                   :content (princ-to-string (or (getf answer :content) (getf answer :message) ""))))
            (t (list :status :success :content (princ-to-string answer)))))))
