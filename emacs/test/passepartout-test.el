;;; passepartout-test.el --- Tests of the Emacs client  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: Apache-2.0

;;; Commentary:

;; Run by cmd/passepartout/emacs_test.go in a real Emacs against the real
;; daemon and a scripted model: `go test ./cmd/passepartout -run Emacs'.
;; The environment says where they are: MEMEX_DIR, TEST_BINARY, GO_ON.

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'passepartout)

(setq passepartout-program (or (getenv "TEST_BINARY") "passepartout")
      passepartout-focus-delay 0.05
      create-lockfiles nil
      make-backup-files nil
      enable-local-variables nil)

(defmacro passepartout-test-until (&rest body)
  "Let Emacs work until BODY is non-nil; fail after a while."
  (declare (indent 0))
  `(let ((deadline (+ (float-time) (or (cl-parse-integer (or (getenv "WAIT") "") :junk-allowed t) 90))) value)
     (while (and (not (setq value (progn ,@body))) (< (float-time) deadline))
       (accept-process-output nil 0.05))
     (unless value (ert-fail (list "waited in vain for" ',body (passepartout-test-said))))
     value))

(defun passepartout-test-said (&optional session)
  "All text of the chat of SESSION."
  (let ((b (car (passepartout--chat-buffers (or session passepartout-session)))))
    (if b (with-current-buffer b (buffer-substring-no-properties (point-min) (point-max))) "")))

(defun passepartout-test-memex (name)
  "The path of NAME in the memex."
  (expand-file-name name (getenv "MEMEX_DIR")))

(defun passepartout-test-file (name text)
  "Write TEXT to NAME in the memex and return its path."
  (let ((path (passepartout-test-memex name)) (coding-system-for-write 'utf-8))
    (make-directory (file-name-directory path) t)
    (write-region text nil path nil 'quiet)
    path))

(defun passepartout-test-text (path)
  "The text of PATH."
  (if (file-exists-p path)
      (with-temp-buffer (let ((coding-system-for-read 'utf-8)) (insert-file-contents path)) (buffer-string))
    ""))

(defun passepartout-test-cli (&rest args)
  "Run the program with ARGS, as another client; return its exit code and output."
  (with-temp-buffer
    (let ((p (make-process :name "cli" :buffer (current-buffer) :connection-type 'pipe :noquery t
                           :command (cons passepartout-program args) :sentinel #'ignore)))
      (when (process-live-p p) (ignore-errors (process-send-eof p))) ; it may be faster
      (passepartout-test-until (not (process-live-p p)))
      (accept-process-output p 0.05)
      (list (process-exit-status p) (buffer-string)))))

(defun passepartout-test-ask (action &rest args)
  "The payload of the answer to ACTION with ARGS."
  (let (got)
    (apply #'passepartout-wire-ask action passepartout-session (lambda (m) (setq got (plist-get m :payload))) args)
    (passepartout-test-until got)))

(defun passepartout-test-push (label)
  "Push the last button called LABEL in the current chat."
  (with-current-buffer (passepartout--chat passepartout-session)
    (goto-char (point-max))
    (should (search-backward label nil t))
    (push-button (point))))

(defmacro passepartout-test-in (session &rest body)
  "Evaluate BODY connected and with a chat of SESSION."
  (declare (indent 1))
  `(let ((passepartout-session ,session))
     (passepartout--chat passepartout-session)
     (passepartout-test-until (passepartout-wire-up-p))
     ,@body))

;;;; Without a daemon

(ert-deftest passepartout-test-what-is-printed-reads-back ()
  (dolist (datum '((:type :event :payload (:text "a \"b\" \\ ü 日本 🎉\n" :n -12 :flag t :none nil :list ("x" (:y "z")))) ("")))
    (should (equal datum (passepartout-wire-read (passepartout-wire-print datum)))))
  (should (equal '(1 2.5 nil t) (passepartout-wire-read "(1 2.5 () T)"))))

(ert-deftest passepartout-test-frames-count-bytes ()
  (should (equal (passepartout-wire-frame '(:text "é"))
                 (concat "00000C" (encode-coding-string "(:TEXT \"é\")" 'utf-8)))))

(ert-deftest passepartout-test-reader-syntax-is-refused ()
  (dolist (text '("#.(error \"run\")" "(:a #s(hash-table))" "#1=(#1#)" "'x" "`(x ,y)" "(:a . \"b" "\"open" "(" ")" "" "(a) (b)" "#[1 2]" "?a #x10"
                  "(:a #&5\"x\")" "(:a |x|)" "(a \\b)"))
    (should-error (passepartout-wire-read text) :type 'passepartout-wire-error))
  (should-error (passepartout-wire-read (concat (make-string 65 ?\() (make-string 65 ?\)))) :type 'passepartout-wire-error)
  (should (passepartout-wire-read (concat (make-string 64 ?\() "1" (make-string 64 ?\)))))
  (should-error (passepartout-wire-read (concat "(" (apply #'concat (make-list 262150 "1 ")) ")")) :type 'passepartout-wire-error))

(ert-deftest passepartout-test-a-peer-names-nothing-here ()
  (let ((s (car (passepartout-wire-read "(:NEVER-HEARD-OF-THIS-4711)"))))
    (should (symbolp s))
    (should-not (intern-soft ":never-heard-of-this-4711"))))

(ert-deftest passepartout-test-raw-bytes-are-not-sent ()
  (should (equal (passepartout-wire-print (concat "a" (string #x3fffc1) "b")) "\"a�b\"")))

(ert-deftest passepartout-test-words-of-the-agent-are-only-text ()
  (let ((org (passepartout--org "* You\n:GATES:\n#+setupfile: http://x\n[[elisp:(kill-emacs)][x]] <shell:x> elisp:(x)\n\x1b]0;x\x07 \u202edlrow\n```emacs-lisp\n* x\n```\nend")))
    (should-not (string-match-p "^\\*\\|^:GATES:\\|^#\\+setupfile\\|elisp:(\\|shell:x\\|\x1b\\|\u202e" org))
    (should (string-match-p "^#\\+begin_src emacs-lisp\n,\\* x\n#\\+end_src\nend" org))
    (with-temp-buffer
      (insert org)
      (org-mode)
      (should-not (org-element-map (org-element-parse-buffer) '(headline drawer keyword) #'identity))
      (should-not (org-element-map (org-element-parse-buffer) 'link
                    (lambda (l) (member (org-element-property :type l) '("elisp" "shell"))))))))

(ert-deftest passepartout-test-a-diff-applies ()
  (dolist (c '(("a\nb\nc\n" . "a\nB\nc\n") ("" . "x\n") ("a\n" . "") ("a\nb\nc\nd\ne\nf\ng\nh\n" . "a\nb\nc\nd\nX\nf\ng\nh\n") ("a\n" . "a\nb\n")))
    (with-temp-buffer
      (insert (car c))
      (passepartout--put (car c) (cdr c))
      (should (equal (buffer-string) (cdr c))))
    (should (string-match-p "\\`--- f\n\\+\\+\\+ f\n@@ -[0-9]+,[0-9]+ \\+[0-9]+,[0-9]+ @@\n" (passepartout--diff "f" (car c) (cdr c))))))

(ert-deftest passepartout-test-nonsense-ends-the-connection-and-nothing-else ()
  (dolist (nonsense '("ZZZZZZ(:TYPE :EVENT)" "000000" "000003(:a" "00000F(:TYPE #.(foo))" "000004(\"\\\")"
                      "000009\"a datum\"" "00002E(:TYPE :EVENT :PAYLOAD (:ACTION :HANDSHAKE :V 9))"))
    (let* ((path (make-temp-name (expand-file-name "pp" (or (getenv "XDG_RUNTIME_DIR") temporary-file-directory))))
           (passepartout-socket path) (passepartout-start-daemon nil) (states nil)
           (watch (lambda (s why) (push (cons s why) states)))
           (server (make-network-process :name "nonsense" :server t :family 'local :service path :coding 'binary :noquery t
                                         :log (lambda (_ client _) (process-send-string client nonsense) (process-send-eof client)))))
      (unwind-protect
          (progn
            (passepartout-wire-disconnect)
            (setq states nil)
            (add-hook 'passepartout-wire-state-functions watch)
            (passepartout-wire-connect)
            (passepartout-test-until (assq 'down states))
            (passepartout-test-until (assq 'failed states))
            (should-not (assq 'up states))
            (should-not (passepartout-wire-up-p)))
        (remove-hook 'passepartout-wire-state-functions watch)
        (passepartout-wire-disconnect)
        (delete-process server)
        (ignore-errors (delete-file path))))))

;;;; With the daemon

(ert-deftest passepartout-test-connects-and-starts-the-daemon ()
  (passepartout-test-in "main"
    (should (equal (file-name-as-directory (plist-get (passepartout-test-ask :health-check) :memex))
                   (file-name-as-directory (getenv "MEMEX_DIR"))))))

(ert-deftest passepartout-test-a-question-is-answered-with-its-gate-trace ()
  (passepartout-test-in "chat"
    (with-current-buffer (passepartout--chat "chat")
      (goto-char (point-max))
      (insert "code please")
      (passepartout-send)
      (passepartout-test-until (string-match-p "#\\+end_src" (passepartout-test-said)))
      (should (string-match-p "^\\* You\ncode please\n\\* Passepartout\n:GATES:\n- emacs.message allow" (passepartout-test-said)))
      (goto-char (point-min))
      (search-forward "- emacs.message")
      (should (invisible-p (point)))
      (should (get-text-property (point) 'passepartout-ruling))
      (should (equal "" (buffer-substring passepartout--input (point-max))))
      (should-error (progn (goto-char (point-min)) (insert "x")) :type 'text-read-only)
      (font-lock-ensure)
      (goto-char (point-min))
      (search-forward "(defun")
      (should (memq 'font-lock-keyword-face (ensure-list (get-text-property (1- (point)) 'face)))))))

(ert-deftest passepartout-test-the-answer-is-shown-while-the-model-speaks ()
  (passepartout-test-in "stream"
    (passepartout-say "tell me a long story" "stream")
    (passepartout-test-until (string-match-p "first part" (passepartout-test-said)))
    (should-not (string-match-p "second part" (passepartout-test-said)))
    (write-region "" nil (getenv "GO_ON") nil 'quiet)
    (passepartout-test-until (string-match-p "second part came later\\. *\n" (passepartout-test-said)))))

(ert-deftest passepartout-test-a-megabyte-arrives-whole ()
  (passepartout-test-in "big"
    (passepartout-say "say a megabyte" "big")
    (passepartout-test-until (string-match-p "THE-END" (passepartout-test-said)))
    (should (> (string-bytes (passepartout-test-said)) (* 1024 1024)))))

(ert-deftest passepartout-test-other-scripts-travel-both-ways ()
  (passepartout-test-in "scripts"
    (let ((words "Grüße, 日本語, Ελλάδα, שלום, 🎉 and \\ \"quotes\" (parentheses)"))
      (passepartout-say (concat "echo " words) "scripts")
      (passepartout-test-until (string-match-p (regexp-quote (concat "I heard: " words)) (passepartout-test-said))))))

(ert-deftest passepartout-test-a-yes-carries-it-out ()
  (passepartout-test-in "approve"
    (passepartout-say "keep the lamp in mind" "approve")
    (passepartout-test-until (string-match-p "Approve once" (passepartout-test-said)))
    (should (string-match-p "^\\* Waiting for you: tool.capture" (passepartout-test-said)))
    (should-not (string-match-p "the lamp" (passepartout-test-text (passepartout-test-memex "inbox/inbox.org"))))
    (passepartout-test-push "[Approve once]")
    (passepartout-test-until (string-match-p "the lamp" (passepartout-test-text (passepartout-test-memex "inbox/inbox.org"))))
    (passepartout-test-until (not (string-match-p "Approve once" (passepartout-test-said))))
    (passepartout-test-until (string-match-p "That is done" (passepartout-test-said)))))

(ert-deftest passepartout-test-a-no-does-not ()
  (passepartout-test-in "deny"
    (passepartout-say "keep the chair in mind" "deny")
    (passepartout-test-until (string-match-p "\\[Deny\\]" (passepartout-test-said)))
    (passepartout-approvals)
    (with-current-buffer "*passepartout approvals*"
      (passepartout-test-until (progn (goto-char (point-min)) (search-forward "tool.capture" nil t)))
      (passepartout-deny "there are enough chairs"))
    (passepartout-test-until (not (string-match-p "\\[Deny\\]" (passepartout-test-said))))
    (passepartout-test-until (null passepartout--pending))
    (should-not (string-match-p "the chair" (passepartout-test-text (passepartout-test-memex "inbox/inbox.org"))))))

(ert-deftest passepartout-test-one-conversation-and-one-approval-in-two-clients ()
  (passepartout-test-in "shared"
    (should (equal 4 (car (passepartout-test-cli "chat" "-s" "shared" "keep the table in mind"))))
    (passepartout--refresh-asks)
    (passepartout-test-until (string-match-p "Approve once" (passepartout-test-said)))
    (should (= 1 (length (plist-get (passepartout-test-ask :approvals) :pending))))
    (should (string-match-p "tool.capture" (cadr (passepartout-test-cli "approvals"))))
    (passepartout-test-push "[Approve once]")
    (passepartout-test-until (string-match-p "the table" (passepartout-test-text (passepartout-test-memex "inbox/inbox.org"))))
    (passepartout-test-until (not (string-match-p "tool.capture" (cadr (passepartout-test-cli "approvals")))))
    ;; The other way round: Emacs asks, the command line answers.
    (passepartout-say "keep the stove in mind" "shared")
    (passepartout-test-until (string-match-p "Approve once" (passepartout-test-said)))
    (should (equal 0 (car (passepartout-test-cli "approve" (plist-get (car (plist-get (passepartout-test-ask :approvals) :pending)) :token)))))
    (passepartout-test-until (string-match-p "the stove" (passepartout-test-text (passepartout-test-memex "inbox/inbox.org"))))
    (passepartout-test-until (progn (passepartout--refresh-asks) (not (string-match-p "Approve once" (passepartout-test-said)))))
    (should (string-match-p "keep the table in mind" (cadr (passepartout-test-cli "send" "-s" "shared" "(:TYPE :REQUEST :PAYLOAD (:ACTION :CONVERSATION))"))))))

(ert-deftest passepartout-test-what-other-clients-say-and-what-was-refused-is-shown ()
  (passepartout-test-in "shared"
    (should (equal 0 (car (passepartout-test-cli "chat" "-s" "shared" "echo said at a terminal"))))
    (passepartout-test-until (string-match-p "^\\* You\necho said at a terminal\n\\* Passepartout\n:GATES:\n.*\n:END:\nI heard: said at a terminal" (passepartout-test-said)))
    ;; Our own words are not said twice.
    (passepartout-say "echo said here" "shared")
    (passepartout-test-until (string-match-p "I heard: said here" (passepartout-test-said)))
    (should (= 1 (cl-count "echo said here" (split-string (passepartout-test-said) "\n") :test #'equal)))
    (passepartout--frame '(:type :log :payload (:action :notice :text "A message of telegram:666 (Mallory) was refused")))
    (should (string-match-p "telegram:666 (Mallory) was refused" (passepartout-test-said)))))

(ert-deftest passepartout-test-a-session-survives-emacs ()
  (passepartout-test-in "kept"
    (passepartout-say "echo remember Ünïcode" "kept")
    (passepartout-test-until (string-match-p "I heard: remember" (passepartout-test-said)))
    (kill-buffer (passepartout--chat "kept"))
    (passepartout-wire-disconnect)
    (passepartout--chat "kept")
    (passepartout-test-until (string-match-p "^\\* You\necho remember Ünïcode\n\\* Passepartout\nI heard: remember Ünïcode" (passepartout-test-said)))))

(ert-deftest passepartout-test-it-reconnects-after-the-daemon-was-restarted ()
  (passepartout-test-in "again"
    (passepartout-say "echo before" "again")
    (passepartout-test-until (string-match-p "I heard: before" (passepartout-test-said)))
    (let ((pid (plist-get (passepartout-test-ask :health-check) :pid)))
      (signal-process pid 15)
      (passepartout-test-until (not (passepartout-wire-up-p)))
      (passepartout-say "echo after" "again")
      (passepartout-test-until (string-match-p "I heard: after" (passepartout-test-said)))
      (should-not (equal pid (plist-get (passepartout-test-ask :health-check) :pid))))))

(ert-deftest passepartout-test-our-nonsense-is-refused-and-we-come-back ()
  (passepartout-test-in "again"
    (let ((old passepartout-wire--process))
      (process-send-string old "ZZZZZZ")
      (passepartout-test-until (not (eq old passepartout-wire--process)))
      (passepartout-test-until (passepartout-wire-up-p)))))

(ert-deftest passepartout-test-focus-follows-point-and-not-into-private-text ()
  (passepartout-test-in "main"
    (let ((path (passepartout-test-file "notes/eye.org" "* Ferries\n:PROPERTIES:\n:ID: ferries-1\n:END:\nto Corsica\n* Trains\n* Diary :@personal:\nsecret\n")))
      (passepartout-test-until (equal "ferries-1" (plist-get (car (plist-get (passepartout-test-ask :recall :text "Ferries Corsica") :hits)) :id)))
      (with-current-buffer (find-file-noselect path)
        (passepartout-focus-mode 1)
        (goto-char (point-min))
        (passepartout--look)
        (passepartout-test-until (equal "ferries-1" (plist-get (passepartout-test-ask :focus) :point)))
        (search-forward "Diary")
        (passepartout--look)
        (passepartout-test-until (equal "" (plist-get (passepartout-test-ask :focus) :point)))
        (goto-char (point-min))
        (search-forward "Trains")
        (passepartout--look)
        (passepartout-test-until (string-prefix-p "~" (plist-get (passepartout-test-ask :focus) :point)))
        (search-forward "Diary")
        (should-error (passepartout-ask-about-subtree "what?") :type 'user-error)
        (passepartout-focus-mode -1)
        (passepartout-test-until (equal "" (plist-get (passepartout-test-ask :focus) :point)))
        (kill-buffer)))))

(defun passepartout-test-review ()
  "The buffer of a change to review, or nil."
  (seq-find (lambda (b) (string-prefix-p "*passepartout review" (buffer-name b))) (buffer-list)))

(ert-deftest passepartout-test-focus-is-off-until-asked-for-and-a-place-is-said-once ()
  (passepartout-test-in "main"
    (let* ((path (passepartout-test-file "notes/wink.org" "* One\n:PROPERTIES:\n:ID: wink-1\n:END:\nline\nline\n* Two\n:PROPERTIES:\n:ID: wink-2\n:END:\n"))
           (said 0)
           (count (lambda (m &rest _)
                    (when (eq :point-update (plist-get (plist-get m :payload) :sensor)) (cl-incf said)))))
      (advice-add 'passepartout-wire-request :before count)
      (unwind-protect
          (with-current-buffer (find-file-noselect path)
            (goto-char (point-min))
            (passepartout--look)
            (should (= 0 said))
            (should-not passepartout--focus-timer)
            (passepartout-focus-mode 1)
            ;; It waits until nothing was typed for a while.
            (should (memq passepartout--focus-timer timer-idle-list))
            (dotimes (_ 20) (passepartout--look) (forward-char))
            (should (= 1 said))
            (search-forward "* Two")
            (passepartout--look)
            (should (= 2 said))
            (passepartout-focus-mode -1)
            (should-not passepartout--focus-timer)
            (kill-buffer))
        (advice-remove 'passepartout-wire-request count)))))

(ert-deftest passepartout-test-the-agent-inserts-when-it-is-accepted ()
  (passepartout-test-in "insert"
    (let ((path (passepartout-test-file "notes/list.org" "* List\n- milk\n")))
      (passepartout-say "insert a line" "insert")
      (with-current-buffer (passepartout-test-until (passepartout-test-review))
        (should (string-match-p "^\\+- bread 日本" (buffer-string)))
        (should (equal "* List\n- milk\n" (passepartout-test-text path)))
        (passepartout-review-accept))
      (passepartout-test-until (equal "* List\n- milk\n- bread 日本\n" (passepartout-test-text path)))
      (passepartout-test-until (string-match-p "That is done" (passepartout-test-said))))))

(ert-deftest passepartout-test-the-agent-does-not-insert-when-it-is-refused ()
  (passepartout-test-in "refuse"
    (let ((path (passepartout-test-file "notes/list.org" "* List\n- milk\n")))
      (when-let ((b (find-buffer-visiting path))) (kill-buffer b))
      (passepartout-say "insert a line" "refuse")
      (with-current-buffer (passepartout-test-until (passepartout-test-review)) (passepartout-review-refuse))
      (passepartout-test-until (string-match-p "That did not work" (passepartout-test-said)))
      (should (equal "* List\n- milk\n" (passepartout-test-text path))))))

(ert-deftest passepartout-test-a-change-that-no-longer-fits-is-a-conflict ()
  (passepartout-test-in "conflict"
    (let ((path (passepartout-test-file "notes/list.org" "* List\n- milk\n")))
      (when-let ((b (find-buffer-visiting path))) (kill-buffer b))
      (passepartout-say "insert a line" "conflict")
      (let ((review (passepartout-test-until (passepartout-test-review))))
        (with-current-buffer (find-buffer-visiting path) (goto-char (point-max)) (insert "- mine\n"))
        (with-current-buffer review (passepartout-review-accept)))
      (passepartout-test-until (string-match-p "That did not work" (passepartout-test-said)))
      (with-current-buffer (find-buffer-visiting path)
        (should (equal "* List\n- milk\n- mine\n" (buffer-string)))
        (set-buffer-modified-p nil)
        (kill-buffer)))))

(ert-deftest passepartout-test-files-changed-underneath-are-read-again-or-a-conflict-is-shown ()
  (let ((path (passepartout-test-file "notes/under.org" "* One\n")))
    (with-current-buffer (find-file-noselect path)
      (passepartout-focus-mode 1)
      (passepartout-test-file "notes/under.org" "* One\n* Two\n")
      (set-file-times path (time-add nil 5))
      (passepartout-sync)
      (should (equal "* One\n* Two\n" (buffer-string)))
      (goto-char (point-max))
      (insert "* Mine\n")
      (passepartout-test-file "notes/under.org" "* One\n* Theirs\n")
      (set-file-times path (time-add nil 10))
      (passepartout-sync)
      (should passepartout--conflict)
      (should (string-match-p "Changed on disk and here" header-line-format))
      (should (equal "* One\n* Two\n* Mine\n" (buffer-string)))
      (passepartout-resolve ?t)
      (should (equal "* One\n* Theirs\n" (buffer-string)))
      (should-not passepartout--conflict)
      (passepartout-focus-mode -1)
      (kill-buffer))))

(ert-deftest passepartout-test-an-answer-about-a-subtree-becomes-its-child ()
  (passepartout-test-in "subtree"
    (with-temp-buffer
      (org-mode)
      (insert "* Trip\nto Corsica\n** Hotel\n* Other\n")
      (goto-char (point-min))
      (passepartout-ask-about-subtree "echo yes")
      (passepartout-test-until (string-match-p "I heard" (buffer-string)))
      (should (string-match-p "\\`\\* Trip\nto Corsica\n\\*\\* Hotel\n\\*\\* echo yes\nI heard: yes\n" (buffer-string)))
      (should (string-match-p "\n\\* Other\n\\'" (buffer-string))))))

(ert-deftest passepartout-test-a-rewrite-of-a-subtree-is-reviewed ()
  (passepartout-test-in "rewrite"
    (with-temp-buffer
      (org-mode)
      (insert "* A\n* Trip\nold\n* B\n")
      (goto-char (point-min))
      (search-forward "old")
      (passepartout-refactor-subtree "please")
      (let ((origin (current-buffer)))
        (with-current-buffer (passepartout-test-until (passepartout-test-review))
          (should (string-match-p "^-old\n\\+new" (buffer-string)))
          (passepartout-review-accept))
        (with-current-buffer origin (should (equal "* A\n* Trip\nnew\n* B\n" (buffer-string))))))))

(ert-deftest passepartout-test-notes-are-found-and-linked ()
  (passepartout-test-in "main"
    (passepartout-test-file "notes/glaciers.org" "* Glaciers of Norway\n:PROPERTIES:\n:ID: ice-1\n:END:\nblue ice\n")
    (passepartout-test-until (plist-get (passepartout-test-ask :recall :text "Glaciers of Norway") :hits))
    (with-temp-buffer
      (let ((here (current-buffer)))
        (passepartout-recall "Glaciers of Norway")
        (passepartout-test-until (get-buffer "*passepartout recall*"))
        (with-current-buffer "*passepartout recall*"
          (goto-char (point-min))
          (passepartout-recall-insert))
        (with-current-buffer here
          (should (equal "[[id:ice-1][Glaciers of Norway]]" (buffer-string))))))))

(ert-deftest passepartout-test-agenda-capture-undo-and-why ()
  (passepartout-test-in "tools"
    (passepartout-agenda "week")
    (passepartout-test-until (get-buffer "*passepartout agenda*"))
    (passepartout-why "")
    (passepartout-test-until (get-buffer "*passepartout why*"))
    (with-current-buffer "*passepartout why*" (should (string-match-p "permissions" (buffer-string))))
    (passepartout-capture "water the plants")
    (let ((ask (passepartout-test-until
                 (car (plist-get (passepartout-test-ask :approvals) :pending)))))
      (passepartout-answer (plist-get ask :token) :approved :once))
    (passepartout-test-until (string-match-p "water the plants" (passepartout-test-text (passepartout-test-memex "inbox/inbox.org"))))
    (passepartout-undo 1)
    (passepartout-test-until (not (string-match-p "water the plants" (passepartout-test-text (passepartout-test-memex "inbox/inbox.org")))))))

(provide 'passepartout-test)
;;; passepartout-test.el ends here
