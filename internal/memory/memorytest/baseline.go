// Package memorytest writes the memexes that are measured on, for tests and
// benchmarks: the same shape at every size, so that figures of different packages, and
// of the ancestor, can stand beside each other.
package memorytest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// PerProject is how many headlines a project of the baseline has, one file each.
const PerProject = 100

// ID is the identifier of headline i of the baseline.
func ID(i int) string { return fmt.Sprintf("hl-%07d", i) }

// WriteBaseline writes the baseline's memex of n headlines, rounded down to whole
// projects, and returns the bytes written: a root tagged project with nine children of
// ten children each, bodies of 200 characters. With a date, every twentieth headline is
// scheduled and every twentieth has a deadline, spread over the year around it.
func WriteBaseline(dir string, n int, around time.Time) (bytes int64, err error) {
	for p := range n / PerProject {
		text := project(p, around)
		name := filepath.Join(dir, fmt.Sprintf("d%03d", p/100), fmt.Sprintf("p%05d.org", p))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return 0, err
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return 0, err
		}
		bytes += int64(len(text))
	}
	return bytes, nil
}

// project is the text of one project.
func project(p int, around time.Time) string {
	var b strings.Builder
	i := p * PerProject
	head := func(level int, tags string) {
		state := "DONE"
		if i%2 == 0 || level == 1 {
			state = "TODO"
		}
		fmt.Fprintf(&b, "%s %s Headline %d of project %d :%s:\n", strings.Repeat("*", level), state, i, p, tags)
		b.WriteString(planned(i, around))
		body := fmt.Sprintf("Body of headline %d. %s", i, strings.Repeat("lorem ipsum dolor sit amet ", 20))[:200]
		fmt.Fprintf(&b, ":PROPERTIES:\n:ID:       %s\n:END:\n%s\n", ID(i), body)
		i++
	}
	head(1, "project")
	for range 9 {
		head(2, "work:note")
		for range 10 {
			head(3, "work:note")
		}
	}
	return b.String()
}

// planned is the planning line of a headline, "" for most.
func planned(i int, around time.Time) string {
	if around.IsZero() {
		return ""
	}
	day := around.AddDate(0, 0, i*7%365-180).Format("2006-01-02 Mon")
	switch i % 20 {
	case 3:
		return "SCHEDULED: <" + day + ">\n"
	case 8:
		return "DEADLINE: <" + day + ">\n"
	}
	return ""
}
