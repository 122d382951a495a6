package soak

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"passepartout/internal/channel/channeltest"
)

// owner is the number Telegram has for the person.
const owner = int64(4711)

// pairOwner makes the person known over Telegram.
func (w *world) pairOwner(ctx context.Context) error {
	out, talk, code := w.run(ctx, w.env, "--no-start", "gateway", "pair", "telegram")
	if code != 0 {
		return fmt.Errorf("gateway pair: %s%s", out, talk)
	}
	w.telegram.Say(owner, strings.TrimSpace(out))
	for rest(ctx, 20*time.Millisecond) {
		for _, l := range w.telegram.Chat(owner) {
			if strings.Contains(l.Text, "Paired as owner") {
				return nil
			}
		}
	}
	return errors.New("nobody is paired over Telegram")
}

// street is the person on Telegram: they write, and sometimes do not wait.
func (w *world) street(ctx context.Context) {
	r := w.random("street")
	for ctx.Err() == nil {
		m, text := w.ledger.open(w, "telegram", []string{"echo", "capture", "capture", "ask"}[r.IntN(4)], "")
		w.telegram.Say(owner, text)
		if m.kind == "ask" {
			w.telegram.Say(owner, "/new") // what a command printed labels the conversation
			w.books.renewed.Add(1)
		}
		if r.IntN(8) == 0 {
			w.telegram.Say(666, "soak capture m99999") // a stranger
		}
		until := time.Duration(0)
		if r.IntN(3) > 0 {
			until = 5 * time.Second
		}
		for end := w.now() + until; w.now() < end && !w.shown(m.mark); {
			if !rest(ctx, 50*time.Millisecond) {
				break
			}
		}
		rest(ctx, time.Duration(r.Int64N(int64(800*time.Millisecond))))
	}
}

// shown reports whether the person sees a message with a mark.
func (w *world) shown(mark string) bool {
	for _, l := range w.telegram.Chat(owner) {
		if strings.Contains(l.Text, mark) {
			return true
		}
	}
	return false
}

// emacsLoop lets a batch Emacs say what it finds in one folder and write what comes
// back into another.
const emacsLoop = `;;; -*- lexical-binding: t; -*-
(require 'passepartout)
(setq passepartout-start-daemon nil create-lockfiles nil make-backup-files nil)
(defvar soak (getenv "SOAK_EMACS"))
(defun soak-out (name text)
  (let ((coding-system-for-write 'utf-8) (tmp (expand-file-name (concat "tmp/" name) soak)))
    (write-region text nil tmp nil 'quiet)
    (rename-file tmp (expand-file-name (concat "out/" name) soak) t)))
(passepartout--chat "emacs-0")
(while (not (file-exists-p (expand-file-name "stop" soak)))
  (accept-process-output nil 0.05)
  (dolist (f (directory-files (expand-file-name "in" soak) t "^m[0-9]+$"))
    (let* ((mark (file-name-nondirectory f))
           (said (with-temp-buffer (insert-file-contents f) (split-string (buffer-string) "\n"))))
      (delete-file f)
      (passepartout-say (cadr said) (car said)
        (lambda (m) (let ((p (plist-get m :payload)))
          (soak-out mark (format "%s\n%s" (plist-get p :status) (plist-get p :text)))))))))
`

// startEmacs runs a real Emacs with the client; false when none is installed.
func (w *world) startEmacs(ctx context.Context, lisp string) (bool, error) {
	emacs, err := exec.LookPath("emacs")
	if err != nil {
		return false, nil
	}
	for _, d := range []string{"in", "out", "tmp"} {
		if err := os.MkdirAll(w.path("emacs", d), 0o700); err != nil {
			return false, err
		}
	}
	if err := os.WriteFile(w.path("emacs", "loop.el"), []byte(emacsLoop), 0o600); err != nil {
		return false, err
	}
	log, err := os.Create(w.path("emacs.log"))
	if err != nil {
		return false, err
	}
	defer log.Close()
	// In batch a broken connection would end Emacs by a signal; with a person before it
	// it does not.
	c := exec.CommandContext(ctx, "env", "--ignore-signal=PIPE", emacs, "-Q", "--batch", "-L", lisp, "-l", w.path("emacs", "loop.el"))
	c.Env = append(w.far[:len(w.far):len(w.far)], "SOAK_EMACS="+w.path("emacs"))
	c.Stdout, c.Stderr, c.Dir = log, log, w.path("home")
	if err := c.Start(); err != nil {
		return false, err
	}
	go func() {
		err := c.Wait()
		w.note("emacs ended: %v", err)
		if ctx.Err() == nil && gone(w.path("emacs", "stop")) {
			w.books.wrong("Emacs ended in the middle of the run: %v", err)
		}
	}()
	return true, nil
}

// sayInEmacs hands Emacs something to say and waits for what it shows.
func (w *world) sayInEmacs(ctx context.Context, kind string, n int) *message {
	m, text := w.ledger.open(w, "emacs", kind, "")
	tmp := w.path("emacs", "tmp", "say")
	if os.WriteFile(tmp, []byte(conversation("emacs", n, kind)+"\n"+text), 0o600) != nil || os.Rename(tmp, w.path("emacs", "in", m.mark)) != nil {
		w.ledger.report(w, m, "it could not be handed over")
		return m
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	for rest(limit, 30*time.Millisecond) {
		raw, err := os.ReadFile(w.path("emacs", "out", m.mark))
		if err != nil {
			continue
		}
		status, said, _ := strings.Cut(string(raw), "\n")
		if status == ":lost" || status == "nil" {
			w.ledger.report(w, m, said)
		} else {
			w.ledger.answer(w, m, strings.TrimPrefix(status, ":"), said)
		}
		return m
	}
	return m
}

// atEmacs is the person in their editor.
func (w *world) atEmacs(ctx context.Context) {
	r := w.random("emacs")
	for n := 0; ctx.Err() == nil; n++ {
		w.sayInEmacs(ctx, []string{"echo", "capture", "ask"}[r.IntN(3)], n)
		rest(ctx, time.Duration(r.Int64N(int64(time.Second))))
	}
}

// tmux is a command to the terminal of the run.
func (w *world) tmux(args ...string) *exec.Cmd {
	c := exec.Command("tmux", append([]string{"-S", w.path("tmp", "tmux"), "-f", os.DevNull}, args...)...)
	c.Env = w.far
	return c
}

// startTerminal opens the terminal client; false when there is no terminal to be had.
func (w *world) startTerminal() (bool, error) {
	if _, err := exec.LookPath("tmux"); err != nil {
		return false, nil
	}
	out, err := w.tmux("new-session", "-d", "-x", "110", "-y", "100", w.path("bin", "passepartout")+" --no-start tui -s tui; echo it left with $?; exec cat").CombinedOutput()
	if err != nil {
		return false, fmt.Errorf("tmux: %w: %s", err, out)
	}
	return true, nil
}

func (w *world) screen() string {
	out, _ := w.tmux("capture-pane", "-p").Output()
	return string(out)
}

// sayInTerminal types something and looks at the screen for what comes back.
func (w *world) sayInTerminal(ctx context.Context, kind string, wait time.Duration) *message {
	w.tmux("send-keys", "Escape").Run() // whatever was open
	rest(ctx, escapeTime)
	m, text := w.ledger.open(w, "tui", kind, "")
	w.tmux("send-keys", "-l", "please "+text).Run() // a first s, y, m or n would answer an open question
	w.tmux("send-keys", "Enter").Run()
	for end := w.now() + wait; w.now() < end; {
		w.tmux("send-keys", "C-End").Run() // a question keeps the view where it begins
		for line := range strings.Lines(w.screen()) {
			if _, said, ok := strings.Cut(line, "answer "+m.mark); ok {
				w.ledger.answer(w, m, "done", "answer "+m.mark+strings.TrimRight(said, " │\n"))
				return m
			}
		}
		if !rest(ctx, 150*time.Millisecond) {
			break
		}
	}
	w.ledger.report(w, m, "the screen does not show an answer")
	return m
}

// escapeTime keeps Escape apart from the key after it, with which it would be Alt.
const escapeTime = 150 * time.Millisecond

// atTerminal is the person at the terminal client, who also looks into things.
func (w *world) atTerminal(ctx context.Context) {
	r := w.random("tui")
	for ctx.Err() == nil {
		w.sayInTerminal(ctx, []string{"echo", "capture"}[r.IntN(2)], 6*time.Second)
		if r.IntN(3) == 0 {
			for _, key := range []string{"C-g", "C-p", "Escape", "C-g"} {
				w.tmux("send-keys", key).Run()
				rest(ctx, escapeTime)
			}
		}
		rest(ctx, time.Duration(r.Int64N(int64(time.Second))))
	}
}

// skillMaker saves a skill again and again, whole and broken.
func (w *world) skillMaker(ctx context.Context) {
	r := w.random("skills")
	for n := 0; rest(ctx, time.Duration(1+r.IntN(4))*time.Second); n++ {
		text := goodSkill(n)
		if broken := r.IntN(3); broken == 0 {
			text = strings.Replace(text, "(deftest", "(car 5) (deftest", 1)
		} else if broken == 1 {
			text = text[:len(text)/2]
		}
		if err := os.WriteFile(w.path("home", "data", "skills", "soaker.org"), []byte(text), 0o600); err != nil {
			w.note("the skill could not be saved: %v", err)
		}
	}
}

func goodSkill(n int) string {
	return fmt.Sprintf("#+TITLE: soaker\nVersion %d.\n\n#+begin_src lisp\n(defun judge-it (action context) (declare (ignore context)) action)\n(defskill :soaker :priority 20 :deterministic #'judge-it :mandate \"Version %d.\")\n(deftest two (is (= 2 (+ 1 1))))\n#+end_src\n", n, n)
}

// misbehaving makes Telegram as it is on a bad day.
func (w *world) misbehaving(often float64) {
	r := w.random("telegram")
	mu := make(chan struct{}, 1)
	names := map[channeltest.Fault]string{
		channeltest.Drop: "drop", channeltest.Lose: "lose", channeltest.Broken: "502", channeltest.Late: "late 502",
		channeltest.TooMany: "429", channeltest.HalfOpen: "half-open", channeltest.Garbage: "garbage",
	}
	if often == 0 {
		w.telegram.Misbehave(nil, false, false)
		return
	}
	w.telegram.Misbehave(func(method string) channeltest.Fault {
		mu <- struct{}{}
		defer func() { <-mu }()
		if r.Float64() >= often {
			return channeltest.None
		}
		f := channeltest.Fault(1 + r.IntN(int(channeltest.Faults)-1))
		if f == channeltest.HalfOpen && r.IntN(4) > 0 {
			f = channeltest.TooMany // each of the others takes half a minute to be noticed
		}
		w.fault("telegram "+names[f], "%s", method)
		return f
	}, true, r.IntN(2) == 0)
}

// gone reports whether a file is not there.
func gone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// notes is a file in the folder of notes.
func (w *world) notes(elem ...string) string {
	return w.path(append([]string{"memex", "notes"}, elem...)...)
}

// copyTree copies plain files, for what must outlive a namespace.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		case !d.Type().IsRegular() || d.Name() == "filler":
			return nil
		}
		raw, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), raw, 0o600)
	})
}
