;;; passepartout-wire.el --- Wire protocol of the Passepartout daemon  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Passepartout authors

;; SPDX-License-Identifier: Apache-2.0

;;; Commentary:

;; Six hexadecimal digits, then that many bytes: one property list in
;; UTF-8.  See docs/protocol.md.
;;
;; What the daemon sends is read by `passepartout-wire-read', never by
;; `read': there is no evaluation, no reader macro, no circle, and nothing
;; a peer names is interned.  Keywords are lower case on this side, upper
;; case on the wire.
;;
;; Nothing here waits.  `passepartout-wire-request' takes a function that
;; is called with the answer, or with an error of ours when the connection
;; is lost before it came.

;;; Code:

(require 'cl-lib)
(require 'subr-x)

(defgroup passepartout nil
  "A personal agent: a model proposes, deterministic gates decide."
  :group 'applications
  :prefix "passepartout-")

(defcustom passepartout-socket nil
  "The daemon's Unix socket; nil for the usual place."
  :type '(choice (const :tag "The usual place" nil) file))

(defcustom passepartout-program "passepartout"
  "The program, for starting the daemon and for explanations."
  :type 'string)

(defcustom passepartout-start-daemon t
  "Whether to start the daemon when none runs."
  :type 'boolean)

(defconst passepartout-wire-max-bytes #xFFFFFF "The longest payload.")
(defconst passepartout-wire-max-depth 64 "How many lists deep a payload may be.")
(defconst passepartout-wire-max-items 262144 "How many items a payload may have.")

(define-error 'passepartout-wire-error "The daemon sent something that is no frame")

;;;; Reading and printing

(defvar passepartout-wire--items 0 "Items read of the current payload.")

(defun passepartout-wire--fail (what)
  "Signal that the payload is wrong at point: WHAT."
  (signal 'passepartout-wire-error (list what (point))))

(defun passepartout-wire-read (text)
  "Read TEXT as one datum of lists, strings, numbers and symbols."
  (with-temp-buffer
    (insert text)
    (goto-char (point-min))
    (let ((passepartout-wire--items 0))
      (prog1 (passepartout-wire--datum 0)
        (passepartout-wire--blanks)
        (unless (eobp) (passepartout-wire--fail "more than one datum"))))))

(defun passepartout-wire--blanks ()
  "Skip white space."
  (skip-chars-forward " \t\r\n\f"))

(defun passepartout-wire--datum (depth)
  "Read the datum at point, which is DEPTH lists deep."
  (when (> (cl-incf passepartout-wire--items) passepartout-wire-max-items)
    (passepartout-wire--fail "too many items"))
  (passepartout-wire--blanks)
  (let ((c (char-after)))
    (cond
     ((null c) (passepartout-wire--fail "the datum ends early"))
     ((eq c ?\() (forward-char) (passepartout-wire--list depth))
     ((eq c ?\") (forward-char) (passepartout-wire--string))
     ((memq c '(?\) ?# ?' ?` ?, ?\; ?|)) (passepartout-wire--fail "reader syntax is not data"))
     (t (passepartout-wire--atom)))))

(defun passepartout-wire--list (depth)
  "Read the rest of a list DEPTH lists deep, after its parenthesis."
  (when (>= depth passepartout-wire-max-depth)
    (passepartout-wire--fail "too deep"))
  (let (out)
    (while (progn (passepartout-wire--blanks) (not (eq (char-after) ?\))))
      (push (passepartout-wire--datum (1+ depth)) out))
    (forward-char)
    (nreverse out)))

(defun passepartout-wire--string ()
  "Read the rest of a string, after its quote."
  (let ((parts nil) (done nil))
    (while (not done)
      (let ((start (point)))
        (skip-chars-forward "^\"\\\\")
        (push (buffer-substring-no-properties start (point)) parts)
        (pcase (char-after)
          (?\" (forward-char) (setq done t))
          (?\\ (forward-char)
               (unless (char-after) (passepartout-wire--fail "the string ends early"))
               (push (char-to-string (char-after)) parts)
               (forward-char))
          (_ (passepartout-wire--fail "the string ends early")))))
    (apply #'concat (nreverse parts))))

(defun passepartout-wire--atom ()
  "Read a number or a symbol."
  (let ((start (point)))
    (skip-chars-forward "^ \t\r\n\f()\"'`,;#|\\\\")
    (let ((text (buffer-substring-no-properties start (point))))
      (cond
       ((or (string-empty-p text) (> (length text) 4096))
        (passepartout-wire--fail "no symbol"))
       ((string-match-p "\\`[-+]?[0-9]+\\(?:\\.[0-9]+\\)?\\(?:[eE][-+]?[0-9]+\\)?\\'" text)
        (string-to-number text))
       (t (let ((name (downcase text)))
            (cond ((equal name "nil") nil)
                  ((equal name "t") t)
                  ;; A name we do not use ourselves is kept out of the obarray.
                  (t (or (intern-soft name) (make-symbol name))))))))))

(defun passepartout-wire-print (datum)
  "Print DATUM in its wire form."
  (with-temp-buffer
    (passepartout-wire--print datum)
    (buffer-string)))

(defun passepartout-wire--print (datum)
  "Insert DATUM in its wire form."
  (cond
   ((null datum) (insert "NIL"))
   ((eq datum t) (insert "T"))
   ((integerp datum) (insert (number-to-string datum)))
   ((stringp datum)
    (insert ?\")
    (insert (replace-regexp-in-string "[\"\\]" "\\\\\\&" (passepartout-wire--valid datum) t))
    (insert ?\"))
   ((symbolp datum) (insert (upcase (symbol-name datum))))
   ((proper-list-p datum)
    (insert ?\()
    (let ((first t))
      (dolist (x datum)
        (unless first (insert ?\s))
        (setq first nil)
        (passepartout-wire--print x)))
    (insert ?\)))
   (t (error "Cannot be sent: %S" datum))))

(defun passepartout-wire--valid (text)
  "TEXT without properties, with what is no Unicode character replaced."
  (let ((s (substring-no-properties text)))
    (unless (multibyte-string-p s)
      (setq s (decode-coding-string s 'utf-8)))
    (replace-regexp-in-string "[^\x00-\xD7FF\xE000-\x10FFFF]" "�" s t t)))

(defun passepartout-wire-frame (datum)
  "The bytes of DATUM's frame."
  (let ((body (encode-coding-string (passepartout-wire-print datum) 'utf-8-unix)))
    (when (> (length body) passepartout-wire-max-bytes)
      (user-error "Too long for one message: %d bytes" (length body)))
    (concat (format "%06X" (length body)) body)))

;;;; The connection

(defvar passepartout-wire--process nil "The connection, or nil.")
(defvar passepartout-wire--ready nil "Non-nil when the daemon has greeted us.")
(defvar passepartout-wire--wanted nil "Non-nil when a connection is wanted.")
(defvar passepartout-wire--timer nil "What will dial again.")
(defvar passepartout-wire--failures 0 "Dials that failed since one worked.")
(defvar passepartout-wire--starter nil "The process that starts the daemon.")
(defvar passepartout-wire--started nil "Non-nil when we tried to start the daemon already.")
(defvar passepartout-wire--next 0 "The last request's number.")
(defvar passepartout-wire--pending (make-hash-table :test #'equal)
  "What to call with the answer, by the request's id.")
(defvar passepartout-wire--outbox nil "Messages that wait for the connection, newest first.")

(defvar passepartout-wire-frame-functions nil
  "Called with every message that is not the answer to a request.")
(defvar passepartout-wire-state-functions nil
  "Called with `up', `down' or `failed', and a sentence.")

(defconst passepartout-wire--most-waiting 100 "How many messages may wait for the daemon.")

(defun passepartout-wire-socket ()
  "Where the daemon listens."
  (expand-file-name
   (or passepartout-socket
       (getenv "PASSEPARTOUT_SOCKET")
       (let ((run (or (getenv "PASSEPARTOUT_RUNTIME_DIR") (getenv "XDG_RUNTIME_DIR"))))
         (and run (not (string-empty-p run)) (expand-file-name "passepartout.sock" run)))
       (expand-file-name "passepartout/run/passepartout.sock"
                         (or (getenv "XDG_STATE_HOME") "~/.local/state")))))

(defun passepartout-wire-up-p ()
  "Non-nil when messages go out at once."
  (and passepartout-wire--ready (process-live-p passepartout-wire--process)))

(defun passepartout-wire-connect ()
  "See that there is a connection, now or as soon as the daemon answers."
  (setq passepartout-wire--wanted t)
  (unless (or (process-live-p passepartout-wire--process)
              (process-live-p passepartout-wire--starter)
              passepartout-wire--timer)
    (passepartout-wire--dial)))

(defun passepartout-wire-disconnect ()
  "Hang up, and stay that way."
  (setq passepartout-wire--wanted nil
        passepartout-wire--outbox nil
        passepartout-wire--started nil
        passepartout-wire--failures 0)
  (when passepartout-wire--timer
    (cancel-timer passepartout-wire--timer)
    (setq passepartout-wire--timer nil))
  (when passepartout-wire--process
    (passepartout-wire--lost "Disconnected.")))

(defun passepartout-wire--dial ()
  "Try to connect."
  (setq passepartout-wire--timer nil)
  (when (and passepartout-wire--wanted (not (process-live-p passepartout-wire--process)))
    (condition-case err
        (let ((buffer (generate-new-buffer " *passepartout-wire*" t)))
          (with-current-buffer buffer
            (set-buffer-multibyte nil)
            (buffer-disable-undo))
          (condition-case err
              (setq passepartout-wire--ready nil
                    passepartout-wire--process
                    (make-network-process
                     :name "passepartout" :family 'local :service (passepartout-wire-socket)
                     :buffer buffer :coding 'binary :noquery t
                     :filter #'passepartout-wire--filter :sentinel #'passepartout-wire--sentinel))
            (error (kill-buffer buffer) (signal (car err) (cdr err)))))
      (file-error (passepartout-wire--absent (format "%s: %s" (passepartout-wire-socket) (nth 2 err)))))))

(defun passepartout-wire--absent (why)
  "Nobody listens, because of WHY: start the daemon, or try later."
  (if (or (not passepartout-start-daemon) passepartout-wire--started
          (not (executable-find passepartout-program)))
      (passepartout-wire--later why)
    (setq passepartout-wire--started t)
    ;; Any of the program's own clients starts the daemon properly: detached
    ;; from us, with its log, and with the reason when it cannot.
    (setq passepartout-wire--starter
          (make-process
           :name "passepartout-start" :noquery t :connection-type 'pipe
           :buffer (generate-new-buffer " *passepartout-start*" t)
           :command (list passepartout-program "send" "(:TYPE :REQUEST :PAYLOAD (:ACTION :HEALTH-CHECK))")
           :sentinel #'passepartout-wire--starter-done))))

(defun passepartout-wire--starter-done (process _event)
  "Go on when PROCESS has started the daemon."
  (unless (process-live-p process)
    (let ((said (with-current-buffer (process-buffer process) (string-trim (buffer-string)))))
      (kill-buffer (process-buffer process))
      (setq passepartout-wire--starter nil)
      (if (eq (process-exit-status process) 0)
          (passepartout-wire--dial)
        (passepartout-wire--later said)))))

(defun passepartout-wire--later (why)
  "Dial again after a while that grows; WHY is for the person."
  (let ((wait (min 30 (* 0.2 (expt 2 (min passepartout-wire--failures 10))))))
    (cl-incf passepartout-wire--failures)
    (run-hook-with-args 'passepartout-wire-state-functions 'failed why)
    (when (and passepartout-wire--wanted (not passepartout-wire--timer))
      (setq passepartout-wire--timer (run-at-time wait nil #'passepartout-wire--dial)))))

(defun passepartout-wire--sentinel (process event)
  "Notice that PROCESS has ended with EVENT."
  (unless (process-live-p process)
    (passepartout-wire--gone process (string-trim event))))

(defun passepartout-wire--gone (process why)
  "Take note that PROCESS ended because of WHY, if it is the connection."
  (when (eq process passepartout-wire--process)
    (passepartout-wire--lost (concat "The daemon went away: " why))
    (when passepartout-wire--wanted
      (setq passepartout-wire--started nil)
      (passepartout-wire--later "The daemon went away."))))

(defun passepartout-wire--lost (why)
  "Forget the connection, and tell everybody who waits WHY."
  (let ((process passepartout-wire--process)
        (unsent (mapcar (lambda (m) (plist-get (plist-get m :meta) :id)) passepartout-wire--outbox))
        (waiting nil))
    (setq passepartout-wire--process nil passepartout-wire--ready nil)
    (dolist (id (hash-table-keys passepartout-wire--pending))
      (unless (member id unsent)
        (push (gethash id passepartout-wire--pending) waiting)
        (remhash id passepartout-wire--pending)))
    (when process
      (delete-process process)
      (when (buffer-live-p (process-buffer process)) (kill-buffer (process-buffer process))))
    (run-hook-with-args 'passepartout-wire-state-functions 'down why)
    (dolist (f waiting)
      (passepartout-wire--call f (list :type :response
                                       :payload (list :action :error :status :lost :code "connection.lost" :text why))))))

(defun passepartout-wire--filter (process bytes)
  "Take BYTES that PROCESS has received."
  (when (and (eq process passepartout-wire--process) (buffer-live-p (process-buffer process)))
    (condition-case err
        (progn
          (with-current-buffer (process-buffer process)
            (goto-char (point-max))
            (insert bytes))
          (let (datum)
            (while (and (buffer-live-p (process-buffer process))
                        (setq datum (with-current-buffer (process-buffer process)
                                      (passepartout-wire--next-datum))))
              (passepartout-wire--take process datum))))
      (passepartout-wire-error
       (when (eq process passepartout-wire--process)
         (passepartout-wire--lost (format "The daemon spoke nonsense: %s" (cadr err)))
         (when passepartout-wire--wanted (passepartout-wire--later "The daemon spoke nonsense.")))))))

(defun passepartout-wire--next-datum ()
  "Take the first whole frame out of the current buffer; nil if there is none."
  (goto-char (point-min))
  (passepartout-wire--blanks)
  (delete-region (point-min) (point))
  (let ((have (buffer-size)))
    (when (>= have 6)
      (let ((head (buffer-substring 1 7)))
        (unless (string-match-p "\\`[[:xdigit:]]\\{6\\}\\'" head)
          (signal 'passepartout-wire-error (list (format "no length: %S" head))))
        (let ((n (string-to-number head 16)))
          (when (zerop n) (signal 'passepartout-wire-error (list "an empty frame")))
          (when (>= have (+ 6 n))
            (let ((text (decode-coding-string (buffer-substring 7 (+ 7 n)) 'utf-8-unix)))
              (delete-region 1 (+ 7 n))
              (let ((datum (passepartout-wire-read text)))
                (unless (and (consp datum) (plist-get datum :type))
                  (signal 'passepartout-wire-error (list "no message")))
                datum))))))))

(defun passepartout-wire--take (process message)
  "Take one MESSAGE of PROCESS."
  (let* ((payload (plist-get message :payload))
         (id (plist-get (plist-get message :meta) :in-reply-to))
         (waiting (and id (gethash id passepartout-wire--pending))))
    (cond
     ((not passepartout-wire--ready) (passepartout-wire--greet process payload))
     ((and waiting (eq (plist-get message :type) :response))
      (remhash id passepartout-wire--pending)
      (passepartout-wire--call waiting message))
     (t (run-hook-wrapped 'passepartout-wire-frame-functions
                          (lambda (f) (passepartout-wire--call f message) nil))))))

(defun passepartout-wire--call (function message)
  "Call FUNCTION with MESSAGE; its mistakes must not end the connection."
  (condition-case err
      (funcall function message)
    (error (message "Passepartout: %s" (error-message-string err)))))

(defun passepartout-wire--greet (process payload)
  "Answer the greeting PAYLOAD of PROCESS."
  (cond
   ((not (eq (plist-get payload :action) :handshake))
    (signal 'passepartout-wire-error (list (or (plist-get payload :text) "no greeting"))))
   ((not (equal (plist-get payload :version) "1"))
    (signal 'passepartout-wire-error
            (list (format "it speaks version %s of the protocol, we speak 1" (plist-get payload :version)))))
   (t
    (passepartout-wire--write
     process
     (passepartout-wire-frame '(:type :event :payload (:action :handshake :version "1" :client "emacs"
                                                               :capabilities ("STREAM" "TRACE" "EDIT")))))
    (when (eq process passepartout-wire--process) ; else it has gone away already
      (setq passepartout-wire--ready t passepartout-wire--failures 0 passepartout-wire--started nil)
      (run-hook-with-args 'passepartout-wire-state-functions 'up "Connected.")
      (let ((waiting (nreverse passepartout-wire--outbox)))
        (setq passepartout-wire--outbox nil)
        (dolist (m waiting) (passepartout-wire--send m)))))))

(defun passepartout-wire--write (process bytes)
  "Give BYTES to PROCESS; notice when it has gone away.
An error would end whatever is being done, such as showing an answer.
To leave it to the sentinel would be too late: by then there may be
another connection, and who waits over this one would not be told."
  (condition-case err
      (process-send-string process bytes)
    (error (passepartout-wire--gone process (error-message-string err)))))

(defun passepartout-wire--send (message)
  "Send MESSAGE now, or when the daemon is back."
  (if (passepartout-wire-up-p)
      (passepartout-wire--write passepartout-wire--process (passepartout-wire-frame message))
    (when (>= (length passepartout-wire--outbox) passepartout-wire--most-waiting)
      (user-error "Too much waits for the daemon already"))
    (push message passepartout-wire--outbox)
    (passepartout-wire-connect)))

(defun passepartout-wire-request (message session callback)
  "Send MESSAGE, a plist without :meta, for SESSION; return its id.
CALLBACK is called with the one response."
  (let ((id (format "e%d" (cl-incf passepartout-wire--next))))
    (puthash id (or callback #'ignore) passepartout-wire--pending)
    (passepartout-wire--send
     (append (list :type (plist-get message :type))
             (and (plist-get message :target) (list :target (plist-get message :target)))
             (list :meta (append (list :id id) (and session (list :session-id session))))
             (list :payload (plist-get message :payload))))
    id))

(defun passepartout-wire-ask (action session callback &rest args)
  "Ask the daemon for ACTION with ARGS in SESSION; call CALLBACK with the answer."
  (passepartout-wire-request
   (list :type :request :payload (append (list :action action) args)) session callback))

(defun passepartout-wire-tool (tool args why session callback)
  "Propose that TOOL be called with ARGS, for the reason WHY, in SESSION.
CALLBACK is called with the response.  The gates judge it like any other."
  (passepartout-wire-request
   (list :type :request :target :tool
         :payload (append (list :tool tool) (and args (list :args args)) (list :explanation why)))
   session callback))

(provide 'passepartout-wire)
;;; passepartout-wire.el ends here
