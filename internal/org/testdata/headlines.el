;;; headlines.el --- time Emacs reading headlines only  -*- lexical-binding: t -*-
;;
;; usage: emacs -Q --batch -l headlines.el LIST
;; LIST names one file a line.  Prints two numbers, CPU seconds over all files:
;; what `org-element-parse-buffer' with granularity `headline' took, and what
;; starting org-mode took, in which Emacs reads the settings of the file (TODO
;; keywords, tags) that our outline reads too.  Loading the files is not counted.

(setq native-comp-deferred-compilation nil enable-local-variables nil
      org-inhibit-startup t gc-cons-threshold (* 256 1024 1024))
(require 'org)
(require 'org-element)
(let ((files (with-temp-buffer
               (insert-file-contents (pop command-line-args-left))
               (split-string (buffer-string) "\n" t)))
      (mode 0.0) (sum 0.0))
  (dolist (f files)
    (with-temp-buffer
      (insert-file-contents f)
      (setq default-directory temporary-file-directory)
      (let ((inhibit-message t) (start (float-time (get-internal-run-time))))
        (ignore-errors (org-mode))
        (setq mode (+ mode (- (float-time (get-internal-run-time)) start))))
      (let ((start (float-time (get-internal-run-time))))
        (org-element-parse-buffer 'headline)
        (setq sum (+ sum (- (float-time (get-internal-run-time)) start))))))
  (princ (format "%f %f\n" sum mode)))
;;; headlines.el ends here
