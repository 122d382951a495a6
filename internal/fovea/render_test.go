package fovea_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"passepartout/internal/fovea"
	"passepartout/internal/llm"
	"passepartout/internal/memory"
	"passepartout/internal/recall"
)

func TestContextStaysWithinItsBudgetAndIsTheSameTwice(t *testing.T) {
	sizes := []int{1000, 10_000}
	if testing.Short() {
		sizes = sizes[:1]
	}
	tryFoci(t, sizes)
}

// The same at the scales that take minutes to write.
func TestSoakContextAtScale(t *testing.T) {
	switch {
	case os.Getenv("PASSEPARTOUT_SCALE") == "100k":
		tryFoci(t, []int{100_000})
	case os.Getenv("PASSEPARTOUT_SCALE") == "1M":
		tryFoci(t, []int{1_000_000})
	case os.Getenv("PASSEPARTOUT_SOAK") != "":
		tryFoci(t, []int{100_000, 1_000_000})
	default:
		t.Skip("set PASSEPARTOUT_SOAK=1, or PASSEPARTOUT_SCALE to 100k or 1M")
	}
}

// tryFoci renders 500 random foci in memexes of these sizes, under the race detector
// some of them.
func tryFoci(t *testing.T, sizes []int) {
	t.Helper()
	foci := 500
	if underRace {
		foci = 60
	}
	for _, n := range sizes {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s, m := open(t, writeMemex(t, n))
			v := s.View()
			var ids []memory.ID
			for o := range v.All() {
				ids = append(ids, o.ID)
			}
			r := rand.New(rand.NewPCG(8, uint64(n)))
			var took []time.Duration
			for i := range foci {
				f := fovea.Focus{ID: ids[r.IntN(len(ids))], Now: clock, Pinned: []memory.ID{"syn-car"}, Cloud: true}
				if i%5 == 0 {
					f.Budget = 100 + r.IntN(6000)
				}
				if i%3 == 0 {
					f.Query = asked[r.IntN(len(asked))].query
				}
				start := time.Now()
				c := m.Render(v, f)
				took = append(took, time.Since(start))
				if got := llm.Tokens(c.Text); got != c.Tokens || got > c.Budget {
					t.Fatalf("focus %s: %d tokens, counted as %d, budget %d", f.ID, got, c.Tokens, c.Budget)
				}
				if c.Budget >= 1000 && !strings.Contains(c.Text, string(f.ID)) {
					t.Fatalf("focus %s is not in its own context:\n%s", f.ID, c.Text)
				}
				if c.Budget >= 4000 {
					mandatory(t, v, f, c)
				}
				if i%25 == 0 && m.Render(v, f).Text != c.Text {
					t.Fatalf("focus %s: rendered twice, found two texts", f.ID)
				}
			}
			slices.Sort(took)
			t.Logf("%d headings: a context takes %v, %v at the 99th percentile", v.Len(), took[len(took)/2], took[len(took)*99/100])
		})
	}
}

// mandatory checks what is always there: the focus and the way up to it, what is
// pinned, and a reason for every node.
func mandatory(t *testing.T, v *memory.View, f fovea.Focus, c fovea.Context) {
	t.Helper()
	form := map[memory.ID]fovea.Form{}
	for _, e := range c.Entries {
		if e.Reason == "" || e.Form == "" {
			t.Fatalf("no reason or form: %+v", e)
		}
		if e.Form != fovea.Dropped {
			form[e.ID] = e.Form
		}
	}
	if form[f.ID] != fovea.Full && form[f.ID] != fovea.Cut {
		t.Fatalf("the focus %s is shown as %q", f.ID, form[f.ID])
	}
	o, _ := v.Get(f.ID)
	for up := o.Parent; up != ""; {
		p, _ := v.Get(up)
		if form[up] == "" {
			t.Fatalf("%s, above the focus %s, is not shown", up, f.ID)
		}
		up = p.Parent
	}
	if form["syn-car"] == "" {
		t.Fatalf("the pinned note is not shown:\n%s", c.Text)
	}
}

func TestATinyBudgetIsKept(t *testing.T) {
	s, m := open(t, writeMemex(t, 1000))
	for budget := 12; budget < 300; budget += 7 {
		c := m.Render(s.View(), fovea.Focus{ID: "syn-car", Query: "roof", Budget: budget, Now: clock})
		if got := llm.Tokens(c.Text); got > budget {
			t.Errorf("budget %d: %d tokens", budget, got)
		}
	}
}

// A fact deep in a project that has nothing to do with the focus is in the context
// when it is asked for in other words than the note's title.
func TestANeedleIsInTheContext(t *testing.T) {
	const cases = 200
	dir := writeMemex(t, 2000)
	questions := plant(t, dir, cases)
	s, m := open(t, dir)
	found := 0
	for i, q := range questions {
		c := m.Render(s.View(), fovea.Focus{ID: memory.ID(fmt.Sprintf("n%d-%d", i%40, i%15)), Query: q.query, Now: clock})
		if strings.Contains(c.Text, q.target) {
			found++
		}
	}
	t.Logf("%d of %d needles are in the context", found, cases)
	if found*100 < 90*cases {
		t.Errorf("%d of %d needles are in the context, want 90 %%", found, cases)
	}
}

// plant hides facts at depth 7 and returns how they are asked for and what the
// answer is.
func plant(t *testing.T, dir string, n int) (out []struct{ query, target string }) {
	t.Helper()
	names := strings.Fields("Adaeze Bjorn Chiara Dmitri Elif Farouk Greta Hamid Ines Jonas Kaori Leila Mateo Nadia Oskar Priya Quentin Rosa Sami Tomas")
	facts := []struct{ title, body, query string }{
		{"Notes from the call", "%s parked the caravan at lot %d behind the mill.", "where did %s leave the camper, which lot"},
		{"Aside", "The locker that %s rented carries number %d.", "number of the locker rented by %s"},
		{"From the margin", "%s's orchestra seats are in row %d of the balcony.", "which row are the seats of %s in"},
		{"Remember", "To silence the alarm of %s, type %d and wait.", "how do I turn off %s's alarm"},
		{"Scrap", "%s owes us %d crowns since the ski holiday.", "how much do we get back from %s for skiing"},
		{"Overheard", "The kennel keeps the dog of %s in box %d.", "in which kennel box are the dogs of %s"},
		{"Found", "Spare fuse for the loom of %s: %d milliamperes.", "fuse rating for %s's weaving loom"},
		{"Line", "%s sails under pennant %d in the regatta.", "pennant of %s when sailing"},
		{"Card", "The microscope of %s was calibrated at %d nanometres.", "calibration of the microscope that %s uses"},
		{"Slip", "%s stored the tapestry in crate %d.", "what crate did %s put the tapestry in"},
	}
	var b strings.Builder
	for level := 1; level < 7; level++ {
		fmt.Fprintf(&b, "%s Archive level %d\n", strings.Repeat("*", level), level)
	}
	for i := range n {
		f, name, number := facts[i%len(facts)], names[i/len(facts)%len(names)], 4000+37*i
		fmt.Fprintf(&b, "******* %s\n"+f.body+"\n", f.title, name, number)
		out = append(out, struct{ query, target string }{fmt.Sprintf(f.query, name), fmt.Sprint(number)})
	}
	save(t, filepath.Join(dir, "archives", "old.org"), b.String())
	return out
}

// None of a thousand secrets under privacy tags, own or inherited, is in a context
// for a model elsewhere, nor in its explanations; all can be in a local one.
func TestNoPrivateNoteIsShownToAModelElsewhere(t *testing.T) {
	dir := writeMemex(t, 1000)
	var b strings.Builder
	b.WriteString("* Diary :@personal:\n")
	for i := range 500 {
		fmt.Fprintf(&b, "** canary%04dtitle\n:PROPERTIES:\n:ID: secret-%d\n:END:\nThe heat pump and the canary%04dbody. [[id:syn-car]]\n", i, i, i)
	}
	b.WriteString("* Open\n")
	for i := 500; i < 1000; i++ {
		fmt.Fprintf(&b, "** TODO canary%04dtitle :@personal:\nDEADLINE: <2026-11-17 Tue>\n:PROPERTIES:\n:ID: secret-%d\n:END:\nThe automobile and the canary%04dbody.\n", i, i, i)
	}
	save(t, filepath.Join(dir, "daily", "diary.org"), b.String())
	s, m := open(t, dir)
	private, step := 0, 1
	if testing.Short() || underRace {
		step = 10
	}
	for i := 0; i < 1000; i += step {
		f := fovea.Focus{ID: memory.ID(fmt.Sprintf("secret-%d", i)), Query: fmt.Sprintf("canary%04dbody canary%04dtitle automobile", i, i), Now: clock, Cloud: true}
		if i%2 == 0 {
			f.ID, f.Pinned = "syn-car", []memory.ID{memory.ID(fmt.Sprintf("secret-%d", i))}
		}
		c := m.Render(s.View(), f)
		if strings.Contains(fmt.Sprint(c), "canary") || c.Private {
			t.Fatalf("a secret is in the context of %s", f.ID)
		}
		if i%50 == 0 {
			if f.Cloud = false; strings.Contains(m.Render(s.View(), f).Text, fmt.Sprintf("canary%04dbody", i)) {
				private++
			}
		}
	}
	if private != 20 {
		t.Errorf("a local model is shown %d of 20: the test does not look where secrets are", private)
	}
}

func TestTheMirrorFollowsTheMemex(t *testing.T) {
	dir := writeMemex(t, 100)
	s, m := open(t, dir)
	find := func(text string) (ids []memory.ID) {
		for _, o := range m.Search(s.View(), text, 5) {
			ids = append(ids, o.ID)
		}
		return ids
	}
	step := func() {
		t.Helper()
		if err := s.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	save(t, filepath.Join(dir, "a.org"), "* Zeppelin hangar\n:PROPERTIES:\n:ID: zep\n:END:\n")
	step()
	if got := find("zeppelin"); !slices.Contains(got, "zep") {
		t.Fatalf("a new note is not found: %v", got)
	}
	c := m.Render(s.View(), fovea.Focus{Now: clock})
	if !slices.ContainsFunc(c.Entries, func(e fovea.Entry) bool { return e.ID == "zep" && e.Section == "Changed" }) {
		t.Error("a new note is not shown as changed")
	}
	save(t, filepath.Join(dir, "b.org"), "* Moved zeppelin\n:PROPERTIES:\n:ID: zep\n:END:\n")
	if err := os.Remove(filepath.Join(dir, "a.org")); err != nil {
		t.Fatal(err)
	}
	step()
	if got := find("moved zeppelin"); !slices.Contains(got, "zep") {
		t.Fatalf("a moved note is not found: %v", got)
	}
	if err := os.Remove(filepath.Join(dir, "b.org")); err != nil {
		t.Fatal(err)
	}
	step()
	if got := find("zeppelin"); slices.Contains(got, "zep") {
		t.Fatalf("a deleted note is found: %v", got)
	}
}

func TestAnIndexThatIsDoneHasAllFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.org", "b.org", "c/d.org"} {
		save(t, filepath.Join(dir, name), "* Note in "+name+"\n")
	}
	_, m := open(t, dir)
	if have, want := m.Indexing(); have != 3 || want != 3 {
		t.Errorf("%d of %d files are said to be indexed, want 3 of 3", have, want)
	}
}

// TestADeadlineMovesWithItsTask: to a file that is read before the one it left.
func TestADeadlineMovesWithItsTask(t *testing.T) {
	const task = "* TODO Pay\nDEADLINE: <2026-11-16 Mon>\n:PROPERTIES:\n:ID: pay\n:END:\nSee [[id:bill]].\n"
	dir := t.TempDir()
	save(t, filepath.Join(dir, "a.org"), "* Bill\n:PROPERTIES:\n:ID: bill\n:END:\n")
	save(t, filepath.Join(dir, "z.org"), task)
	s, m := open(t, dir)
	for _, place := range []string{"a.org", "z.org"} {
		for name, text := range map[string]string{"a.org": "* Bill\n:PROPERTIES:\n:ID: bill\n:END:\n", "z.org": "* Rest\n"} {
			if name == place {
				text += task
			}
			save(t, filepath.Join(dir, name), text)
		}
		if err := s.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if c := m.Render(s.View(), fovea.Focus{Now: clock}); !strings.Contains(c.Text, "* Due\n- TODO Pay") {
			t.Errorf("in %s: not due:\n%s", place, c.Text)
		}
	}
}

// TestNothingPrivateIsSentForAnIdentifierItShares: which file an identifier leads to, and
// whether a file is secluded, changes without a byte of the file.
func TestNothingPrivateIsSentForAnIdentifierItShares(t *testing.T) {
	const id = ":PROPERTIES:\n:ID: dup\n:END:\n"
	dir := t.TempDir()
	save(t, filepath.Join(dir, "a.org"), "* Open\n"+id+"Nothing to hide here.\n")
	save(t, filepath.Join(dir, "b.org"), "* Hidden :@personal:\n"+id+"The canary sings.\n")
	save(t, filepath.Join(dir, "c.org"), "* Later\nThe canary flies.\n")
	secluded := false
	s, err := memory.Open(t.Context(), dir, memory.Options{Secluded: func(file string) bool { return secluded && file == "c.org" }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	m, to := fovea.NewMirror(recall.Options{}), &remote{}
	feed := m.Lend(recall.FeedOptions{Dir: t.TempDir(), Embedder: to})
	m.Sync(s.View())
	// Before anything is sent, the open namesake goes and the third file is secluded.
	if err := os.Remove(filepath.Join(dir, "a.org")); err != nil {
		t.Fatal(err)
	}
	secluded = true
	if err := s.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.Sync(s.View())
	if err := feed.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(to.sent) > 0 {
		t.Errorf("sent: %q", to.sent)
	}
	if p, _ := m.Progress(); p.Withheld != 2 {
		t.Errorf("%d notes withheld, want 2", p.Withheld)
	}
	if got := m.Search(s.View(), "canary sings", 5); len(got) == 0 || got[0].Title != "Hidden" {
		t.Errorf("the namesake is not found: %v", got)
	}
}

// A file that becomes private while a context is chosen is not in it, and the context is
// not called private for what it does not hold.
func TestWhatBecomesPrivateMeanwhileIsNotShown(t *testing.T) {
	dir := t.TempDir()
	save(t, filepath.Join(dir, "a.org"), "* Open\nNothing to hide here.\n")
	save(t, filepath.Join(dir, "b.org"), "* Canary\nThe canary sings.\n")
	armed, asked, from := false, 0, 0
	s, err := memory.Open(t.Context(), dir, memory.Options{Secluded: func(file string) bool {
		if !armed || file != "b.org" {
			return false
		}
		asked++
		return asked > from
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	m := fovea.NewMirror(recall.Options{})
	m.Sync(s.View())
	armed = true
	shown := 0
	for from = range 40 { // it becomes private a little later each time
		asked = 0
		c := m.Render(s.View(), fovea.Focus{Now: clock, Cloud: true})
		has := strings.Contains(c.Text, "anary")
		if c.Private || has && asked > from || !strings.Contains(c.Text, "Open") {
			t.Errorf("from question %d of %d on: private %t\n%s", from+1, asked, c.Private, c.Text)
		}
		if has {
			shown++
		}
	}
	if shown == 0 || shown == 40 {
		t.Errorf("the canary was shown %d times of 40", shown)
	}
}
