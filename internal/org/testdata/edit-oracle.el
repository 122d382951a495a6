;;; edit-oracle.el --- carry out edits with Emacs itself  -*- lexical-binding: t -*-
;;
;; usage: emacs -Q --batch -l edit-oracle.el DIR
;;
;; DIR/cases.el holds a list of (NAME LINE OP ARG...).  For each the file
;; DIR/NAME.org is loaded, point put on LINE, OP carried out, and the result
;; written to DIR/NAME.out (an archive to DIR/NAME.arc).  DIR/results.txt gets
;; one line each: NAME, the minute before and after, and an error if there was one.
;;
;; Settings are Emacs's defaults but for tag alignment, which is off: we keep the
;; gap a person left before the tags.

(setq native-comp-deferred-compilation nil
      enable-local-variables nil
      org-inhibit-startup t
      org-auto-align-tags nil
      make-backup-files nil
      create-lockfiles nil
      auto-save-default nil)
(require 'org)
(require 'org-archive)
(advice-add 'org-align-tags :override #'ignore)
(advice-add 'y-or-n-p :override (lambda (&rest _) t))
(advice-add 'yes-or-no-p :override (lambda (&rest _) t))
(advice-add 'message :override #'ignore)

(defun oracle-flush-log (note)
  (when (memq 'org-add-log-note post-command-hook)
    (org-add-log-note)
    (when (get-buffer "*Org Note*")
      (with-current-buffer "*Org Note*"
        (goto-char (point-max))
        (insert note)
        (org-store-log-note)))))

(defun oracle-goto (line)
  (goto-char (point-min))
  (forward-line (1- line)))

(defun oracle-refile (target)
  "Cut the subtree at point and paste it under the headline at line TARGET."
  (let ((to (save-excursion (oracle-goto target) (point-marker)))
        level)
    (org-cut-subtree)
    (goto-char to)
    (setq level (org-get-valid-level (funcall outline-level) 1))
    (goto-char (or (save-excursion (org-get-next-sibling)) (org-end-of-subtree t t) (point-max)))
    (unless (bolp) (newline))
    (org-paste-subtree level nil nil t)))

(defun oracle-run (op args)
  (let ((a (car args)) (b (cadr args)))
    (pcase op
      ('todo (org-todo (if (equal a "") 'none a)) (oracle-flush-log (or b "")))
      ('priority (org-priority (if (equal a "") 'remove (aref a 0))))
      ('title (org-edit-headline a))
      ('tags (org-set-tags args))
      ('property (org-entry-put nil a b))
      ('unproperty (org-entry-delete nil a))
      ('schedule (if (equal a "") (org-schedule '(4)) (org-schedule nil a)))
      ('deadline (if (equal a "") (org-deadline '(4)) (org-deadline nil a)))
      ('promote (org-promote-subtree))
      ('demote (org-demote-subtree))
      ('delete (org-cut-subtree))
      ('up (org-move-subtree-up))
      ('down (org-move-subtree-down))
      ('sort (org-sort-entries nil (aref a 0)))
      ('refile (org-preserve-local-variables (oracle-refile a)))
      (_ (error "unknown operation %s" op)))))

(defun oracle-archive (file out arc line)
  (let ((org-archive-location (concat arc "::")) (enable-local-variables nil))
    (with-temp-buffer (write-region (point-min) (point-max) arc nil 'silent))
    (with-current-buffer (find-file-noselect file)
      (oracle-goto line)
      (org-archive-subtree)
      (write-region (point-min) (point-max) out nil 'silent)
      (set-buffer-modified-p nil)
      (kill-buffer))
    (with-current-buffer (find-file-noselect arc)
      (write-region (point-min) (point-max) arc nil 'silent)
      (set-buffer-modified-p nil)
      (kill-buffer))))

(defun oracle-case (dir name line op args)
  (let ((file (expand-file-name (concat name ".org") dir))
        (out (expand-file-name (concat name ".out") dir)))
    (if (eq op 'archive)
        (oracle-archive file out (expand-file-name (concat name ".arc") dir) line)
      (with-temp-buffer
        (insert-file-contents file)
        (let ((coding last-coding-system-used))
          (org-mode)
          (setq post-command-hook nil)
          (oracle-goto line)
          (oracle-run op args)
          (let ((coding-system-for-write coding))
            (write-region (point-min) (point-max) out nil 'silent)))))))

(defun oracle-main (dir)
  (let ((cases (with-temp-buffer
                 (insert-file-contents (expand-file-name "cases.el" dir))
                 (read (current-buffer))))
        lines)
    (dolist (c cases)
      (let* ((before (format-time-string "%Y-%m-%dT%H:%M"))
             (err (condition-case e
                      (progn (oracle-case dir (nth 0 c) (nth 1 c) (nth 2 c) (nthcdr 3 c)) "")
                    (error (format "%S" e)))))
        (push (format "%s\t%s\t%s\t%s" (nth 0 c) before (format-time-string "%Y-%m-%dT%H:%M") err) lines)))
    (with-temp-file (expand-file-name "results.txt" dir)
      (insert (mapconcat #'identity (nreverse lines) "\n") "\n"))))

(oracle-main (pop command-line-args-left))
;;; edit-oracle.el ends here
