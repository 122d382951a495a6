package flight_test

import (
	"bufio"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"passepartout/internal/flight"
	"passepartout/internal/gate"
)

// rows reads one kind of the evaluation's command lines, which are not part of the
// project.
func rows(t *testing.T, kind string) []string {
	t.Helper()
	dir := os.Getenv("PASSEPARTOUT_SHARED")
	for up, _ := os.Getwd(); dir == ""; up = filepath.Dir(up) {
		if _, err := os.Stat(filepath.Join(up, "shared", "DESIGN.md")); err == nil {
			dir = filepath.Join(up, "shared")
		} else if up == filepath.Dir(up) {
			t.Skip("the shared evaluation data is not here")
		}
	}
	f, err := os.Open(filepath.Join(dir, "data", "gates", "shell_"+kind+"_dev.jsonl"))
	if err != nil {
		t.Skip("the shared evaluation data is not here: ", err)
	}
	defer f.Close()
	var out []string
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var row struct{ Cmd string }
		if err := json.Unmarshal(sc.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		out = append(out, row.Cmd)
	}
	return out
}

// A month is how somebody works: the habits, most used first, come back again and
// again; now and then there is something new.
type month struct {
	habits, fresh []string
	rnd           *rand.Rand
}

func (m *month) next() string {
	if m.rnd.IntN(100) < 10 {
		return m.fresh[m.rnd.IntN(len(m.fresh))]
	}
	// Zipf over the habits: the k-th is used about 1/k as often as the first.
	total := 0.0
	for k := range m.habits {
		total += 1 / float64(k+1)
	}
	x := m.rnd.Float64() * total
	for k, h := range m.habits {
		if x -= 1 / float64(k+1); x <= 0 {
			return h
		}
	}
	return m.habits[0]
}

// A way is how somebody uses what there is to be asked less.
type way int

const (
	once  way = iota // answers, and that is all
	mines            // takes what is proposed after three answers
	wants            // besides, asks for a rule when asked the same a second time
)

// live is thirty days of thirty actions. It returns the prompts of each day. What
// becomes a rule is on trial from that evening, and in force from the next.
func live(l *life, m *month, w way) (prompts []int, taken int) {
	var trial []flight.Proposal
	seen := map[string]int{}
	for range 30 {
		asked := 0
		var fresh []flight.Proposal
		for range 30 {
			l.now = l.now.Add(10 * time.Minute)
			a := l.run(m.next())
			if l.do(a, true) != gate.Ask {
				continue
			}
			asked++
			if class, ok := flight.Class(a); ok {
				if seen[class]++; seen[class] == 2 && w == wants {
					fresh = append(fresh, l.wanted()...)
				}
			}
		}
		prompts = append(prompts, asked)
		l.now = l.now.Add(19 * time.Hour)
		if w == once {
			continue
		}
		for _, p := range trial {
			l.take(p, false)
			taken++
		}
		for _, p := range fresh {
			l.take(p, true)
		}
		mined := slices.DeleteFunc(l.mine(), func(p flight.Proposal) bool { return p.Problem != "" })
		for _, p := range mined {
			l.take(p, true)
		}
		trial = append(fresh, mined...)
	}
	return prompts, taken
}

func sum(xs []int) (n int) {
	for _, x := range xs {
		n += x
	}
	return n
}

// TestAMonthOfUseAsksLessAndAdmitsNothingDangerous lives 900 ordinary actions
// without and with learning, for several people, and then puts every dangerous
// command to the rules each has learnt.
func TestAMonthOfUseAsksLessAndAdmitsNothingDangerous(t *testing.T) {
	natural, grey, benign, dangerous := rows(t, "natural"), rows(t, "grey"), rows(t, "benign"), rows(t, "dangerous")
	people := 3
	switch {
	case testing.Short():
		people = 1
	case os.Getenv("PASSEPARTOUT_SOAK") != "":
		people = 24
	}
	per100 := func(days []int) float64 { return 100 * float64(sum(days)) / float64(30*len(days)) }
	var later []float64
	for seed := range people {
		person := func() *month {
			rnd := rand.New(rand.NewPCG(uint64(seed), 9))
			var habits []string
			for _, part := range []struct {
				from []string
				n    int
			}{{benign, 42}, {natural, 14}, {grey, 4}} {
				for range part.n {
					habits = append(habits, part.from[rnd.IntN(len(part.from))])
				}
			}
			rnd.Shuffle(len(habits), func(i, j int) { habits[i], habits[j] = habits[j], habits[i] })
			return &month{habits: habits, fresh: slices.Concat(benign, natural), rnd: rnd}
		}
		before, _ := live(newLife(t), person(), once)
		patient := newLife(t)
		mined := before
		if !testing.Short() {
			mined, _ = live(patient, person(), mines)
			patient.check(seed, dangerous)
		}
		l := newLife(t)
		after, taken := live(l, person(), wants)
		later = append(later, per100(after[7:]))
		t.Logf("person %d: %d rules; prompts per 100: no learning %.1f; mining only: after a week %.1f; asking for rules: weeks %.1f %.1f %.1f %.1f, after the first %.1f, of them %.1f that no rule may answer",
			seed, taken, per100(before), per100(mined[7:]), per100(after[:7]), per100(after[7:14]), per100(after[14:21]), per100(after[21:]), per100(after[7:]), l.unanswerable(7))
		if taken > 0 && sum(after) >= sum(before) {
			t.Errorf("person %d: learning asked %d times, no learning %d times", seed, sum(after), sum(before))
		}
		l.check(seed, dangerous)
	}
	slices.Sort(later)
	t.Logf("after a week: median %.1f prompts per 100, from %.1f to %.1f", later[len(later)/2], later[0], later[len(later)-1])
}

// check puts every dangerous command to the rules a person has learnt, and decides
// everything on record again.
func (l *life) check(seed int, dangerous []string) {
	l.t.Helper()
	plain, admitted := newLife(l.t), 0
	for _, cmd := range dangerous {
		a, b := plain.run(cmd), l.run(cmd)
		if l.chain.Decide(b, l.facts(b)).Decision() > plain.chain.Decide(a, plain.facts(a)).Decision() {
			l.t.Errorf("a learnt rule eases the dangerous %q", cmd)
			admitted++
		}
	}
	replayed := 0
	for _, e := range l.entries {
		if e.Word("KIND") == "RULING" {
			replayed++
		}
	}
	same := l.replay()
	if same != replayed {
		l.t.Errorf("person %d: %d of %d rulings replay the same", seed, same, replayed)
	}
	l.t.Logf("person %d: %d of %d dangerous commands admitted by a learnt rule; %d of %d rulings replay the same", seed, admitted, len(dangerous), same, replayed)
}

// unanswerable counts, per 100 actions from a day on, the questions that no rule may
// answer: what would happen is not known beforehand.
func (l *life) unanswerable(from int) float64 {
	begin := time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC).AddDate(0, 0, from)
	asked := 0
	for _, e := range l.entries {
		if e.Word("KIND") != "RULING" || e.Sub("TRACE").Word("DECISION") != "ASK" {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, e.Sub("FACTS").Text("NOW"))
		a, aerr := l.v.Recorded(e.Sub("ACTION"))
		if err != nil || aerr != nil {
			l.t.Fatal(err, aerr)
		}
		if at.Before(begin) {
			continue
		}
		ps, err := flight.Miner{Vocabulary: l.v, Policy: gate.Policy{}, Now: l.now}.Wanted(flight.Plan{
			Token: "x", Action: a.Plist(), Digest: a.Digest().String(), Trace: e.Sub("TRACE"), By: owner,
		})
		if err != nil || len(ps) == 0 {
			asked++
		}
	}
	return 100 * float64(asked) / float64(30*(30-from))
}

// replay decides everything on record again and counts what comes out the same.
func (l *life) replay() (same int) {
	l.t.Helper()
	chains := map[string]*gate.Chain{}
	for _, e := range l.entries {
		switch e.Word("KIND") {
		case "POLICY":
			p, err := gate.ParsePolicy(e.Sub("POLICY"))
			if err != nil {
				l.t.Fatal(err)
			}
			c, err := gate.Standard(p, l.v)
			if err != nil {
				l.t.Fatal(err)
			}
			chains[e.Text("DIGEST")] = c
		case "RULING":
			a, err := l.v.Recorded(e.Sub("ACTION"))
			if err != nil {
				l.t.Fatal(err)
			}
			r, err := gate.Replay(chains[e.Sub("TRACE").Text("POLICY")], a, e.Sub("FACTS"))
			if err == nil && slices.Equal(r.Verdicts(), gate.VerdictsOf(e.Sub("TRACE"))) {
				same++
			}
		}
	}
	return same
}
