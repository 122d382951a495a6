;;; What a skill finds besides the language. It is loaded once, into the image all
;;; jails start from. Everything here is written in the jailed language itself, so
;;; it can do nothing a skill could not.

;;; The second group of names is what skills for the ancestor call or define: they are
;;; names of the harness, so that every skill means the same thing by them.

(defpackage :passepartout
  (:use :cl)
  (:nicknames :opencortex :org-agent)
  (:import-from :uiop #:getenv)
  (:export
   #:defskill #:def-cognitive-tool #:register-actuator #:register-probabilistic-backend
   #:register-pre-reason-handler #:register-hook #:defhook #:harness-log #:proto-get #:inject-stimulus #:stimulus-inject #:propose
   #:org-object #:make-org-object #:org-object-id #:org-object-type #:org-object-attributes #:org-object-content
   #:org-object-parent-id #:org-object-children #:org-object-version #:org-object-vector #:org-object-hash #:org-object-last-sync
   #:lookup-object #:list-objects-with-attribute #:*memory* #:unix-time #:org-id-new #:journal-entries
   #:reject #:require-approval #:action-args #:action-arg
   #:deftest #:is #:signals)
  (:export
   #:kernel-log #:getenv #:snapshot-memory #:rollback-memory #:validate-communication-protocol-schema #:skill-name
   #:*vault-memory* #:*provider-cascade* #:*probabilistic-backends* #:*object-store*
   #:vault-get-secret #:vault-set-secret #:get-tool-permission #:set-tool-permission #:get-oc-config-dir #:run-setup-wizard
   #:doctor-check-dependencies #:doctor-check-env #:doctor-run-all #:doctor-main #:verify-git-clean-p #:check-tangle-sync
   #:engineering-standards-format-lisp #:engineering-standards-verify-lisp #:literate-check-block-balance
   #:utils-lisp-validate #:utils-lisp-check-structural #:utils-lisp-check-syntactic #:utils-lisp-check-semantic #:utils-lisp-eval
   #:utils-lisp-format #:utils-lisp-list-definitions #:utils-lisp-structural-extract #:utils-lisp-structural-inject
   #:utils-lisp-structural-slurp #:utils-lisp-structural-wrap
   #:utils-org-read-file #:utils-org-write-file #:utils-org-generate-id #:utils-org-id-format #:utils-org-set-property
   #:utils-org-set-todo #:utils-org-add-headline #:utils-org-find-headline-by-id #:utils-org-find-headline-by-title
   #:utils-org-modify #:utils-org-ast-to-org))

(in-package :passepartout)

;;; Registration. One jail holds one skill and what it depends on; the host empties
;;; these before it loads the skill's own file.

(defvar *registered* nil "what defskill said, newest first")
(defvar *tools* nil "what def-cognitive-tool said, newest first")
(defvar *handlers* nil "(sensor . function), newest first")
(defvar *hooks* nil "(event . function), newest first")
(defvar *tests* nil "(name package . function), newest first")
(defvar *stimuli* nil "what was injected during this call, newest first")
(defvar *testing* nil "true while the skill's own tests run")

(defmacro defskill (name &rest fields &key priority trigger probabilistic deterministic mandate
                                        dependencies capabilities system-prompt-augment neuro symbolic)
  "Says what the skill of this file does; see docs/skills.md. :NEURO, :SYMBOLIC and :SYSTEM-PROMPT-AUGMENT are
older words for :PROBABILISTIC, :DETERMINISTIC and :MANDATE."
  (declare (ignore priority trigger probabilistic deterministic dependencies capabilities))
  `(push (list :name ',name ,@fields ,@(and system-prompt-augment (not mandate) `(:mandate ,system-prompt-augment))
               ,@(and neuro `(:probabilistic ,neuro)) ,@(and symbolic `(:deterministic ,symbolic)))
         *registered*))

(defmacro def-cognitive-tool (name description parameters &key guard body read-only)
  "Declares a tool. Parameters are (NAME :type TYPE :description TEXT :required T)."
  `(push (list :name ',name :description ,description :parameters ',parameters
               :guard ,guard :body ,body :read-only ,read-only)
         *tools*))

(defun register-pre-reason-handler (sensor function)
  "Claims the signals of a sensor before any model sees them."
  (push (cons sensor function) *handlers*)
  sensor)

(defun register-hook (event function)
  "Calls function with a property list whenever event happens, such as :TODO-CHANGED or :FILE-CHANGED."
  (push (cons event function) *hooks*)
  event)

(defmacro defhook (event (parameter) &body body)
  "A hook with a body: (defhook :todo-changed (event) …)."
  `(register-hook ,event (lambda (,parameter) (declare (ignorable ,parameter)) ,@body)))

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
  "Hands a message to the agent once the skill has returned: an :EVENT is a signal, a :REQUEST a proposal the gates
judge. Needs the capability :signals; a gate never has it."
  (declare (ignore stream))
  (if (or *testing* (ignore-errors (passepartout-host:may-signal)))
      (push message *stimuli*)
      (harness-log "inject-stimulus: not submitted: ~s" message))
  nil)

(defun stimulus-inject (message) (inject-stimulus message))

(defun propose (action)
  "Proposes an action, (:TYPE :REQUEST :TARGET … :PAYLOAD …). Needs the capability :signals."
  (inject-stimulus action))

(defun kernel-log (control &rest arguments) (apply #'harness-log control arguments))

(defun snapshot-memory ()
  "Nothing to do: the memory keeps every version by itself."
  nil)

(defun rollback-memory (&optional (index 0))
  "Refused: a person undoes, with the command memory undo."
  (error "rollback-memory ~a is refused in the jail: skills have no effect of their own" index))

(defun vault-get-secret (provider &key type)
  "NIL: secrets never enter the jail. A skill may define a vault of its own."
  (declare (ignore provider type))
  nil)

(defun skill-name (skill) (getf skill :name))

(defvar *vault-memory* (make-hash-table :test 'equal) "empty: secrets never enter the jail")
(defvar *provider-cascade* nil "empty: models are the host's")
(defvar *probabilistic-backends* (make-hash-table :test 'equal) "empty: models are the host's")

;;; Messages.

(defparameter *words*
  '(:type :meta :payload :depth :target :request :event :response :log :status :source :session-id :role :sensor
    :action :tool :args :explanation :text :path :cmd :content :query :url :id :title :message :run
    :user-input :chat-message :tool-output :heartbeat :owner :guest :peer :job :cli :tui :emacs :shell :system
    :level :approval-required :warn :error :candidate)
  "Names of nearly every message: known to the image, they need not be made for each.")

(defun proto-get (plist key)
  "The value of a key, whichever way it is written: a keyword in capitals or small letters, a string, a plain symbol."
  (or (getf plist key) (passepartout-host:otherwise-spelled plist key)))

(defun validate-communication-protocol-schema (message)
  "T for a property list with one of the five types; anything else is an error."
  (unless (listp message)
    (error "Message must be a plist"))
  (let ((type (proto-get message :type)))
    (unless (member type '(:request :event :response :log :status))
      (error "Invalid message type '~a'" type)))
  t)

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

(defstruct org-object id type attributes content parent-id children vector (version 0) last-sync hash)

(defmacro from-the-memex (form)
  "What the host says; in a skill's own tests nothing is there unless it was granted."
  `(if *testing* (ignore-errors ,form) ,form))

(defun lookup-object (id)
  "The heading or file of that id, or NIL. Needs the capability :memory."
  (let ((found (from-the-memex (passepartout-host:lookup-object (princ-to-string id)))))
    (and found (apply #'make-org-object found))))

(defun list-objects-with-attribute (key value)
  "The headings whose attribute has that value. Needs the capability :memory."
  (mapcar (lambda (found) (apply #'make-org-object found))
          (from-the-memex (passepartout-host:objects-with-attribute (string key) (princ-to-string value)))))

(defun memory-table ()
  "A table of all objects by their ids. Empty without the capability :memory, except in a gate, which must not take
that for an empty memex."
  (let ((table (make-hash-table :test 'equal)))
    (dolist (found (if (passepartout-host:judging-p)
                       (passepartout-host:all-objects)
                       (ignore-errors (passepartout-host:all-objects)))
                   table)
      (setf (gethash (getf found :id) table) (apply #'make-org-object found)))))

(define-symbol-macro *memory* (memory-table))
(define-symbol-macro *object-store* (memory-table))

(defun journal-entries (&optional (limit 100))
  "The last entries of the agent's journal, newest first, as property lists. Needs the capability :journal."
  (passepartout-host:journal-entries limit))

(defvar *ids* 0 "how many ids tests have made")

(defun org-id-new ()
  "A new id. Needs the capability :random; in a test ids are counted."
  (if *testing*
      (format nil "00000000-0000-4000-8000-~12,'0x" (incf *ids*))
      (passepartout-host:new-id)))

(defun unix-time ()
  "Seconds since 1970. Needs the capability :clock."
  (passepartout-host:unix-time))

;;; A skill's own tests.

(defmacro deftest (name &body body)
  "A test: it fails when its body signals an error."
  (let ((body (if (stringp (car body)) (cdr body) body))
        (name (if (consp name) (car name) name)))
    `(push (list* ',name *package* (lambda () ,@body)) *tests*)))

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

;;; What of other libraries makes sense in a jail: one thread, no clock, no loading. The
;;; rest of their names can be read, and are undefined functions when called.

(defmacro bt:with-lock-held ((lock) &body body) `(progn ,lock ,@body))
(defmacro bt:with-recursive-lock-held ((lock) &body body) `(progn ,lock ,@body))
(defun bt:make-lock (&optional name) (list :lock name))
(defun bt:make-recursive-lock (&optional name) (list :lock name))
(defun uuid:make-v4-uuid () (org-id-new))
(defun ql:quickload (systems &rest options) (declare (ignore options)) systems)
(defun asdf:system-source-directory (system) (declare (ignore system)) nil)
(defun sb-posix:setenv (name value &optional overwrite) (declare (ignore name value overwrite)) 0)
(defun sb-posix:unsetenv (name) (declare (ignore name)) 0)

;;; What the host asks a jail after it has loaded a skill.

(defun plain-name (name)
  (let ((text (string-downcase (princ-to-string name))))
    (if (uiop:string-prefix-p ":" text) (subseq text 1) text)))

(defun offered-name (name)
  "The name of a parameter as a model sees it: some words mean something in every proposal."
  (let ((name (string-upcase (plain-name name))))
    (if (member name '("TYPE" "TARGET" "PAYLOAD" "ACTION" "TOOL" "ARGS" "EXPLANATION") :test #'string=)
        (concatenate 'string "THE-" name)
        name)))

(defun describe-parameter (parameter)
  (destructuring-bind (name &key (type :string) (description "") required &allow-other-keys)
      (if (consp parameter) parameter (list parameter))
    (list :name (offered-name name) :type (plain-name type) :doc (princ-to-string description)
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
          :hooks (mapcar (lambda (h) (plain-name (car h))) (reverse *hooks*))
          :handlers (mapcar (lambda (h) (plain-name (car h))) (reverse *handlers*)))))

(defun forget-registrations ()
  (setq *registered* nil *tools* nil *handlers* nil *hooks* nil *tests* nil))

(defun share-names (package prefix)
  "Makes the names of a skill that begin with its own name known to skills that build on it, also when it puts
itself into the package of the harness; what it defined there can be named in its own package too."
  (do-symbols (s :passepartout)
    (when (and (eq (symbol-package s) (find-package :passepartout)) (uiop:string-prefix-p prefix (symbol-name s)))
      (export s :passepartout)))
  (do-symbols (s package)
    (when (and (eq (symbol-package s) (find-package package))
               (uiop:string-prefix-p prefix (symbol-name s))
               (or (fboundp s) (boundp s))
               (not (find-symbol (symbol-name s) :passepartout)))
      (import s :passepartout)
      (export s :passepartout)))
  (do-symbols (s :passepartout)
    (when (and (eq (symbol-package s) (find-package :passepartout))
               (not (gethash s *own-names*))
               (or (fboundp s) (boundp s))
               (not (find-symbol (symbol-name s) package)))
      (import s package))))

(defun show-names ()
  "Lets tests in a package of their own see everything a skill defined in the package of the harness."
  (do-symbols (s :passepartout)
    (when (and (eq (symbol-package s) (find-package :passepartout)) (or (fboundp s) (boundp s)))
      (ignore-errors (export s :passepartout))))
  (setq *testing* t))

(defun run-tests ()
  "Runs the tests in the order they stand, each in the package it was read in; the first that fails ends it."
  (loop for (name package . function) in (reverse *tests*)
        do (handler-case (let ((*package* package)) (funcall function))
             (error (c) (error "test ~(~a~): ~a" name c))))
  (length *tests*))

(defun call-hook (index event)
  "Calls a hook, and tells what came of it as data."
  (answer (funcall (cdr (nth index (reverse *hooks*))) event)))

(defun call-handler (index event)
  (answer (funcall (cdr (nth index (reverse *handlers*))) event)))

(defun call-function (package name event)
  (let ((symbol (find-symbol (string-upcase name) package)))
    (unless (and symbol (fboundp symbol) (not (eq (symbol-package symbol) (find-package :cl))))
      (error "no function ~(~a~)" name))
    (answer (funcall symbol event))))

(defun answer (value)
  (list :true (and value t) :text (and (stringp value) value) :signals (reverse *stimuli*)))

(defun tool-named (name)
  (find name *tools* :key (lambda (tool) (plain-name (getf tool :name))) :test #'string=))

(defun call-tool (name arguments)
  (append (tool-answer name arguments) (list :signals (reverse *stimuli*))))

(defun tool-arguments (tool arguments)
  "The arguments as the tool declares them: under its names, words as keywords, defaults filled in."
  (dolist (parameter (getf tool :parameters) arguments)
    (destructuring-bind (name &key (type :string) default &allow-other-keys)
        (if (consp parameter) parameter (list parameter))
      (let* ((key (intern (string-upcase (plain-name name)) :keyword))
             (value (getf arguments (intern (offered-name name) :keyword) default)))
        (when (and (stringp value) (member type '(:keyword :symbol)))
          (setq value (intern (string-upcase (string-left-trim ":" value)) :keyword)))
        (when value (setf (getf arguments key) value))))))

(defun tool-answer (name arguments)
  (let* ((tool (or (tool-named name) (error "no tool ~a" name)))
         (guard (getf tool :guard))
         (arguments (tool-arguments tool arguments)))
    (when (and guard (not (funcall guard arguments nil)))
      (error "the tool's own guard refuses the arguments"))
    (let ((answer (funcall (getf tool :body) arguments)))
      (cond ((stringp answer) (list :status :success :content answer))
            ((and (consp answer) (keywordp (car answer)) (getf answer :status))
             (list :status (getf answer :status)
                   :content (princ-to-string (or (getf answer :content) (getf answer :message) answer))))
            (t (list :status :success :content (princ-to-string answer)))))))

(defvar *own-names* (make-hash-table) "the names of this file, as keys")
(do-symbols (s :passepartout)
  (when (eq (symbol-package s) (find-package :passepartout))
    (setf (gethash s *own-names*) t)))
