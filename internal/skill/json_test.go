package skill_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestJSONIsReadAndWrittenAsSkillsExpect holds to what cl-json does, whose names
// skills use: the names of keys, objects as association lists, arrays as lists.
func TestJSONIsReadAndWrittenAsSkillsExpect(t *testing.T) {
	l, _ := open(t, nil)
	for form, want := range map[string]string{
		`(cl-json:encode-json-to-string '((model . "m") (:max-tokens . 10) (messages . (((role . "user") (content . "hi"))))))`:                                           `{"model":"m","maxTokens":10,"messages":[{"role":"user","content":"hi"}]}`,
		`(cl-json:encode-json-to-string '(1 2/4 1.5 "a/b" t nil :key))`:                                                                                                   `[1,0.5,1.5,"a\/b",true,null,"key"]`,
		`(cl-json:encode-json-to-string '((a 1) (b 2)))`:                                                                                                                  `[["a",1],["b",2]]`,
		`(cl-json:encode-json-to-string '((a . 1) (b 2) nil))`:                                                                                                            `! Value (A . 1) is not of a type which can be encoded.`,
		`(cl-json:encode-json-to-string (list (cons "Key" #(1 "x")) (cons 3 4.5d0)))`:                                                                                     `{"Key":[1,"x"],"3":4.5}`,
		`(cl-json:encode-json-to-string (let ((h (make-hash-table :test 'equal))) (setf (gethash "a" h) 1 (gethash :b-c h) nil) h))`:                                      `{"a":1,"bC":null}`,
		`(cl-json:encode-json-to-string (format nil "tab~cé~c" #\Tab (code-char 1)))`:                                                                                     `"tab\t\u00E9\u0001"`,
		`(json:encode-json-plist-to-string '(:a 1 :b-c "x"))`:                                                                                                             `{"a":1,"bC":"x"}`,
		`(json:encode-json-alist-to-string '((:a . nil) (:b . (1 2))))`:                                                                                                   `{"a":null,"b":[1,2]}`,
		`(cl-json:encode-json-to-string #'car)`:                                                                                                                           `! is not of a type which can be encoded`,
		`(prin1-to-string (cl-json:decode-json-from-string "{\"updateId\": [1, 2.5, -3e2, true, false, null], \"x\": {}, \"y_z\": []}"))`:                                 `((:UPDATE-ID 1 2.5d0 -300.0d0 T NIL NIL) (:X) (:Y--Z))`,
		`(cl-json:decode-json-from-string " \"a\\u00e9\\ud83d\\ude00\\n\" ")`:                                                                                             "aé😀\n",
		`(cdr (assoc :content (cdr (assoc :message (cadr (assoc :choices (cl-json:decode-json-from-string "{\"choices\":[{\"message\":{\"content\":\"hello\"}}]}")))))))`: `hello`,
		`(cl-json:decode-json-from-string "{\"a\": }")`:                                                                                                                   `! JSON syntax error: } means nothing`,
		`(cl-json:decode-json-from-string "[1,")`:                                                                                                                         `! the text ends too early`,
		`(cl-json:decode-json-from-string "[1 2]")`:                                                                                                                       `! found 2, want , or ]`,
		`(cl-json:decode-json-from-string "01")`:                                                                                                                          `! 01 is no number`,
		`(cl-json:decode-json-from-string "\"\\x\"")`:                                                                                                                     `! \x means nothing`,
		`(handler-case (cl-json:decode-json-from-string "nul") (parse-error () "caught"))`:                                                                                `caught`,
		`(format nil "~{~a~^ ~}" (mapcar #'cl-json:camel-case-to-lisp '("maxTokens" "update_id" "ID" "userID" "HTMLPage" "CamelCase" "x1" "FOO_BAR" "foo_BAR" "X_y" "A_" "getX2Y")))`: `MAX-TOKENS UPDATE--ID +ID+ USER-+ID+ +HTML+-PAGE *CAMEL-CASE X-1 +FOO-BAR+ FOO--+BAR+ +X+--Y +A+-- GET-X-2-*Y`,
		`(format nil "~{~a~^ ~}" (mapcar #'cl-json:lisp-to-camel-case '("MAX-TOKENS" "UPDATE--ID" "+ID+" "USER-+ID+" "*CAMEL-CASE" "FOO--+BAR+" "plain")))`:                           `maxTokens update_id ID userID CamelCase foo_BAR plain`,
	} {
		got, err := l.Set().Eval(context.Background(), "", "(princ "+form+")")
		if fails, ok := strings.CutPrefix(want, "! "); ok {
			if err == nil || !strings.Contains(err.Error(), fails) {
				t.Errorf("%s: got %q, %v, want an error with %q", form, got.Output, err, fails)
			}
			continue
		}
		if err != nil || got.Output != want {
			t.Errorf("%s: got %q, %v, want %q", form, got.Output, err, want)
		}
	}
}

// refused are names that real skills call and that have no place in a jail, each
// with a call that must be an error. docs/skills.md says so.
var refused = map[string]string{
	"bt:make-thread": `(bt:make-thread (lambda () 1))`, "bt:thread-alive-p": `(bt:thread-alive-p nil)`, "bt:destroy-thread": `(bt:destroy-thread nil)`,
	"dex:get": `(dex:get "http://localhost")`, "dex:post": `(dex:post "http://localhost")`, "uiop:run-program": `(uiop:run-program "true")`,
	"uiop:quit": `(uiop:quit)`, "uiop:read-file-string": `(uiop:read-file-string "/etc/hosts")`, "uiop:read-file-lines": `(uiop:read-file-lines "/etc/hosts")`,
	"uiop:with-output-file": `(uiop:with-output-file (s "/tmp/x") (princ 1 s))`, "cl:load": `(load "/etc/hosts")`, "cl:sleep": `(sleep 1)`,
	"cl:user-homedir-pathname": `(user-homedir-pathname)`,
	"cl:with-open-file":        `(with-open-file (s "/etc/hosts") (read-line s))`, "cl:ensure-directories-exist": `(ensure-directories-exist "/tmp/x/")`,
}

// TestEveryNameThatRealSkillsUseIsHereOrRefused reads the list of what was counted in
// real skills, which lies beside the project, and looks each name up in a jail.
func TestEveryNameThatRealSkillsUseIsHereOrRefused(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "reference", "lisp-symbols.txt"))
	if err != nil {
		t.Skip("the list of names is not beside the project")
	}
	_, rest, _ := strings.Cut(string(raw), "\n1. Every CL and library symbol")
	library, harness, _ := strings.Cut(rest, "\n2. Harness")
	harness, _, _ = strings.Cut(harness, "\n3. ")
	row := regexp.MustCompile(`(?m)^ +\d+ +\d+ +\d+ +\d+ (\S+)$`)
	var names []string
	for _, m := range row.FindAllStringSubmatch(library, -1) {
		names = append(names, m[1])
	}
	for _, m := range row.FindAllStringSubmatch(harness, -1) {
		names = append(names, "opencortex:"+m[1])
	}
	names = append(names, "fiveam:is", "fiveam:test", "fiveam:def-suite", "fiveam:in-suite", "fiveam:fail")
	l, _ := open(t, nil)
	has := func(form string) (bool, error) {
		got, err := l.Set().Eval(context.Background(), "", form)
		return err == nil && !slices.Contains(got.Values, "NIL"), err
	}
	bound, words, no, host := 0, 0, 0, 0
	for _, n := range names {
		if form, ok := refused[n]; ok {
			if _, err := has(form); err == nil {
				t.Errorf("%s is said to be refused, and %s works", n, form)
			}
			no++
			continue
		}
		q := "'" + n
		ok, err := has("(or (fboundp " + q + ") (boundp " + q + ") (special-operator-p " + q + "))")
		switch {
		case ok:
			bound++
			if _, err := has("(" + n + ")"); err != nil && strings.Contains(err.Error(), "refused in the jail") {
				t.Errorf("%s is here only to refuse: %v", n, err)
			}
		case strings.HasPrefix(n, "cl:") && err == nil: // a word such as &key, ignore or otherwise
			words++
		case strings.HasPrefix(n, "opencortex:") && err == nil: // the skills themselves define it
			host++
		default:
			t.Errorf("%s is not there: %v", n, err)
		}
	}
	t.Logf("%d names: %d bound, %d words of the language, %d for skills to define, %d refused", len(names), bound, words, host, no)
	if len(names) < 200 {
		t.Errorf("only %d names were found in the list", len(names))
	}
}
