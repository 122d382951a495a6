;;; headlines.el --- time Emacs reading headlines only  -*- lexical-binding: t -*-
;;
;; usage: emacs -Q --batch -l headlines.el LIST
;; LIST names one file a line.  Prints the CPU seconds that
;; `org-element-parse-buffer' with granularity `headline' took over all of them;
;; loading the files and starting org-mode is not counted.

(setq native-comp-deferred-compilation nil enable-local-variables nil
      org-inhibit-startup t gc-cons-threshold (* 256 1024 1024))
(require 'org)
(require 'org-element)
(let ((files (with-temp-buffer
               (insert-file-contents (pop command-line-args-left))
               (split-string (buffer-string) "\n" t)))
      (sum 0.0))
  (dolist (f files)
    (with-temp-buffer
      (insert-file-contents f)
      (setq default-directory temporary-file-directory)
      (let ((inhibit-message t)) (ignore-errors (org-mode)))
      (let ((start (float-time (get-internal-run-time))))
        (org-element-parse-buffer 'headline)
        (setq sum (+ sum (- (float-time (get-internal-run-time)) start))))))
  (princ (format "%f\n" sum)))
;;; headlines.el ends here
