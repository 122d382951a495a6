;;; oracle.el --- what Emacs answers to queries -*- lexical-binding: t; -*-
;; Reads forms from the file named by the first argument and prints one line each:
;;   (match FILE STRING)            => line numbers of the headlines matched
;;   (agenda FILE START DAYS TODAY) => DAY:TYPE:LINE of every agenda line; days are
;;                                     absolute day numbers
(require 'org)
(require 'org-agenda)
(require 'cl-lib)
(setq enable-local-variables nil
      enable-local-eval nil
      org-element-use-cache nil
      org-agenda-start-on-weekday nil
      org-agenda-use-time-grid nil
      org-agenda-include-diary nil
      org-agenda-sticky nil
      inhibit-message t
      make-backup-files nil
      find-file-hook nil)

(defun oracle-match (file match)
  (with-current-buffer (find-file-noselect file)
    (widen)
    (mapconcat #'number-to-string
               (org-map-entries (lambda () (line-number-at-pos nil t)) match 'file)
               " ")))

(defun oracle-agenda (file start days today)
  (cl-letf (((symbol-function 'org-today) (lambda () today)))
    (let ((org-agenda-files (list file)) (lines nil))
      (org-agenda-list nil start days)
      (with-current-buffer org-agenda-buffer-name
        (goto-char (point-min))
        (while (not (eobp))
          (let ((hd (get-text-property (point) 'org-hd-marker))
                (type (get-text-property (point) 'type))
                (day (get-text-property (point) 'day)))
            (when hd
              (push (format "%d:%s:%d" day type
                            (with-current-buffer (marker-buffer hd)
                              (line-number-at-pos (marker-position hd) t)))
                    lines)))
          (forward-line 1)))
      (mapconcat #'identity (sort lines #'string<) " "))))

(with-temp-buffer
  (insert-file-contents (car command-line-args-left))
  (setq command-line-args-left nil)
  (let ((input (current-buffer)) form)
    (while (setq form (condition-case nil (read input) (end-of-file nil)))
      (princ (condition-case err
                 (pcase form
                   (`(match ,file ,match) (oracle-match file match))
                   (`(agenda ,file ,start ,days ,today) (oracle-agenda file start days today)))
               (error (format "error %S" err))))
      (princ "\n"))))
