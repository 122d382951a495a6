;;; repeat-oracle.el --- what Emacs makes of repeaters -*- lexical-binding: t; -*-
;;
;; usage: emacs -Q --batch -l repeat-oracle.el FILE
;;
;; FILE holds forms; each is answered by one line:
;;   (repeat STAMP)      => the timestamp after its task was done now
;;   (closest STAMP DAY) => the date of the series on or next after an absolute day
(setq enable-local-variables nil
      org-inhibit-startup t
      inhibit-message t)
(require 'org)
(advice-add 'message :override #'ignore)
(advice-add 'y-or-n-p :override (lambda (&rest _) t)) ; a long way to go is no reason to stop

(defun oracle-repeat (stamp)
  (with-temp-buffer
    (insert "* TODO x\nSCHEDULED: " stamp "\n")
    (org-mode)
    (goto-char (point-min))
    (let ((org-log-repeat nil) (org-log-done nil)) (org-todo "DONE"))
    (goto-char (point-min))
    (re-search-forward "<[^>]+>")
    (match-string 0)))

(with-temp-buffer
  (insert-file-contents (car command-line-args-left))
  (setq command-line-args-left nil)
  (let ((input (current-buffer)) form)
    (while (setq form (condition-case nil (read input) (end-of-file nil)))
      (princ (condition-case err
                 (pcase form
                   (`(repeat ,stamp) (oracle-repeat stamp))
                   (`(closest ,stamp ,day) (number-to-string (org-closest-date stamp day 'future))))
               (error (format "error %S" err))))
      (princ "\n"))))
