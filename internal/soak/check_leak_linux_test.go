package soak

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// forms are the ways a secret may be written down.
func forms(text string) [][]byte {
	out := [][]byte{[]byte(text), []byte(hex.EncodeToString([]byte(text)))}
	for shift := range 3 { // where it stands within what was encoded
		enc := base64.StdEncoding.EncodeToString([]byte(strings.Repeat(" ", shift) + text + " "))
		out = append(out, []byte(enc[4:len(enc)-6]))
	}
	back := []byte(text)
	slices.Reverse(back)
	return append(out, back)
}

// checkCanaries looks for every secret in everything the run has left: what the
// model was shown, what passed the sockets, logs, state, notes, homes.
func (w *world) checkCanaries() []finding {
	seen := finding{check: "files and records searched for secrets outside their home"}
	private := w.stage == runNow // else the model is on this machine and may see them
	err := filepath.WalkDir(w.dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(w.dir, p)
		if err != nil || strings.HasPrefix(rel, "bin/") || strings.HasPrefix(rel, "overlay/") {
			return err
		}
		raw, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		seen.examined++
		for _, c := range w.canaries {
			if slices.ContainsFunc(c.home, func(h string) bool { return strings.HasPrefix(rel, h) }) || c.name == "note" && !private && rel == "prompts.log" {
				continue
			}
			for i, form := range forms(c.text) {
				if at := bytes.Index(raw, form); at >= 0 {
					seen.add("the secret of the %s is in %s (form %d): …%q…", c.name, rel, i, raw[max(0, at-150):min(len(raw), at+80)])
				}
			}
		}
		return nil
	})
	if err != nil {
		seen.add("%v", err)
	}
	tg := finding{check: "lines shown over Telegram searched for secrets"}
	for _, l := range w.telegram.Chat(owner) {
		tg.examined++
		for _, c := range w.canaries {
			if strings.Contains(l.Text, c.text) {
				tg.add("the secret of the %s was sent: %s", c.name, l.Text)
			}
		}
	}
	return []finding{seen, tg}
}

// A reading is what the daemon used at one moment of the watch.
type reading struct {
	at                                    time.Duration
	rss, descriptors, threads, goroutines float64
}

// sample reads twice a second what the daemon uses once nothing ends it any more, and
// all the time what it tells of due times.
func (w *world) sample(ctx context.Context) {
	end := w.now() + w.plan.length
	for pid := 0; rest(ctx, 500*time.Millisecond); {
		w.readRuns(ctx)
		if w.now() < end-w.plan.watch {
			continue
		}
		w.watching.Store(true)
		if now := w.pid(); now != pid {
			w.readings, pid = nil, now // it was still starting
		}
		if r, err := readUse(pid); err == nil {
			r.at, r.goroutines = w.now(), float64(w.health(ctx))
			w.readings = append(w.readings, r)
			w.note("uses %.1f MB, %.0f goroutines, %.0f descriptors, %.0f threads", r.rss, r.goroutines, r.descriptors, r.threads)
		}
	}
}

// readUse is what the system says of a process.
func readUse(pid int) (reading, error) {
	var size, rss float64
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err == nil {
		_, err = fmt.Sscan(string(raw), &size, &rss)
	}
	fds, err1 := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	tasks, err2 := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	return reading{rss: rss * float64(os.Getpagesize()) / (1 << 20), descriptors: float64(len(fds)), threads: float64(len(tasks))}, errors.Join(err, err1, err2)
}

// ask puts one question to the daemon; the zero list when it does not answer.
func (w *world) ask(ctx context.Context, question sexp.Plist) sexp.Plist {
	c, nc, err := w.connect(ctx, w.path("run", "passepartout.sock"), "cli")
	if err != nil {
		return sexp.Plist{}
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(2 * time.Second))
	err = c.Send(proto.Message{Kind: proto.Request, Meta: sexp.P(key("ID"), "h"), Payload: question})
	for err == nil {
		var m proto.Message
		if m, err = c.Receive(); err == nil && m.Kind == proto.Response {
			return m.Payload
		}
	}
	return sexp.Plist{}
}

// health is how many goroutines the daemon has.
func (w *world) health(ctx context.Context) int64 {
	v, _ := w.ask(ctx, sexp.P(key("ACTION"), key("HEALTH-CHECK"))).Get("GOROUTINES")
	n, _ := v.(sexp.Int)
	k, _ := n.Int64()
	return k
}

// readRuns keeps what the daemon tells of due times. It forgets the older ones.
func (w *world) readRuns(ctx context.Context) {
	v, _ := w.ask(ctx, sexp.P(key("ACTION"), key("SCHEDULE-HISTORY"), key("COUNT"), 60)).Get("RUNS")
	l, _ := v.(sexp.List)
	w.books.mu.Lock()
	defer w.books.mu.Unlock()
	if w.books.runs == nil {
		w.books.runs = map[string]map[string]string{}
	}
	for _, x := range l.Items() {
		p, err := sexp.AsPlist(x.(sexp.List))
		if err != nil {
			continue
		}
		due := p.Text("NAME") + " " + p.Text("DUE")
		if w.books.runs[due] == nil {
			w.books.runs[due] = map[string]string{}
		}
		w.books.runs[due][p.Text("RUN")] = string(p.Word("STATE"))
	}
}

// checkRuns: no due time was carried out twice, whatever the clock said.
func (w *world) checkRuns() finding {
	f := finding{check: "due times of jobs, none done twice", examined: len(w.books.runs)}
	for due, runs := range w.books.runs {
		done := 0
		for _, state := range runs {
			if state == "DONE" {
				done++
			}
		}
		if done > 1 {
			f.add("%s was done %d times: %v", due, done, runs)
		}
	}
	return f
}

// checkFlat: what the daemon uses in the last third of the watch is not more than in
// the second, beyond what it keeps in memory of more notes. The first third is for what a
// daemon that was just started fills once.
func (w *world) checkFlat() []finding {
	var out []finding
	for _, u := range []struct {
		name string
		of   func(reading) float64
		more func(before float64) float64
	}{
		{"RSS, MB", func(r reading) float64 { return r.rss }, func(f float64) float64 { return f*1.1 + 8 }},
		{"goroutines", func(r reading) float64 { return r.goroutines }, func(f float64) float64 { return f*1.1 + 10 }},
		{"descriptors", func(r reading) float64 { return r.descriptors }, func(f float64) float64 { return f*1.1 + 8 }},
		{"threads", func(r reading) float64 { return r.threads }, func(f float64) float64 { return f*1.1 + 6 }},
	} {
		var before, after []float64
		for i, r := range w.readings {
			v := u.of(r)
			switch {
			case v == 0: // it did not say
			case i >= len(w.readings)*2/3:
				after = append(after, v)
			case i >= len(w.readings)/3:
				before = append(before, v)
			}
		}
		a, b := median(before), median(after)
		f := finding{check: fmt.Sprintf("%s in the watch: median of the second third %.0f, of the last %.0f", u.name, a, b), examined: len(before) + len(after)}
		switch {
		case min(len(before), len(after)) < 10:
			f.add("only %d readings", f.examined)
		case b > u.more(a):
			f.add("%.0f became %.0f", a, b)
		}
		out = append(out, f)
	}
	return out
}

func median(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	slices.Sort(xs)
	return xs[len(xs)/2]
}
