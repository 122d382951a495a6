;;; lint.el --- Warnings, checkdoc and package-lint  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: Apache-2.0

;;; Commentary:

;; emacs -Q --batch -L emacs -l emacs/test/lint.el: exits with 1 when there is
;; something to say.  package-lint is used where it can be loaded.

;;; Code:

(dolist (dir (file-expand-wildcards "/usr/share/emacs/site-lisp/elpa*/*-*"))
  (add-to-list 'load-path dir))
(require 'checkdoc)
(require 'bytecomp)

(let* ((dir (expand-file-name ".." (file-name-directory load-file-name)))
       (files (list (expand-file-name "passepartout-wire.el" dir) (expand-file-name "passepartout.el" dir)))
       (bad 0)
       (checkdoc-diagnostic-buffer " *lint*")
       (byte-compile-error-on-warn t)
       (byte-compile-dest-file-function (lambda (_) (make-temp-file "pp" nil ".elc"))))
  (dolist (f files)
    (unless (byte-compile-file f) (setq bad (1+ bad)))
    (let ((checkdoc-create-error-function
           (lambda (text start &rest _)
             (setq bad (1+ bad))
             (message "%s:%s: %s" (file-name-nondirectory f)
                      (if start (with-current-buffer (find-file-noselect f) (line-number-at-pos start)) 0) text)
             nil)))
      (with-current-buffer (find-file-noselect f) (checkdoc-current-buffer t)))
    (if (not (require 'package-lint nil t))
        (message "package-lint is not installed")
      (with-current-buffer (find-file-noselect f)
        (setq-local package-lint-main-file (cadr files))
        (dolist (e (seq-remove
                    ;; Debian's release is older than Emacs 28 and takes it for unreleased.
                    (lambda (e) (string-match-p "uninstallable in all released" (nth 3 e)))
                    (package-lint-buffer)))
          (setq bad (1+ bad))
          (message "%s:%S" (file-name-nondirectory f) e)))))
  (kill-emacs (if (zerop bad) 0 1)))

;;; lint.el ends here
