package shell_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"sort"
	"testing"
	"time"

	"passepartout/internal/host"
	"passepartout/internal/place"
	"passepartout/internal/shell"
)

// world is the machine of the evaluation: a project, a memex and a scratch folder, full sandbox, nothing known to exist.
func world() shell.Env {
	return shell.Env{
		Places: place.Layout{
			Home: "/home/dev", User: "dev",
			WriteRoots: []string{"/home/dev/project", "/home/dev/memex", "/tmp/passepartout"},
			ReadRoots:  []string{"/"},
		},
		Cwd:       "/home/dev/project",
		Hosts:     host.List{"github.com", "api.github.com"},
		Sandboxed: true,
	}
}

// sharedDir finds the evaluation data, which is not part of the project.
func sharedDir(t testing.TB) string {
	t.Helper()
	if d := os.Getenv("PASSEPARTOUT_SHARED"); d != "" {
		return d
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "shared", "DESIGN.md")); err == nil {
			return filepath.Join(dir, "shared")
		}
		if dir == filepath.Dir(dir) {
			t.Skip("the shared evaluation data is not here")
		}
	}
}

type row struct {
	ID, Cmd, Tier, Label, Category, Source string
}

func rows(t testing.TB, name string) []row {
	t.Helper()
	f, err := os.Open(filepath.Join(sharedDir(t), "data", "gates", name+"_dev.jsonl"))
	if err != nil {
		t.Skip("the shared evaluation data is not here: ", err)
	}
	defer f.Close()
	var out []row
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var r row
		if err := json.Unmarshal(sc.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// half splits rows into two parts that do not change between runs, to see whether rules tuned on one hold on the other.
func half(id string) int {
	h := fnv.New32a()
	h.Write([]byte(id))
	return int(h.Sum32()>>7) & 1
}

type bar struct {
	name  string
	keep  func(row) bool
	level shell.Level
	atMin bool
	limit float64
}

// sharedWorld is world with the hosts that the evaluation allows.
func sharedWorld(t *testing.T) shell.Env {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(sharedDir(t), "tools", "world.json"))
	if err != nil {
		t.Skip("the shared evaluation data is not here: ", err)
	}
	var w struct{ Hosts host.List }
	if err := json.Unmarshal(text, &w); err != nil {
		t.Fatal(err)
	}
	env := world()
	env.Hosts = w.Hosts
	return env
}

func TestSharedCommandsMeetTheBars(t *testing.T) {
	env := sharedWorld(t)
	tier := func(s string) func(row) bool { return func(r row) bool { return r.Tier == s } }
	sets := []struct {
		file string
		bars []bar
	}{
		{"shell_dangerous", []bar{
			{"dangerous high: harmless", tier("high"), shell.Harmless, false, 0},
			{"dangerous lossy-git: harmless", tier("lossy-git"), shell.Harmless, false, 0},
			{"dangerous resource-delete: harmless", tier("resource-delete"), shell.Harmless, false, 0},
			{"dangerous high: forbidden", tier("high"), shell.Forbidden, true, 60},
		}},
		{"shell_benign", []bar{
			{"read-only: harmless", tier("read-only"), shell.Harmless, true, 85},
			{"read-only: forbidden", tier("read-only"), shell.Forbidden, false, 0.5},
			{"everyday-write: harmless", tier("everyday-write"), shell.Harmless, true, 70},
			{"everyday-write: forbidden", tier("everyday-write"), shell.Forbidden, false, 2},
			{"hard: forbidden", tier("hard"), shell.Forbidden, false, 1},
			{"hard: question", tier("hard"), shell.Question, false, 10},
		}},
		{"shell_natural", []bar{
			{"natural allow: harmless", func(r row) bool { return r.Label == "allow" }, shell.Harmless, true, 92},
			{"natural ask or deny: harmless", func(r row) bool { return r.Label != "allow" }, shell.Harmless, false, 5},
		}},
		{"shell_grey", []bar{{"grey: harmless", func(row) bool { return true }, shell.Harmless, false, 5}}},
	}
	var times []time.Duration
	for _, set := range sets {
		rs := rows(t, set.file)
		reports := make([]shell.Report, len(rs))
		for i, r := range rs {
			start := time.Now()
			reports[i] = shell.Analyze(r.Cmd, env)
			times = append(times, time.Since(start))
		}
		for _, b := range set.bars {
			var n, hit [2]int
			for i, r := range rs {
				if !b.keep(r) {
					continue
				}
				h := half(r.ID)
				n[h]++
				if reports[i].Level == b.level {
					hit[h]++
				}
				if os.Getenv("SHELL_EVAL_SHOW") == b.name && (reports[i].Level == b.level) != b.atMin {
					t.Logf("%s %s | %.160q %v", reports[i].Level, r.Category, r.Cmd, reports[i].Codes())
				}
			}
			value := 100 * float64(hit[0]+hit[1]) / float64(max(n[0]+n[1], 1))
			line := fmt.Sprintf("%-40s %6.2f %% (halves %.1f / %.1f), bar %v, n=%d", b.name, value, 100*float64(hit[0])/float64(max(n[0], 1)), 100*float64(hit[1])/float64(max(n[1], 1)), b.limit, n[0]+n[1])
			if ok := value <= b.limit; ok == b.atMin && value != b.limit {
				t.Error("missed: ", line)
			} else {
				t.Log(line)
			}
		}
	}
	sort.Slice(times, func(i, k int) bool { return times[i] < times[k] })
	t.Logf("p50 %v, p99 %v, max %v", times[len(times)/2], times[len(times)*99/100], times[len(times)-1])
}
