package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// A record is docs/benchmarks.json: what compare holds a new run against.
type record struct {
	Machine string             `json:"machine"`
	Figures map[string]float64 `json:"figures"`
}

// write runs the suite and writes the document, its pictures and its data.
func (b bench) write(ctx context.Context, docs string) error {
	m := b.all(ctx)
	if len(m.figures) == 0 {
		return fmt.Errorf("nothing was measured: %s", strings.Join(m.failed, "; "))
	}
	r := record{Machine: m.machine(), Figures: map[string]float64{}}
	for k, v := range m.figures {
		r.Figures[k] = round(v)
	}
	if b.quick || b.only != "" {
		fmt.Fprintln(b.talk, "measure: not the whole suite at its full length, so the document stays as it is:")
		fmt.Fprint(b.talk, b.document(r))
		return m.err()
	}
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(docs, "benchmarks.json"), append(data, '\n'), 0o644); err != nil {
		return err
	}
	for _, c := range curves {
		name := filepath.Join(docs, "img", c.file+".svg")
		if err := os.WriteFile(name, []byte(c.svg(r.Figures)), 0o644); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(docs, "benchmarks.md"), []byte(b.document(r)), 0o644); err != nil {
		return err
	}
	return m.err()
}

// err is what went wrong in any part.
func (m measured) err() error {
	if len(m.failed) == 0 {
		return nil
	}
	return errors.New(strings.Join(m.failed, "; "))
}

// machine says what was measured on, without a name of its own.
func (m measured) machine() string {
	s := fmt.Sprintf("%d cores", runtime.NumCPU())
	if m.cpu != "" {
		s += " of " + strings.Join(strings.Fields(m.cpu), " ")
	}
	if gb := memoryGB(); gb > 0 {
		s += fmt.Sprintf(", %d GB", gb)
	}
	return s + fmt.Sprintf(", %s/%s, %s", runtime.GOOS, runtime.GOARCH, runtime.Version())
}

// memoryGB is the machine's memory, 0 where the system does not say.
func memoryGB() int {
	raw, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	var kb float64
	if _, err := fmt.Sscanf(string(raw), "MemTotal: %f kB", &kb); err != nil {
		return 0
	}
	return int(math.Round(kb / (1 << 20)))
}

const preface = `# Benchmarks

Made by ` + "`make bench`" + ` (a quarter of an hour); do not edit. ` + "`make bench-compare`" + ` measures again
and fails where something became worse than noise explains. ` + "`make bench-all`" + ` runs every
benchmark there is, not only those shown here.

Measured on: %s.

The ancestor is the Common Lisp program this one follows. Its figures were measured
under SBCL on two cores of a Xeon at 2.5 GHz, with the same generators: a memex of
projects of a hundred headlines each, the same actions, frames and synthetic gates, a
model that answers at once. Times of two machines are comparable only in their order of
magnitude; read the last column so. Ours is the whole product: the model is reached
over HTTP, a conversation is kept, every ruling is in the journal, and everything that
may leave is searched for credentials.

What is noise: times vary by 15 %% between quiet runs, by more where a disk is waited
for (edits, saving, taking back, turns that write), and a 99th percentile can double.
Counts (characters, allocations) and bytes for a headline are the same in every run.
`

// document renders what was measured.
func (b bench) document(r record) string {
	var out strings.Builder
	fmt.Fprintf(&out, preface, r.Machine)
	section := ""
	for _, o := range operations {
		v, ok := o.value(r.Figures)
		if !ok {
			continue
		}
		if o.section != section {
			section = o.section
			fmt.Fprintf(&out, "\n## %s\n\n| what | ancestor | here | times better |\n|---|---:|---:|---:|\n", section)
		}
		ancestor, better := "–", ""
		if o.ancestor != 0 {
			ancestor, better = human(o.ancestor, o.unit), ratio(o.better(v))
		}
		fmt.Fprintf(&out, "| %s | %s | %s | %s |\n", o.what, ancestor, human(v, o.unit), better)
	}
	out.WriteString("\n## How it grows\n")
	for _, c := range curves {
		out.WriteString(c.table(r.Figures))
	}
	return out.String()
}

// ratio prints how many times better something is.
func ratio(r float64) string {
	switch {
	case math.IsInf(r, 0) || math.IsNaN(r):
		return "all"
	case r >= 10:
		return group(math.Round(r)) + "×"
	}
	return fmt.Sprintf("%.2g×", r)
}

// human prints a value with three digits that mean something.
func human(v float64, unit string) string {
	s := ""
	switch a := math.Abs(v); {
	case a >= 1000:
		s = group(math.Round(v))
	case a >= 100:
		s = fmt.Sprintf("%.0f", v)
	case a >= 10:
		s = strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0")
	case a >= 1 || a == 0:
		s = strings.TrimSuffix(fmt.Sprintf("%.2f", v), ".00")
	case a >= 1e-4:
		s = fmt.Sprintf("%.2g", v)
	default:
		s = fmt.Sprintf("%.7f", v)
	}
	return strings.TrimSpace(s + " " + unit)
}

// group puts commas between thousands.
func group(v float64) string {
	s := fmt.Sprintf("%.0f", v)
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// round keeps four digits, which is more than can be repeated.
func round(v float64) float64 {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0
	}
	scale := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}
