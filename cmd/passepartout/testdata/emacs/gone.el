;;; gone.el --- A peer that hangs up  -*- lexical-binding: t; -*-

;; Run by emacs_gone_test.go with SIGPIPE ignored, as an Emacs with a person before
;; it does. A server of our own greets, hears the client, and closes; the client writes
;; before it has noticed. What it wrote is reported, what it says then waits.

(require 'passepartout-wire)

(defvar told nil "What waited and was told, newest first.")
(defvar heard 0 "Bytes the server has got.")

(let* ((path (expand-file-name "gone.sock" (getenv "TMPDIR")))
       (conn nil)
       (server (make-network-process
                :name "server" :server t :family 'local :service path :coding 'binary :noquery t
                :filter (lambda (_ bytes) (setq heard (+ heard (length bytes))))
                :log (lambda (_ c _)
                       (setq conn c)
                       (process-send-string
                        c (passepartout-wire-frame '(:type :event :payload (:action :handshake :version "1" :nonce "x")))))))
       (passepartout-socket path)
       (passepartout-start-daemon nil))
  (passepartout-wire-connect)
  (with-timeout (20 (error "No connection"))
    (while (not (and (passepartout-wire-up-p) (> heard 0))) (accept-process-output nil 0.01)))
  (delete-process conn)
  (delete-process server)
  (delete-file path)
  ;; Nothing is awaited here: the client still takes the connection for whole.
  (dolist (n (list 1 2 3))
    (passepartout-wire-request (list :type :event :payload (list :n n)) "main"
                               (lambda (m) (push (cons n (plist-get (plist-get m :payload) :status)) told))))
  (princ (format "told %S, %d wait\n" told (length passepartout-wire--outbox)))
  (passepartout-wire-disconnect))
