package secret_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"passepartout/internal/secret"
)

// row is one line of the shared development data. The data stay where they are; nothing of them is copied here.
type row struct {
	ID   string `json:"id"`
	Text string `json:"text"`
	Kind string `json:"kind"`
	Cls  string `json:"cls"`
}

// sharedGates returns the directory of the shared gate data, or skips the test.
func sharedGates(tb testing.TB) string {
	tb.Helper()
	if dir := os.Getenv("PASSEPARTOUT_SHARED"); dir != "" {
		return filepath.Join(dir, "data", "gates")
	}
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "shared", "DESIGN.md")); err == nil {
			return filepath.Join(dir, "shared", "data", "gates")
		}
		up := filepath.Dir(dir)
		if up == dir {
			tb.Skip("the shared development data are not on this machine (set PASSEPARTOUT_SHARED)")
		}
		dir = up
	}
}

func rows(tb testing.TB, name string) []row {
	tb.Helper()
	f, err := os.Open(filepath.Join(sharedGates(tb), name))
	if err != nil {
		tb.Skipf("development data: %v", err)
	}
	defer f.Close()
	var out []row
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<22)
	for sc.Scan() {
		var r row
		if err := json.Unmarshal(sc.Bytes(), &r); err != nil {
			tb.Fatal(err)
		}
		out = append(out, r)
	}
	if err := sc.Err(); err != nil {
		tb.Fatal(err)
	}
	return out
}

func TestDevelopmentDataMeetsTheBars(t *testing.T) {
	s := secret.Default()
	for _, set := range []struct {
		file string
		bar  func(percent float64) bool
		want string
		hit  bool
	}{
		{"secrets_positive_dev.jsonl", func(p float64) bool { return p >= 92 }, "at least 92 %", true},
		{"secrets_negative_dev.jsonl", func(p float64) bool { return p <= 3 }, "at most 3 %", false},
	} {
		type count struct{ stopped, all int }
		var total count
		classes := map[string]*count{}
		for _, r := range rows(t, set.file) {
			c := classes[r.Cls]
			if c == nil {
				c = &count{}
				classes[r.Cls] = c
			}
			ms := s.Scan(r.Text)
			for _, n := range []*count{&total, c} {
				n.all++
				if len(ms) > 0 {
					n.stopped++
				}
			}
			if (len(ms) > 0) != set.hit {
				t.Logf("%s: %s: %v", r.Kind, r.ID, ms)
			}
		}
		share := func(c *count) float64 { return 100 * float64(c.stopped) / float64(max(c.all, 1)) }
		t.Logf("%s: %.1f %% of %d stopped", set.file, share(&total), total.all)
		for name, c := range classes {
			t.Logf("  %s: %.1f %% of %d", name, share(c), c.all)
		}
		if !set.bar(share(&total)) {
			t.Errorf("%s: %.1f %% stopped, want %s", set.file, share(&total), set.want)
		}
	}
}
