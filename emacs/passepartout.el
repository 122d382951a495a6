;;; passepartout.el --- Client for the Passepartout agent  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Passepartout authors

;; Author: The Passepartout authors
;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1"))
;; Keywords: convenience, outlines, tools
;; URL: https://passepartout.example
;; SPDX-License-Identifier: Apache-2.0

;;; Commentary:

;; A personal agent that lives in your Org files: a model proposes,
;; deterministic gates decide, you are asked where they do not know.
;;
;;   M-x passepartout                     talk to it, in an Org buffer
;;   M-x passepartout-approvals           what waits for your word
;;   M-x passepartout-focus-mode          let it see where point is, in this file
;;   M-x passepartout-ask-about-subtree   the answer becomes a child heading
;;   M-x passepartout-refactor-subtree    a rewrite you review as a diff
;;   M-x passepartout-recall              find notes, insert a link
;;   M-x passepartout-capture, -agenda, -undo, -why
;;
;; Nothing here waits for the daemon: everything it says arrives in a
;; process filter, and no question is ever put in the minibuffer from there.
;; What the agent wrote is shown as text: it cannot make headings, drawers
;; or links that run something, and a button is never made from its words.
;;
;; When the daemon asks to change a buffer, its gates have agreed already;
;; you still see the change as a diff and accept it or not.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'org)
(require 'diff-mode)
(require 'tabulated-list)
(require 'passepartout-wire)

(defcustom passepartout-session "main"
  "The conversation that commands use.
It belongs to the daemon: other clients of yours can continue it."
  :group 'passepartout
  :type 'string)

(defcustom passepartout-private-tags '("@personal")
  "Org tags of text that is not sent from here.
Keep it like the daemon's PRIVACY_FILTER_TAGS.  Point inside such a
heading is not reported, and the commands on subtrees refuse it."
  :group 'passepartout
  :type '(repeat string))

(defcustom passepartout-focus-delay 0.7
  "Seconds of idleness before the position of point is reported."
  :group 'passepartout
  :type 'number)

(defface passepartout-you '((t :inherit org-level-2))
  "What you said."
  :group 'passepartout)
(defface passepartout-gates '((t :inherit shadow))
  "How the gates ruled."
  :group 'passepartout)

(defvar passepartout--focus-timer nil "What reports point.")
(defvar passepartout--focus-sent nil "What was reported last.")

;;;; Text of the agent, made harmless

(defconst passepartout--blank "\u200b" "Keeps a line from being Org syntax.")

(defun passepartout--clean (text)
  "TEXT without characters that drive a display."
  (replace-regexp-in-string
   "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]" "" (or text "") t t))

(defun passepartout--plain-line (line)
  "LINE as Org text that is only text."
  (let ((case-fold-search t))
    (when (string-match-p "\\`\\(?:\\*\\|[ \t]*#\\+\\|[ \t]*:[^ \t:]+:[ \t]*\\'\\)" line)
      (setq line (concat passepartout--blank line)))
    (replace-regexp-in-string
     "\\<\\(elisp\\|shell\\|file\\+sys\\|file\\+emacs\\):\\([^ \t]\\)"
     (concat "\\1" passepartout--blank ":\\2") line)))

(defun passepartout--org (text)
  "TEXT of the agent as Org: fenced code becomes source blocks."
  (let ((code nil) (out nil) (case-fold-search t))
    (dolist (line (split-string (passepartout--clean text) "\n"))
      (push
       (cond
        ((and (not code) (string-match "\\`[ \t]*\\(?:```+\\|~~~+\\|#\\+begin_src\\)[ \t]*\\([[:alnum:]+_-]*\\).*\\'" line))
         (setq code t)
         (concat "#+begin_src " (if (string-empty-p (match-string 1 line)) "text" (downcase (match-string 1 line)))))
        ((and code (string-match-p "\\`[ \t]*\\(?:```+\\|~~~+\\|#\\+end_src\\)[ \t]*\\'" line))
         (setq code nil)
         "#+end_src")
        (code (org-escape-code-in-string line))
        (t (passepartout--plain-line line)))
       out))
    (when code (push "#+end_src" out))
    (string-join (nreverse out) "\n")))

;;;; The chat buffer

(defvar-local passepartout--session nil "The session this buffer shows.")
(defvar-local passepartout--top nil "Where what was said before goes.")
(defvar-local passepartout--out nil "Where the next entry goes.")
(defvar-local passepartout--input nil "Where what you type begins.")
(defvar-local passepartout--turns nil "Entries by turn.")
(defvar-local passepartout--asks nil "Open questions by token.")
(defvar-local passepartout--loading nil "Non-nil until what was said before is here.")
(defvar-local passepartout--unsaid nil "What is to be done then, newest first.")
(defvar-local passepartout--busy nil "What the agent does, for the mode line.")

(cl-defstruct (passepartout--entry (:constructor passepartout--make-entry))
  text end gates ended)

(defvar passepartout-chat-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'passepartout-send)
    (define-key map (kbd "C-c C-k") #'passepartout-interrupt)
    (define-key map (kbd "C-c C-a") #'passepartout-approvals)
    (define-key map (kbd "C-c C-y") #'passepartout-why)
    map)
  "Keys of the chat buffer.")

(define-derived-mode passepartout-chat-mode org-mode "Passepartout"
  "A conversation with the agent, as an Org buffer.
\\{passepartout-chat-mode-map}"
  (setq-local org-confirm-babel-evaluate t
              org-babel-no-eval-on-ctrl-c-ctrl-c t
              org-link-elisp-confirm-function #'yes-or-no-p
              org-link-shell-confirm-function #'yes-or-no-p
              org-src-fontify-natively t
              org-startup-folded nil
              passepartout--turns (make-hash-table :test #'equal)
              passepartout--asks (make-hash-table :test #'equal)
              mode-line-process '(:eval (passepartout--mode-line)))
  (visual-line-mode 1))

(defun passepartout--mode-line ()
  "Text for the mode line."
  (cond ((not (passepartout-wire-up-p)) " off line")
        (passepartout--busy (concat " " passepartout--busy))
        (t "")))

(defmacro passepartout--writing (&rest body)
  "Evaluate BODY with the chat buffer writable."
  (declare (indent 0) (debug t))
  `(let ((inhibit-read-only t) (buffer-undo-list t) (deactivate-mark nil))
     (save-excursion ,@body)))

(defun passepartout--insert (text &optional face)
  "Insert TEXT at point, read-only, with FACE."
  (let ((start (point)))
    (insert text)
    (add-text-properties start (point) '(read-only t front-sticky (read-only) rear-nonsticky (read-only)))
    (when face (add-text-properties start (point) (list 'font-lock-face face)))))

(defun passepartout--chat-buffers (&optional session)
  "The chat buffers, of SESSION or of all."
  (seq-filter (lambda (b)
                (let ((s (buffer-local-value 'passepartout--session b)))
                  (and s (or (null session) (equal s session)))))
              (buffer-list)))

;;;###autoload
(defun passepartout (&optional session)
  "Talk to the agent in SESSION; with a prefix argument ask which."
  (interactive (list (if current-prefix-arg (read-string "Session: " passepartout-session) passepartout-session)))
  (pop-to-buffer (passepartout--chat (or session passepartout-session)))
  (goto-char (point-max)))

(defun passepartout--chat (session)
  "The chat buffer of SESSION, made if need be."
  (passepartout-wire-connect)
  (or (car (passepartout--chat-buffers session))
      (with-current-buffer (generate-new-buffer (format "*passepartout: %s*" session))
        (passepartout-chat-mode)
        (setq passepartout--session session)
        (passepartout--writing
          (passepartout--insert (format "#+title: Passepartout, session %s\n" session))
          (setq passepartout--top (point-marker)
                passepartout--out (point-marker))
          (passepartout--insert "* Say something (C-c C-c sends)\n")
          (setq passepartout--input (point-marker))
          (set-marker-insertion-type passepartout--out t))
        (setq buffer-undo-list nil)
        (when (passepartout-wire-up-p) (passepartout--join (current-buffer)))
        (setq passepartout--loading t)
        (let ((chat (current-buffer)))
          (passepartout-wire-ask :conversation session (lambda (m) (passepartout--past chat m)) :count 100))
        (current-buffer))))

(defun passepartout--join (chat)
  "Let buffer CHAT hear its session."
  (let ((session (buffer-local-value 'passepartout--session chat)))
    (passepartout-wire-ask :listen session #'ignore)
    (passepartout--refresh-asks)))

(defun passepartout--past (chat message)
  "Show the past conversation in MESSAGE in CHAT."
  (when (buffer-live-p chat)
    (with-current-buffer chat
      (passepartout--writing
        (goto-char passepartout--top)
        (dolist (said (plist-get (plist-get message :payload) :said))
          (pcase (plist-get said :who)
            ("you" (passepartout--insert "* You\n" 'passepartout-you))
            ("agent" (passepartout--insert "* Passepartout\n")))
          (unless (equal (plist-get said :who) "gates")
            (passepartout--insert (concat (passepartout--org (plist-get said :text)) "\n"))))
        ;; Both markers stood here when nothing else had been said yet.
        (set-marker passepartout--top (point)))
      (setq passepartout--loading nil)
      (let ((waiting (nreverse passepartout--unsaid)))
        (setq passepartout--unsaid nil)
        (mapc #'funcall waiting)))))

(defun passepartout--open-entry (title &optional face)
  "Begin an entry called TITLE, in FACE, at the end of the conversation."
  (passepartout--writing
    (goto-char passepartout--out)
    (passepartout--insert (concat "* " title "\n") face)
    (let ((text (point-marker)) (end (copy-marker (point) t)))
      ;; The line's end stays behind `end', so that no entry touches the next.
      (set-marker-insertion-type end nil)
      (passepartout--insert "\n")
      (set-marker-insertion-type end t)
      (passepartout--make-entry :text text :end end))))

(defun passepartout--entry (turn)
  "The entry of TURN, begun if need be."
  (or (gethash turn passepartout--turns)
      (puthash turn (passepartout--open-entry "Passepartout") passepartout--turns)))

(defun passepartout--entry-set (entry text)
  "Replace the text of ENTRY by TEXT, which is Org already."
  (passepartout--writing
    (delete-region (passepartout--entry-text entry) (passepartout--entry-end entry))
    (goto-char (passepartout--entry-end entry))
    (passepartout--insert text)))

(defun passepartout--entry-add (entry text)
  "Show more TEXT of the agent in ENTRY while it is still speaking."
  (passepartout--writing
    (goto-char (passepartout--entry-end entry))
    (let ((from (line-beginning-position)))
      (passepartout--insert (passepartout--clean text))
      (goto-char (max from (marker-position (passepartout--entry-text entry))))
      (while (re-search-forward "^\\(?:\\*\\|[ \t]*#\\+\\)" (passepartout--entry-end entry) t)
        (goto-char (match-beginning 0))
        (passepartout--insert passepartout--blank)
        (end-of-line)))))

(defun passepartout--entry-gate (entry line id)
  "Add LINE about the ruling ID to the trace of ENTRY."
  (passepartout--writing
    (unless (passepartout--entry-gates entry)
      (goto-char (passepartout--entry-text entry))
      (passepartout--insert ":GATES:\n")
      (setf (passepartout--entry-gates entry) (copy-marker (point) nil))
      (passepartout--insert ":END:\n")
      (set-marker-insertion-type (passepartout--entry-gates entry) t)
      (set-marker (passepartout--entry-text entry) (point)))
    (goto-char (passepartout--entry-gates entry))
    (let ((start (point)))
      (passepartout--insert (concat "- " line "\n") 'passepartout-gates)
      (add-text-properties start (point) (list 'passepartout-ruling id)))
    (passepartout--fold entry)))

(defun passepartout--fold (entry)
  "Fold the gate trace of ENTRY."
  (save-excursion
    (goto-char (passepartout--entry-gates entry))
    (when (re-search-backward "^:GATES:$" nil t)
      (with-no-warnings ; renamed in Org 9.6
        (if (fboundp 'org-fold-hide-drawer-toggle)
            (org-fold-hide-drawer-toggle t 'no-error)
          (org-hide-drawer-toggle t 'no-error))))))

(defun passepartout--note (text)
  "Say TEXT of our own in the conversation."
  (let ((e (passepartout--open-entry "Note")))
    (passepartout--entry-set e (passepartout--org text))))

(defun passepartout-send ()
  "Say what stands at the end of the chat buffer."
  (interactive)
  (let ((text (string-trim (buffer-substring-no-properties passepartout--input (point-max)))))
    (when (string-empty-p text) (user-error "Nothing to say"))
    (delete-region passepartout--input (point-max))
    (passepartout-say text passepartout--session)))

(defun passepartout-say (text session &optional callback)
  "Say TEXT in SESSION; call CALLBACK with the response, if given.
Without one it is shown in the chat buffer."
  (let ((chat (passepartout--chat session)))
    (with-current-buffer chat
      (passepartout--entry-set (passepartout--open-entry "You" 'passepartout-you) (passepartout--org text))
      (setq passepartout--busy "thinking")
      (let ((send (lambda ()
                    (passepartout-wire-request
                     (list :type :event :payload (list :sensor :user-input :text text)) session
                     (lambda (m)
                       (passepartout--answered chat m)
                       (when callback (funcall callback m)))))))
        ;; Said before, it would be part of the past as well.
        (if passepartout--loading (push send passepartout--unsaid) (funcall send))))))

(defun passepartout--answered (chat message)
  "Show the response MESSAGE in CHAT."
  (let* ((payload (plist-get message :payload))
         (turn (plist-get (plist-get message :meta) :turn))
         (status (plist-get payload :status))
         (text (plist-get payload :text)))
    (when (buffer-live-p chat)
      (with-current-buffer chat
        (setq passepartout--busy nil)
        (cond
         ((eq (plist-get payload :action) :error)
          (passepartout--note
           (if (eq status :lost)
               (concat text "\nIt may or may not have acted on what you said last.")
             (format "%s (%s)" text (plist-get payload :code)))))
         ((and (eq status :pending) (passepartout--asked-p turn))) ; the entry with buttons says it better
         (turn
          (let ((e (passepartout--entry turn)))
            (setf (passepartout--entry-ended e) t)
            (passepartout--entry-set e (passepartout--org text))
            ;; What follows a yes is a new answer of the same turn.
            (remhash turn passepartout--turns)))
         (t (passepartout--note text)))
        (force-mode-line-update)))
    (passepartout--refresh-asks)
    (passepartout-sync)))

(defun passepartout-interrupt ()
  "Stop what the session is doing."
  (interactive)
  (passepartout-wire-request '(:type :event :payload (:sensor :interrupt))
                             (or passepartout--session passepartout-session)
                             (lambda (m) (message "%s" (plist-get (plist-get m :payload) :text)))))

;;;; What the daemon says by itself

(defun passepartout--frame (message)
  "Take MESSAGE, which answers nothing we asked."
  (let* ((meta (plist-get message :meta))
         (payload (plist-get message :payload))
         (session (plist-get meta :session-id))
         (chats (and session (passepartout--chat-buffers session)))
         (turn (plist-get meta :turn)))
    (pcase (plist-get message :type)
      (:request (passepartout--edit-request payload session))
      (:log (if (eq (plist-get payload :action) :error)
                (message "Passepartout refused a message: %s" (plist-get payload :text))
              (dolist (c (if session chats (passepartout--chat-buffers)))
                (with-current-buffer c (passepartout--note (plist-get payload :text))))))
      (type
       (when (and (eq type :event) (eq (plist-get payload :action) :approval-required))
         (passepartout--asked payload turn))
       (dolist (c chats)
         (with-current-buffer c (passepartout--happened type payload turn message)))))))

(defun passepartout--happened (type payload turn message)
  "Show a frame of TYPE with PAYLOAD of TURN, all of MESSAGE, in this chat."
  (pcase type
    (:status
     (when-let ((said (plist-get payload :said))) ; with another client
       (passepartout--entry-set (passepartout--open-entry "You" 'passepartout-you) (passepartout--org said)))
     (setq passepartout--busy
           (pcase (plist-get payload :status)
             (:perceived "thinking") (:reasoned "acting") (:requires-approval "waiting for you")))
     (force-mode-line-update))
    (:stream-chunk
     (cond ((plist-get payload :reset)
            (when-let ((e (gethash turn passepartout--turns))) (passepartout--entry-set e "")))
           ((plist-get payload :text)
            (unless (string-empty-p (plist-get payload :text))
              (passepartout--entry-add (passepartout--entry turn) (plist-get payload :text))))))
    (:response
     (when (eq (plist-get payload :action) :message)
       (passepartout--answered (current-buffer) message)))
    (:event
     (pcase (plist-get payload :action)
       (:gate-trace
        (passepartout--entry-gate (passepartout--entry turn) (passepartout--ruling-line payload) (plist-get payload :id)))
       (:question (passepartout--inquired payload))))))

(defun passepartout--ruling-line (payload)
  "PAYLOAD of a gate trace on one line."
  (let* ((trace (plist-get payload :trace))
         (line (format "%s %s" (plist-get payload :name) (passepartout--word (plist-get trace :decision)))))
    (dolist (v (plist-get trace :verdicts))
      (unless (eq (plist-get v :decision) :allow)
        (setq line (concat line (format ", %s (%s): %s" (plist-get v :gate) (plist-get v :code) (plist-get v :reason))))))
    (replace-regexp-in-string "[\n\r]+" " " (passepartout--clean (concat line "  " (plist-get payload :id))))))

(defun passepartout--word (keyword)
  "KEYWORD without its colon."
  (if keyword (string-remove-prefix ":" (symbol-name keyword)) ""))

(defun passepartout--state (state why)
  "Take note that the connection is STATE now because of WHY."
  (pcase state
    ('up (dolist (c (passepartout--chat-buffers)) (passepartout--join c)))
    ('failed (message "Passepartout: %s" (truncate-string-to-width (passepartout--clean why) 200))))
  (setq passepartout--focus-sent nil)
  (dolist (c (passepartout--chat-buffers))
    (with-current-buffer c
      (unless (eq state 'up) (setq passepartout--busy nil))
      (force-mode-line-update))))

;;;; Approvals

(defvar passepartout--pending nil "The questions that wait, as the daemon listed them.")

(defun passepartout--refresh-asks ()
  "Ask what waits for a person, and show it."
  (when (passepartout-wire-up-p)
    (passepartout-wire-ask :approvals nil #'passepartout--take-asks)))

(defun passepartout--take-asks (message)
  "Show what MESSAGE lists as waiting, and how the rest ended."
  (let ((payload (plist-get message :payload)))
    (when (eq (plist-get payload :action) :approvals)
      (setq passepartout--pending (plist-get payload :pending))
      (dolist (ask passepartout--pending) (passepartout--asked ask nil))
      (dolist (c (passepartout--chat-buffers))
        (with-current-buffer c
          (dolist (token (hash-table-keys passepartout--asks))
            (unless (seq-find (lambda (a) (equal (plist-get a :token) token)) passepartout--pending)
              (cl-flet ((fate (of) (plist-get (seq-find (lambda (a) (equal (plist-get a :token) token))
                                                        (plist-get payload of))
                                              :text)))
                (if (fate :running)
                    (passepartout--settle token (fate :running) t)
                  (passepartout--settle token (or (fate :ended) "It was answered."))))))))
      (when-let ((b (get-buffer "*passepartout approvals*")))
        (with-current-buffer b (passepartout--list-asks))))))

(defun passepartout--asked-p (turn)
  "Non-nil when an open question of TURN is shown here."
  (seq-find (lambda (a) (and turn (equal (nth 2 a) turn))) (hash-table-values passepartout--asks)))

(defun passepartout--asked (ask turn)
  "Show the question ASK of TURN in the chat of its session."
  (let ((token (plist-get ask :token)))
    (dolist (c (passepartout--chat-buffers (plist-get ask :session-id)))
      (with-current-buffer c
        (unless (gethash token passepartout--asks)
          (let ((e (passepartout--open-entry (format "Waiting for you: %s" (passepartout--clean (plist-get ask :name))))))
            (passepartout--entry-set e (passepartout--org (passepartout--describe ask)))
            (passepartout--writing
              (goto-char (passepartout--entry-end e))
              (let ((start (point)))
                (passepartout--insert "\n")
                (passepartout--ask-buttons token)
                (puthash token (list e (copy-marker start) turn) passepartout--asks)))))))
    (unless (passepartout--chat-buffers (plist-get ask :session-id))
      (message "Passepartout waits for your word: M-x passepartout-approvals"))))

(defun passepartout--describe (ask)
  "What ASK is about, for a person to decide."
  (string-join
   (delq nil
         (append
          (list (plist-get ask :why))
          (cl-loop for (k v) on (plist-get ask :args) by #'cddr
                   collect (format "- %s :: %s" (passepartout--word k) (if (stringp v) v (passepartout-wire-print v))))
          (cl-loop for s in (plist-get ask :steps)
                   collect (format "%s. %s %s (%s)" (plist-get s :step) (plist-get s :name)
                                   (passepartout-wire-print (plist-get s :args)) (passepartout--word (plist-get s :decision))))
          (mapcar (lambda (r) (concat "- asked because :: " r)) (plist-get ask :reasons))
          (list (format "- until :: %s" (plist-get ask :expires)))))
   "\n"))

(defun passepartout--button (label action)
  "Insert a button LABEL for ACTION."
  (let ((start (point)))
    (insert-text-button label 'action (lambda (_) (funcall action)) 'follow-link t 'face 'custom-button)
    (insert " ")
    (add-text-properties start (point) '(read-only t front-sticky (read-only) rear-nonsticky t))))

(defun passepartout--ask-buttons (token)
  "Insert the buttons that answer TOKEN."
  (passepartout--button "[Approve once]" (lambda () (passepartout-answer token :approved :once)))
  (passepartout--button "[For this session]" (lambda () (passepartout-answer token :approved :session)))
  (passepartout--button "[As a rule]" (lambda () (passepartout-answer token :approved :rule)))
  (passepartout--button "[Deny]" (lambda () (passepartout-answer token :denied :once (read-string "Reason (may be empty): "))))
  (passepartout--button "[Why]" (lambda () (passepartout-why token))))

(defun passepartout--settle (token text &optional more)
  "Replace the buttons of TOKEN by TEXT; MORE will be known later."
  (when-let ((a (gethash token passepartout--asks)))
    (unless more (remhash token passepartout--asks))
    (passepartout--writing
      (let ((end (passepartout--entry-end (car a))))
        (delete-region (nth 1 a) end)
        (goto-char end)
        (passepartout--insert (concat "\n" (passepartout--org text)))))))

(defun passepartout-answer (token decision scope &optional reason)
  "Answer the question TOKEN with DECISION for SCOPE because of REASON."
  (passepartout-wire-ask
   :hitl-respond nil
   (lambda (m)
     (message "%s" (passepartout--clean (plist-get (plist-get m :payload) :text)))
     (passepartout--refresh-asks))
   :token token :decision decision :scope scope :reason (or reason "")))

(defun passepartout--inquired (payload)
  "Show the agent's question PAYLOAD with a button for each option."
  (let ((token (plist-get payload :token))
        (e (passepartout--open-entry "Passepartout asks")))
    (passepartout--entry-set e (passepartout--org (plist-get payload :question)))
    (passepartout--writing
      (goto-char (passepartout--entry-end e))
      (cl-loop for o in (plist-get payload :options) for n from 1
               do (let ((n n))
                    (passepartout--insert "\n")
                    (passepartout--button
                     (format "[%d. %s]" n (replace-regexp-in-string "\n" " " (passepartout--clean o)))
                     (lambda ()
                       (passepartout-wire-ask :answer passepartout--session
                                              (let ((c (current-buffer))) (lambda (m) (passepartout--answered c m)))
                                              :token token :choice n))))))))

(defvar passepartout-approvals-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map "a" #'passepartout-approve-once)
    (define-key map "s" #'passepartout-approve-session)
    (define-key map "r" #'passepartout-approve-rule)
    (define-key map "d" #'passepartout-deny)
    (define-key map "w" #'passepartout-why)
    (define-key map (kbd "RET") #'passepartout-describe-approval)
    (define-key map "g" #'passepartout-approvals)
    map)
  "Keys of the list of approvals.")

(define-derived-mode passepartout-approvals-mode tabulated-list-mode "Approvals"
  "What waits for your word.
\\{passepartout-approvals-mode-map}"
  (setq tabulated-list-format [("Token" 14 t) ("Session" 10 t) ("What" 18 t) ("Arguments" 50 nil) ("Until" 20 t)])
  (tabulated-list-init-header))

;;;###autoload
(defun passepartout-approvals ()
  "Show what waits for your word."
  (interactive)
  (with-current-buffer (get-buffer-create "*passepartout approvals*")
    (unless (derived-mode-p 'passepartout-approvals-mode) (passepartout-approvals-mode))
    (passepartout--list-asks)
    (pop-to-buffer (current-buffer)))
  (passepartout--refresh-asks))

(defun passepartout--list-asks ()
  "Fill the list of approvals."
  (cl-flet ((cell (v) (replace-regexp-in-string "[\n\t]+" " " (passepartout--clean (if (stringp v) v (passepartout-wire-print v))))))
    (setq tabulated-list-entries
          (mapcar (lambda (a)
                    (list (plist-get a :token)
                          (vector (plist-get a :token) (cell (plist-get a :session-id)) (cell (plist-get a :name))
                                  (cell (plist-get a :args)) (cell (plist-get a :expires)))))
                  passepartout--pending)))
  (tabulated-list-print t))

(defun passepartout--token ()
  "The token on this line."
  (or (tabulated-list-get-id) (user-error "No question here")))

(defun passepartout-approve-once ()
  "Approve what is on this line, once."
  (interactive)
  (passepartout-answer (passepartout--token) :approved :once))

(defun passepartout-approve-session ()
  "Approve what is on this line, and its like in the session."
  (interactive)
  (passepartout-answer (passepartout--token) :approved :session))

(defun passepartout-approve-rule ()
  "Approve what is on this line, and put a rule for its like on trial."
  (interactive)
  (passepartout-answer (passepartout--token) :approved :rule))

(defun passepartout-deny (reason)
  "Deny what is on this line because of REASON, which the model is told."
  (interactive "sReason (may be empty): ")
  (passepartout-answer (passepartout--token) :denied :once reason))

(defun passepartout-describe-approval ()
  "Show all of what is on this line."
  (interactive)
  (let ((ask (seq-find (lambda (a) (equal (plist-get a :token) (passepartout--token))) passepartout--pending)))
    (passepartout--show "*passepartout approval*" (passepartout--org (passepartout--describe ask)))))

;;;; Showing things

(defun passepartout--show (name text)
  "Show TEXT, Org already, in the buffer NAME."
  (with-current-buffer (get-buffer-create name)
    (let ((inhibit-read-only t))
      (erase-buffer)
      (insert text)
      (goto-char (point-min))
      (unless (derived-mode-p 'org-mode) (org-mode))
      (setq-local org-confirm-babel-evaluate t))
    (view-mode 1)
    (display-buffer (current-buffer))
    (current-buffer)))

;;;###autoload
(defun passepartout-why (id)
  "Explain the decision ID: every gate and its verdict."
  (interactive
   (list (or (get-text-property (point) 'passepartout-ruling)
             (and (derived-mode-p 'passepartout-approvals-mode) (tabulated-list-get-id))
             (read-string "Decision (empty for the last): "))))
  (unless (string-match-p "\\`\\(?:[[:alnum:]][[:alnum:]-]*\\)?\\'" id) (user-error "No id: %s" id))
  (let ((out (generate-new-buffer " *passepartout-why*" t)))
    (make-process
     :name "passepartout-why" :buffer out :noquery t :connection-type 'pipe :coding 'utf-8
     :command (append (list passepartout-program "why") (and (not (string-empty-p id)) (list id)))
     :sentinel (lambda (p _)
                 (unless (process-live-p p)
                   (passepartout--show "*passepartout why*"
                                       (with-current-buffer out (passepartout--org (buffer-string))))
                   (kill-buffer out))))))

;;;###autoload
(defun passepartout-agenda (span)
  "Show what is due within SPAN, such as today, week or next 3 days."
  (interactive (list (completing-read "Span: " '("today" "tomorrow" "week" "next week" "month" "overdue") nil nil nil nil "week")))
  (passepartout-wire-tool "agenda" (list :span span) "The user looks at the agenda in Emacs." passepartout-session
                          (lambda (m) (passepartout--show "*passepartout agenda*"
                                                          (passepartout--org (plist-get (plist-get m :payload) :text))))))

;;;###autoload
(defun passepartout-capture (title &optional body)
  "Add TITLE to the inbox as a task, with BODY: the region, if it is active."
  (interactive (list (read-string "Task: ")
                     (and (use-region-p) (buffer-substring-no-properties (region-beginning) (region-end)))))
  (when (and body (passepartout--private-p)) (user-error "This is private"))
  (passepartout-wire-tool "capture" (append (list :title title :todo "TODO") (and body (list :body body)))
                          "The user captures it from Emacs." passepartout-session #'passepartout--said))

;;;###autoload
(defun passepartout-undo (count)
  "Undo the last COUNT things the agent did to files and notes."
  (interactive "p")
  (passepartout-wire-tool "undo" (list :count count) "The user takes it back from Emacs." passepartout-session #'passepartout--said))

(defun passepartout--said (message)
  "Say what MESSAGE answered."
  (message "%s" (passepartout--clean (plist-get (plist-get message :payload) :text)))
  (passepartout--refresh-asks)
  (passepartout-sync))

;;;; Recall

(defvar-local passepartout--origin nil "Where a chosen link goes.")

(defvar passepartout-recall-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'passepartout-recall-insert)
    (define-key map "o" #'passepartout-recall-open)
    map)
  "Keys of the list of notes.")

(define-derived-mode passepartout-recall-mode tabulated-list-mode "Recall"
  "Notes that were found: RET inserts a link where you came from.
\\{passepartout-recall-mode-map}"
  (setq tabulated-list-format [("Heading" 50 nil) ("File" 40 t)])
  (tabulated-list-init-header))

;;;###autoload
(defun passepartout-recall (text)
  "Find notes about TEXT and offer to insert a link to one at point."
  (interactive "sWhat about: ")
  (let ((origin (and (not buffer-read-only) (point-marker))))
    (passepartout-wire-ask
     :health-check nil
     (lambda (h)
       (let ((memex (plist-get (plist-get h :payload) :memex)))
         (passepartout-wire-ask :recall passepartout-session
                                (lambda (m) (passepartout--recalled m memex origin)) :text text :limit 20))))))

(defun passepartout--recalled (message memex origin)
  "List the hits of MESSAGE, which lie below MEMEX; links go to ORIGIN."
  (with-current-buffer (get-buffer-create "*passepartout recall*")
    (passepartout-recall-mode)
    (setq passepartout--origin origin
          tabulated-list-entries
          (mapcar (lambda (h)
                    (list (plist-put (copy-sequence h) :path (expand-file-name (plist-get h :file) memex))
                          (vector (passepartout--clean (plist-get h :title)) (passepartout--clean (plist-get h :file)))))
                  (plist-get (plist-get message :payload) :hits)))
    (tabulated-list-print)
    (display-buffer (current-buffer))))

(defun passepartout--link (hit)
  "An Org link to HIT."
  (let ((title (passepartout--clean (plist-get hit :title))) (id (plist-get hit :id)))
    (org-link-make-string
     (if (or (null id) (string-prefix-p "~" id)) ; computed, not written in the file
         (format "file:%s::*%s" (abbreviate-file-name (plist-get hit :path)) title)
       (concat "id:" id))
     title)))

(defun passepartout-recall-insert ()
  "Insert a link to the note on this line where you came from."
  (interactive)
  (let ((hit (or (tabulated-list-get-id) (user-error "No note here"))) (origin passepartout--origin))
    (unless (and origin (marker-buffer origin)) (user-error "Nowhere to insert it"))
    (with-current-buffer (marker-buffer origin)
      (save-excursion (goto-char origin) (insert (passepartout--link hit))))
    (pop-to-buffer (marker-buffer origin))))

(defun passepartout-recall-open ()
  "Visit the note on this line."
  (interactive)
  (let ((hit (or (tabulated-list-get-id) (user-error "No note here"))))
    (passepartout--visit (plist-get hit :path) (plist-get hit :line))))

(defun passepartout--visit (file line)
  "Show FILE at LINE."
  (pop-to-buffer (passepartout--file-buffer file))
  (widen)
  (goto-char (point-min))
  (forward-line (1- (or line 1)))
  (when (derived-mode-p 'org-mode)
    (with-no-warnings ; renamed in Org 9.6
      (if (fboundp 'org-fold-show-context) (org-fold-show-context) (org-show-context)))))

(defun passepartout--file-buffer (file)
  "A buffer on FILE, made without questions and without local code."
  (when (or (not (file-name-absolute-p file)) (file-remote-p file)) (error "Not a file of this machine: %s" file))
  (let ((enable-local-variables :safe) (enable-local-eval nil) (large-file-warning-threshold nil))
    (let ((buffer (find-file-noselect file t)))
      (with-current-buffer buffer
        (unless (or (buffer-modified-p) (verify-visited-file-modtime buffer))
          (revert-buffer t t t)))
      buffer)))

;;;; Focus

;;;###autoload
(define-minor-mode passepartout-focus-mode
  "Let the agent know which heading of this file point is in.
It then sees that heading and what belongs to it first.  Headings with a
tag of `passepartout-private-tags' are not reported."
  :lighter " Eye"
  (if passepartout-focus-mode
      (progn
        (passepartout-wire-connect)
        (add-hook 'after-save-hook #'passepartout--look nil t)
        (unless passepartout--focus-timer
          (setq passepartout--focus-timer (run-with-idle-timer passepartout-focus-delay t #'passepartout--look))))
    (remove-hook 'after-save-hook #'passepartout--look t)
    (unless (seq-find (lambda (b) (buffer-local-value 'passepartout-focus-mode b)) (buffer-list))
      (when passepartout--focus-timer (cancel-timer passepartout--focus-timer))
      (setq passepartout--focus-timer nil)
      (passepartout--report nil))))

(defun passepartout--private-p ()
  "Non-nil when point is in text with a private tag."
  (and (derived-mode-p 'org-mode)
       (seq-intersection passepartout-private-tags
                         (append (and (not (org-before-first-heading-p)) (org-get-tags nil nil))
                                 (mapcar #'substring-no-properties org-file-tags)))))

(defun passepartout--place ()
  "Where point is, as the daemon is told; nil for nothing it should know."
  (when (and passepartout-focus-mode buffer-file-name (derived-mode-p 'org-mode)
             (not (file-remote-p buffer-file-name)) (not (passepartout--private-p)))
    (save-restriction
      (widen)
      (let ((id (and (not (org-before-first-heading-p)) (org-entry-get nil "ID"))))
        (cond
         (id (list :id id))
         ;; Lines of a buffer that is not saved are not those of the file.
         ((not (buffer-modified-p))
          (list :file buffer-file-name :line (save-excursion
                                               (unless (org-before-first-heading-p) (org-back-to-heading t))
                                               (line-number-at-pos)))))))))

(defun passepartout--look ()
  "Report point if this buffer is watched and the heading is new."
  (passepartout-sync)
  (when passepartout-focus-mode
    (let ((place (passepartout--place)))
      (when (or place (passepartout--private-p))
        (passepartout--report place)))))

(defun passepartout--report (place)
  "Tell the daemon PLACE, unless it knows."
  (when (and (passepartout-wire-up-p) (not (equal place (or passepartout--focus-sent (list nil)))))
    (setq passepartout--focus-sent (or place (list nil)))
    (passepartout-wire-request (list :type :event :payload (append '(:sensor :point-update) place))
                               passepartout-session #'ignore)))

;;;; Files that change underneath

(defvar-local passepartout--conflict nil "Non-nil while file and buffer both have changed.")

(defun passepartout-sync ()
  "Read again what has changed on disk; show where that cannot be done.
Only buffers with `passepartout-focus-mode' are looked at."
  (dolist (b (buffer-list))
    (when (and (buffer-local-value 'passepartout-focus-mode b) (buffer-file-name b))
      (with-current-buffer b
        (cond
         ((verify-visited-file-modtime b)
          (when passepartout--conflict (passepartout--conflict-over)))
         ((not (file-exists-p buffer-file-name)))
         ((buffer-modified-p)
          (unless passepartout--conflict
            (setq passepartout--conflict t)
            (setq-local header-line-format
                        (propertize " Changed on disk and here.  M-x passepartout-resolve " 'face 'warning))
            (message "%s has changed on disk and here: M-x passepartout-resolve" (buffer-name))))
         (t (revert-buffer t t t)
            (when passepartout--conflict (passepartout--conflict-over))))))))

(defun passepartout--conflict-over ()
  "Take the conflict's sign away."
  (setq passepartout--conflict nil)
  (kill-local-variable 'header-line-format))

(defun passepartout-resolve (choice)
  "Settle the conflict between buffer and file by CHOICE.
It is one of the characters m (keep mine), t (take theirs), d (diff)."
  (interactive (list (car (read-multiple-choice "Changed on disk and here:"
                                                '((?m "mine") (?t "theirs") (?d "diff"))))))
  (pcase choice
    (?d (diff-buffer-with-file))
    (?t (revert-buffer t t t) (passepartout--conflict-over))
    (?m (set-visited-file-modtime) (passepartout--conflict-over))))

;;;; Changes to review

(defvar-local passepartout--accept nil "Called when the change is accepted.")
(defvar-local passepartout--refuse nil "Called when it is not.")

(defvar passepartout-review-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'passepartout-review-accept)
    (define-key map (kbd "C-c C-k") #'passepartout-review-refuse)
    map)
  "Keys of a change to review.")

(define-derived-mode passepartout-review-mode diff-mode "Review"
  "Review of a change, made when you accept it.
\\{passepartout-review-mode-map}"
  (setq buffer-read-only t)
  (add-hook 'kill-buffer-hook #'passepartout--review-killed nil t))

(defun passepartout--review (title text accept refuse)
  "Show TEXT, a diff called TITLE; call ACCEPT or REFUSE, once."
  (with-current-buffer (generate-new-buffer (format "*passepartout review: %s*" title))
    (insert text)
    (goto-char (point-min))
    (passepartout-review-mode)
    (setq passepartout--accept accept passepartout--refuse refuse
          header-line-format (substitute-command-keys
                              "\\<passepartout-review-mode-map> \\[passepartout-review-accept] accepts, \\[passepartout-review-refuse] refuses"))
    (display-buffer (current-buffer))
    (current-buffer)))

(defun passepartout-review-accept ()
  "Make the change."
  (interactive)
  (let ((f (or passepartout--accept (user-error "Nothing to accept"))))
    (setq passepartout--accept nil passepartout--refuse nil)
    (kill-buffer)
    (funcall f)))

(defun passepartout-review-refuse ()
  "Do not make the change."
  (interactive)
  (kill-buffer))

(defun passepartout--review-killed ()
  "A review that is closed was refused."
  (let ((f passepartout--refuse))
    (setq passepartout--accept nil passepartout--refuse nil)
    (when f (funcall f))))

(defun passepartout--diff (name old new)
  "A unified diff of one hunk from OLD to NEW, of the file NAME."
  (let* ((a (vconcat (split-string old "\n"))) (b (vconcat (split-string new "\n")))
         (la (length a)) (lb (length b)) (most (min la lb)) (pre 0) (suf 0))
    (while (and (< pre most) (equal (aref a pre) (aref b pre))) (cl-incf pre))
    (while (and (< suf (- most pre)) (equal (aref a (- la suf 1)) (aref b (- lb suf 1)))) (cl-incf suf))
    (let ((from (max 0 (- pre 3))) (after (min suf 3)))
      (cl-flet ((lines (sign v start end) (mapconcat (lambda (l) (concat sign l "\n")) (seq-subseq v start end) "")))
        (concat
         (format "--- %s\n+++ %s\n@@ -%d,%d +%d,%d @@\n" name name
                 (1+ from) (- (+ la after) suf from) (1+ from) (- (+ lb after) suf from))
         (lines " " a from pre)
         (lines "-" a pre (- la suf))
         (lines "+" b pre (- lb suf))
         (lines " " a (- la suf) (+ (- la suf) after)))))))

(defun passepartout--edit-request (payload session)
  "Let the person decide on the edit PAYLOAD the daemon wants in SESSION."
  (let ((token (plist-get payload :token)))
    (cl-flet ((reply (outcome text)
                (passepartout-wire-ask :edited session #'ignore :token token :outcome outcome :text text)))
      (condition-case err
          (pcase (plist-get payload :action)
            (:show (passepartout--review
                    token (format "%s\n\nShow %s, line %s?\n" (passepartout--clean (plist-get payload :why))
                                  (plist-get payload :file) (or (plist-get payload :line) 1))
                    (lambda ()
                      (passepartout--visit (plist-get payload :file) (plist-get payload :line))
                      (reply :done "It is shown."))
                    (lambda () (reply :refused "The user did not want to see it."))))
            ((or :insert :replace)
             (let* ((file (plist-get payload :file))
                    (buffer (passepartout--file-buffer file))
                    (old (passepartout--whole buffer))
                    (new (passepartout--edited old payload)))
               (passepartout--review
                token (concat (passepartout--clean (plist-get payload :why)) "\n\n" (passepartout--diff file old new))
                (lambda () (apply #'reply (passepartout--apply buffer old new)))
                (lambda () (reply :refused "The user refused the change.")))))
            (_ (reply :failed "This Emacs does not know how to do that.")))
        (error (reply :failed (error-message-string err)))))))

(defun passepartout--whole (buffer)
  "All text of BUFFER."
  (with-current-buffer buffer
    (save-restriction (widen) (buffer-substring-no-properties (point-min) (point-max)))))

(defun passepartout--edited (old payload)
  "OLD after the edit PAYLOAD."
  (pcase (plist-get payload :action)
    (:insert
     (with-temp-buffer
       (insert old)
       (if-let ((line (plist-get payload :line)))
           (progn (goto-char (point-min))
                  (unless (and (> line 0) (zerop (forward-line (1- line)))) (error "There is no line %s" line)))
         (goto-char (point-max)))
       (unless (bolp) (insert "\n"))
       (insert (plist-get payload :text))
       (unless (bolp) (insert "\n"))
       (buffer-string)))
    (:replace
     (let* ((was (plist-get payload :old)) (at (and (not (string-empty-p was)) (string-search was old))))
       (cond ((null at) (error "The passage is not there"))
             ((string-search was old (1+ at)) (error "The passage is there more than once"))
             (t (concat (substring old 0 at) (plist-get payload :text) (substring old (+ at (length was))))))))))

(defun passepartout--apply (buffer old new)
  "Turn BUFFER from OLD into NEW; return an outcome and a sentence."
  (cond
   ((not (buffer-live-p buffer)) (list :failed "The buffer is gone."))
   ((not (equal old (passepartout--whole buffer)))
    (list :conflict "The text has changed since it was shown; nothing was done."))
   ((not (verify-visited-file-modtime buffer))
    (list :conflict "The file has changed on disk; nothing was done."))
   (t
    (with-current-buffer buffer
      (let ((dirty (buffer-modified-p)))
        (passepartout--put old new)
        (if dirty
            (list :done "The change is in the buffer, with the user's own unsaved changes.")
          (save-buffer)
          (list :done "The change was made and saved.")))))))

(defun passepartout--put (old new &optional start)
  "Replace OLD, which begins at START, by NEW, touching only what differs."
  (save-excursion
    (save-restriction
      (widen)
      (let* ((start (or start (point-min)))
             (pre (or (let ((c (compare-strings old nil nil new nil nil))) (and (integerp c) (1- (abs c)))) (length old)))
             (most (- (min (length old) (length new)) pre)) (suf 0))
        (while (and (< suf most) (eq (aref old (- (length old) suf 1)) (aref new (- (length new) suf 1)))) (cl-incf suf))
        (atomic-change-group
          (goto-char (+ start pre))
          (delete-region (point) (+ start (- (length old) suf)))
          (insert (substring new pre (- (length new) suf))))))))

;;;; Subtrees

(defun passepartout--subtree ()
  "The subtree at point: its start, its end and its text."
  (unless (derived-mode-p 'org-mode) (user-error "Not an Org buffer"))
  (when (org-before-first-heading-p) (user-error "Not in a heading"))
  (when (passepartout--private-p) (user-error "This heading is private"))
  (save-excursion
    (org-back-to-heading t)
    (let ((start (point)) (end (save-excursion (org-end-of-subtree t t) (point))))
      (save-excursion
        (while (re-search-forward org-tag-group-re end t)
          (when (passepartout--private-p) (user-error "A heading in here is private"))))
      (list start end (buffer-substring-no-properties start end)))))

;;;###autoload
(defun passepartout-ask-about-subtree (question)
  "Ask QUESTION about the subtree at point; the answer becomes its child."
  (interactive "sAsk about this subtree: ")
  (pcase-let* ((`(,start ,_ ,text) (passepartout--subtree))
               (at (copy-marker start)) (level (save-excursion (goto-char start) (org-outline-level))))
    (passepartout-say
     (concat question "\n\nIt is about this text:\n\n" text) passepartout-session
     (lambda (m)
       (let ((payload (plist-get m :payload)))
         (if (not (and (eq (plist-get payload :status) :done) (marker-buffer at)))
             (message "No answer to insert: %s" (passepartout--clean (plist-get payload :text)))
           (with-current-buffer (marker-buffer at)
             (save-excursion
               (goto-char at)
               (org-end-of-subtree t t)
               (unless (bolp) (insert "\n"))
               (insert (make-string (1+ level) ?*) " " (replace-regexp-in-string "\n" " " question) "\n"
                       (passepartout--org (string-trim-right (plist-get payload :text))) "\n")))
           (message "The answer stands below the heading.")))))))

;;;###autoload
(defun passepartout-refactor-subtree (wish)
  "Have the subtree at point rewritten to your WISH; review it as a diff."
  (interactive "sRewrite this subtree how: ")
  (pcase-let* ((`(,start ,end ,text) (passepartout--subtree))
               (at (copy-marker start)) (to (copy-marker end t)) (file (or buffer-file-name (buffer-name))))
    (passepartout-say
     (concat "Rewrite this Org subtree: " wish
             "\nAnswer with nothing but the whole new subtree, in one block fenced as ```org.\n\n" text)
     passepartout-session
     (lambda (m)
       (let ((new (and (eq (plist-get (plist-get m :payload) :status) :done)
                       (passepartout--fenced (plist-get (plist-get m :payload) :text) text))))
         (if (not new)
             (message "There is no subtree in the answer")
           (passepartout--review
            "subtree" (passepartout--diff file text new)
            (lambda ()
              (if (not (and (marker-buffer at)
                            (equal text (with-current-buffer (marker-buffer at) (buffer-substring-no-properties at to)))))
                  (message "The subtree has changed meanwhile; nothing was done")
                (with-current-buffer (marker-buffer at) (passepartout--put text new (marker-position at)))
                (message "Done; undo takes it back")))
            (lambda () (message "Left as it was")))))))))

(defun passepartout--fenced (answer old)
  "The subtree in ANSWER that is to replace OLD; nil if there is none."
  (let ((body (if (string-match "\\(?:\\`\\|\n\\)```+[ \t]*\\(?:org\\)?[ \t]*\n\\(\\(?:.*\n\\)*?\\)```" answer)
                  (match-string 1 answer)
                answer)))
    (setq body (concat (string-trim body) "\n"))
    (and (string-match "\\`\\(\\*+\\) " body)
         (string-match "\\`\\*+ " old)
         (let ((level (progn (string-match "\\`\\(\\*+\\) " body) (length (match-string 1 body)))))
           (and (= level (progn (string-match "\\`\\(\\*+\\) " old) (length (match-string 1 old))))
                (not (string-match-p (format "\n\\*\\{1,%d\\} " level) body))
                (passepartout--clean body))))))

(add-hook 'passepartout-wire-frame-functions #'passepartout--frame)
(add-hook 'passepartout-wire-state-functions #'passepartout--state)

(provide 'passepartout)
;;; passepartout.el ends here
