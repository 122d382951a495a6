;;; What skills know as cl-json, as far as it computes: text from data and data from text.
;;; Names of keys follow that library: maxTokens is :MAX-TOKENS, update_id is :UPDATE--ID.

(defpackage :passepartout-json (:use :cl))
(in-package :passepartout-json)

(define-condition json-syntax-error (parse-error)
  ((message :initarg :message :reader message))
  (:report (lambda (c s) (format s "JSON syntax error: ~a" (message c)))))

(define-condition unencodable (type-error) ()
  (:report (lambda (c s) (format s "Value ~s is not of a type which can be encoded." (type-error-datum c)))))

(defun unencodable (value) (error 'unencodable :datum value :expected-type t))

;;; Names.

(defun parts (name)
  "Cuts a name into runs of one kind: (:UPPER . \"HTTP\"), (:CAPITAL . \"A\"), (:MIXED . \"Get\"), (:LOWER . \"get\"),
(:NUMERIC . \"12\") and single (:PUNCT . \"_\")."
  (let ((out nil) (i 0) (n (length name)))
    (flet ((run (from test) (or (position-if-not test name :start from) n)))
      (loop while (< i n)
            do (let ((c (char name i)))
                 (multiple-value-bind (kind end)
                     (cond ((upper-case-p c)
                            (let ((end (run i #'upper-case-p)))
                              (cond ((and (< end n) (lower-case-p (char name end)))
                                     (if (= end (1+ i))
                                         (values :mixed (run end #'lower-case-p))
                                         (values (if (> (- end i) 2) :upper :capital) (1- end))))
                                    ((= end (1+ i)) (values :capital end))
                                    (t (values :upper end)))))
                           ((lower-case-p c) (values :lower (run i #'lower-case-p)))
                           ((digit-char-p c) (values :numeric (run i #'digit-char-p)))
                           (t (values :punct (1+ i))))
                   (push (cons kind (subseq name i end)) out)
                   (setq i end)))))
    (nreverse out)))

(defun shouted (parts before numeric)
  "The rest of a name that is all capitals, as strings, or :NO."
  (if (null parts)
      (cond (numeric :no) ((eq before :punct) nil) (t (list "+")))
      (destructuring-bind ((kind . text) . rest) parts
        (case kind
          ((:lower :mixed) :no)
          (:punct
           (let ((more (shouted rest kind nil)) (mark (if (string= text "_") "-" text)))
             (cond ((and (not (eq more :no)) (or more numeric (eq before :punct))) (cons mark more))
                   ((or numeric (eq before :punct)) :no)
                   (t (list* "+" (if (string= text "_") "--" text) (hyphenated rest kind))))))
          (t (let ((more (shouted rest kind (and numeric (not (eq kind :upper))))))
               (if (eq more :no) :no (cons text more))))))))

(defun hyphenated (parts before)
  (when parts
    (destructuring-bind ((kind . text) . rest) parts
      (flet ((first-of-all-capitals (numeric otherwise)
               (let ((more (shouted rest kind numeric)))
                 (if (eq more :no) (append otherwise (hyphenated rest kind)) (list* "+" text more)))))
        (let ((first (eq before :punct)))
          (case kind
            (:punct (cons (if (string= text "_") "--" text) (hyphenated rest kind)))
            (:upper (if first
                        (first-of-all-capitals nil (list "+" text "+"))
                        (list* "-+" text "+" (hyphenated rest kind))))
            (:numeric (if first
                          (first-of-all-capitals t (list text))
                          (list* "-" text (hyphenated rest kind))))
            (:capital (if first
                          (first-of-all-capitals nil (list "*" text))
                          (list* (if (eq before :numeric) "-*" "-") text (hyphenated rest kind))))
            (:mixed (list* (cond (first "*") ((eq before :numeric) "-*") (t "-")) (string-upcase text) (hyphenated rest kind)))
            (t (list* (if first "" "-") (string-upcase text) (hyphenated rest kind)))))))))

(defun cl-json:camel-case-to-lisp (name)
  (apply #'concatenate 'string (hyphenated (parts name) :punct)))

(defun cl-json:lisp-to-camel-case (name)
  (with-output-to-string (out)
    (let ((start t) (capital nil) (shout nil) (i 0) (n (length name)))
      (flet ((put (c)
               (write-char (if (or capital shout) (char-upcase c) (char-downcase c)) out)
               (setq capital nil start nil)))
        (loop while (< i n)
              do (let ((c (char name i)))
                   (cond ((and (char= c #\*) start) (setq capital t))
                         ((and (char= c #\+) shout) (setq shout nil start t))
                         ((and (char= c #\+) start) (setq shout t))
                         ((char/= c #\-) (put c))
                         ((or shout (and (< (1+ i) n) (char= (char name (1+ i)) #\-) (incf i)))
                          (setq start t)
                          (write-char #\_ out))
                         (t (setq start t capital t))))
                 (incf i))))))

;;; Writing.

(defun write-text (text out)
  (write-char #\" out)
  (loop for c across text
        for short = (position c '(#\" #\\ #\/ #\Backspace #\Page #\Newline #\Return #\Tab))
        do (cond (short (write-char #\\ out) (write-char (char "\"\\/bfnrt" short) out))
                 ((< 31 (char-code c) 127) (write-char c out))
                 (t (format out "\\u~4,'0x" (char-code c)))))
  (write-char #\" out))

(defun write-members (open close members out)
  "Members are functions that write one."
  (write-char open out)
  (loop for (member . more) on members
        do (funcall member) (when more (write-char #\, out)))
  (write-char close out))

(defun pair-writer (key value out)
  (lambda ()
    (let ((name (text-of key)))
      (if (char= (char name 0) #\") (write-string name out) (write-text name out)))
    (write-char #\: out)
    (write-value value out)))

(defun write-pairs (pairs out)
  (write-members #\{ #\} (mapcar (lambda (pair) (pair-writer (car pair) (cdr pair) out)) pairs) out))

(defun write-alist (alist out)
  (unless (ignore-errors (every #'listp alist)) (unencodable alist))
  (write-pairs (remove nil alist) out))

(defun write-list (list out)
  "An array, or if its members are pairs that cannot stand in one, an object."
  (let ((array (handler-case
                   (with-output-to-string (s)
                     (unless (ignore-errors (list-length list)) (unencodable list))
                     (write-members #\[ #\] (mapcar (lambda (x) (lambda () (write-value x s))) list) s))
                 (unencodable (c)
                   (unless (and (consp (type-error-datum c)) (ignore-errors (every #'consp list))) (error c))
                   nil))))
    (if array (write-string array out) (write-alist list out))))

(defun write-value (x out)
  (cond ((eq x t) (write-string "true" out))
        ((null x) (write-string "null" out))
        ((symbolp x) (write-text (cl-json:lisp-to-camel-case (symbol-name x)) out))
        ((integerp x) (format out "~d" x))
        ((typep x 'double-float) (let ((*read-default-float-format* 'double-float)) (format out "~f" x)))
        ((realp x) (format out "~f" x))
        ((stringp x) (write-text x out))
        ((characterp x) (write-text (string x) out))
        ((consp x) (write-list x out))
        ((vectorp x) (write-members #\[ #\] (map 'list (lambda (m) (lambda () (write-value m out))) x) out))
        ((hash-table-p x)
         (write-pairs (loop for key being the hash-keys of x using (hash-value value) collect (cons key value)) out))
        (t (unencodable x))))

(defun text-of (x) (with-output-to-string (out) (write-value x out)))

(defun cl-json:encode-json-to-string (object) (text-of object))
(defun cl-json:encode-json-alist-to-string (alist) (with-output-to-string (out) (write-alist alist out)))
(defun cl-json:encode-json-plist-to-string (plist)
  (unless (ignore-errors (evenp (list-length plist))) (unencodable plist))
  (with-output-to-string (out) (write-pairs (loop for (key value) on plist by #'cddr collect (cons key value)) out)))
(defun cl-json:encode-json (object &optional (stream *standard-output*)) (write-value object stream) nil)

;;; Reading.

(defun wrong (control &rest arguments)
  (error 'json-syntax-error :message (apply #'format nil control arguments)))

(defun next (stream)
  "The next character that is no space."
  (loop for c = (read-char stream nil)
        do (cond ((null c) (wrong "the text ends too early"))
                 ((not (member c '(#\Space #\Tab #\Newline #\Return))) (return c)))))

(defun read-hex (stream)
  (let ((digits (loop repeat 4 collect (or (read-char stream nil) (wrong "the text ends too early")))))
    (or (parse-integer (coerce digits 'string) :radix 16 :junk-allowed t) (wrong "~{~a~} is no code of a character" digits))))

(defun read-escape (stream)
  (let ((c (or (read-char stream nil) (wrong "the text ends too early"))))
    (if (char= c #\u)
        (let ((code (read-hex stream)))
          (when (and (<= #xD800 code #xDBFF) (eql (peek-char nil stream nil) #\\))
            (read-char stream)
            (unless (eql (read-char stream nil) #\u) (wrong "half a character"))
            (setq code (+ #x10000 (ash (- code #xD800) 10) (- (read-hex stream) #xDC00))))
          (code-char code))
        (let ((place (position c "\"\\/bfnrt")))
          (unless place (wrong "\\~a means nothing" c))
          (nth place '(#\" #\\ #\/ #\Backspace #\Page #\Newline #\Return #\Tab))))))

(defun read-text (stream)
  (with-output-to-string (out)
    (loop for c = (or (read-char stream nil) (wrong "a string does not end"))
          until (char= c #\")
          do (write-char (if (char= c #\\) (read-escape stream) c) out))))

(defun read-number (first stream)
  (let ((token (with-output-to-string (out)
                 (write-char first out)
                 (loop for c = (peek-char nil stream nil)
                       while (and c (or (digit-char-p c) (find c "+-.eE")))
                       do (write-char (read-char stream) out)))))
    (unless (cl-ppcre:scan "^-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][-+]?[0-9]+)?$" token) (wrong "~a is no number" token))
    (if (every (lambda (c) (or (digit-char-p c) (char= c #\-))) token)
        (parse-integer token)
        (let ((*read-default-float-format* 'double-float)) (read-from-string token)))))

(defun read-word (first stream)
  (let ((word (with-output-to-string (out)
                (write-char first out)
                (loop for c = (peek-char nil stream nil)
                      while (and c (alpha-char-p c)) do (write-char (read-char stream) out)))))
    (cond ((string= word "true") t)
          ((or (string= word "false") (string= word "null")) nil)
          (t (wrong "~a means nothing" word)))))

(defun read-members (close stream read)
  (let ((c (next stream)))
    (unless (char= c close)
      (unread-char c stream)
      (loop collect (funcall read)
            do (let ((c (next stream)))
                 (cond ((char= c close) (loop-finish))
                       ((char/= c #\,) (wrong "found ~a, want , or ~a" c close))))))))

(defun read-pair (stream)
  (unless (char= (next stream) #\") (wrong "the name of a member is a string"))
  (let ((name (read-text stream)))
    (unless (char= (next stream) #\:) (wrong "no : after ~a" name))
    (cons (intern (cl-json:camel-case-to-lisp name) :keyword) (read-value stream))))

(defun read-value (stream)
  (let ((c (next stream)))
    (cond ((char= c #\{) (read-members #\} stream (lambda () (read-pair stream))))
          ((char= c #\[) (read-members #\] stream (lambda () (read-value stream))))
          ((char= c #\") (read-text stream))
          ((or (digit-char-p c) (char= c #\-)) (read-number c stream))
          (t (read-word c stream)))))

(defun cl-json:decode-json (stream) (read-value stream))
(defun cl-json:decode-json-from-string (text) (with-input-from-string (s text) (read-value s)))
