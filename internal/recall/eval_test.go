package recall_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"passepartout/internal/llm"
	"passepartout/internal/recall"
)

// sharedData is the directory of the shared sets, or the test is skipped.
func sharedData(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("PASSEPARTOUT_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	dir = filepath.Join(dir, "data", "recall")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("the shared data directory is not here; set PASSEPARTOUT_SHARED")
	}
	return dir
}

type line struct {
	ID    string `json:"_id"`
	Title string `json:"title"`
	Text  string `json:"text"`
}

func lines(t *testing.T, path string) (out []line) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for dec := json.NewDecoder(f); dec.More(); {
		var l line
		if err := dec.Decode(&l); err != nil {
			t.Fatal(err)
		}
		out = append(out, l)
	}
	return out
}

// A judgedSet is a collection with queries and what belongs to them.
type judgedSet struct {
	docs    []recall.Doc
	queries []line
	rel     map[string]map[string]int
}

func readSet(t *testing.T, dir string) judgedSet {
	t.Helper()
	s := judgedSet{queries: lines(t, filepath.Join(dir, "queries.jsonl")), rel: map[string]map[string]int{}}
	for _, l := range lines(t, filepath.Join(dir, "corpus.jsonl")) {
		s.docs = append(s.docs, recall.Doc{ID: l.ID, Title: l.Title, Body: l.Text})
	}
	s.docs = stamped(s.docs)
	raw, err := os.ReadFile(filepath.Join(dir, "qrels.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	for row := range strings.Lines(string(raw)) {
		p := strings.Split(strings.TrimSpace(row), "\t")
		if g, err := strconv.Atoi(p[len(p)-1]); err == nil && len(p) >= 3 {
			if s.rel[p[0]] == nil {
				s.rel[p[0]] = map[string]int{}
			}
			s.rel[p[0]][p[1]] = max(g, 0)
		}
	}
	return s
}

// ndcg is the mean nDCG@10 of a search, in per cent.
func (s judgedSet) ndcg(search func(text string) []recall.Hit) float64 {
	sum, n := 0.0, 0
	for _, q := range s.queries {
		rel := s.rel[q.ID]
		var grades []int
		for _, g := range rel {
			if g > 0 {
				grades = append(grades, g)
			}
		}
		if len(grades) == 0 {
			continue
		}
		slices.SortFunc(grades, func(a, b int) int { return b - a })
		gain := func(g, at int) float64 { return (math.Pow(2, float64(g)) - 1) / math.Log2(float64(at+2)) }
		dcg, ideal := 0.0, 0.0
		for i, h := range search(q.Text) {
			if i < 10 {
				dcg += gain(rel[h.ID], i)
			}
		}
		for i, g := range grades[:min(10, len(grades))] {
			ideal += gain(g, i)
		}
		sum += dcg / ideal
		n++
	}
	return 100 * sum / float64(n)
}

// Whatever vectors a provider returns, the fusion is never worse than words alone:
// the notes themselves say how far to trust them.
func TestSoakNoProviderMakesSearchWorseThanWordsAlone(t *testing.T) {
	dir := sharedData(t)
	if os.Getenv("PASSEPARTOUT_SOAK") == "" {
		t.Skip("takes minutes; set PASSEPARTOUT_SOAK=1")
	}
	names := []string{"cranfield", "manual-index"}
	for _, name := range names {
		set := readSet(t, filepath.Join(dir, name))
		learner := library(set.docs)
		if err := learner.Learn(context.Background()); err != nil {
			t.Fatal(err)
		}
		words := set.ndcg(func(q string) []recall.Hit { return learner.Search(q, 10, recall.Lexical) })
		alone := set.ndcg(func(q string) []recall.Hit { return learner.Search(q, 10, recall.Fused) })
		t.Logf("%-13s words %.1f, fused offline %.1f", name, words, alone)
		kinds := embedders(learner)
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			t.Run(name+"/"+kind, func(t *testing.T) {
				s := serveVectors(t, kinds[kind])
				x := learner // a feed takes the place of the one before
				f := recall.NewFeed(x, recall.FeedOptions{Dir: t.TempDir(), Embedder: s.embedder(t, "ollama", "m", llm.Options{})})
				drain(t, f)
				vec := set.ndcg(func(q string) []recall.Hit {
					return x.SearchNear(q, f.Question(t.Context(), q, false), 10, recall.Vector)
				})
				fused := set.ndcg(func(q string) []recall.Hit {
					return x.SearchNear(q, f.Question(t.Context(), q, false), 10, recall.Fused)
				})
				c := f.Progress().Cal
				t.Logf("%-13s %-9s vectors alone %5.1f, fused %5.1f (share %.1f, gain %+.3f on %d questions, floor %.2f)", name, kind, vec, fused, c.Weight, c.Gain, c.Questions, c.Floor)
				if fused < words {
					t.Errorf("fused %.2f, words alone %.2f", fused, words)
				}
			})
		}
	}
}

// embedders are scripted models, from one with a sense of meaning to one that means
// harm.
func embedders(learner *recall.Index) map[string]func(model, text string) []float32 {
	bag := func(_, text string) []float32 { // words hashed into few components
		v := make([]float32, 256)
		for _, w := range strings.Fields(strings.ToLower(text)) {
			h := fnv.New32a()
			_, _ = h.Write([]byte(strings.Trim(w, ".,;:()"))) // a hash never fails to write
			v[h.Sum32()%256]++
		}
		for i := range v {
			v[i] = float32(math.Log1p(float64(v[i]))) + 0.3 // all in one corner, as models are
		}
		return v
	}
	letters := func(_, text string) []float32 {
		v := make([]float32, 64)
		v[63] = 1
		for _, b := range []byte(text) {
			v[b%64]++
		}
		return v
	}
	learnt := func(_, text string) []float32 {
		v := learner.VectorOf(text)
		v[0] += 1e-6 // never without a direction
		return v
	}
	return map[string]func(model, text string) []float32{
		"learnt":  learnt,
		"bag":     bag,
		"letters": letters,
		"random":  noise(128),
		"hostile": func(m, text string) []float32 { // far from what is asked
			v := learnt(m, text)
			if len(text) < 200 {
				for i := range v {
					v[i] = -v[i]
				}
			}
			return v
		},
		"constant": func(string, string) []float32 { return slices.Repeat([]float32{1}, 64) },
	}
}

// TestThresholdsMeanTheSameForEveryEmbedder measures where three of four pairs of
// sentences are ones that people call alike.
func TestThresholdsMeanTheSameForEveryEmbedder(t *testing.T) {
	f, err := os.Open(filepath.Join(sharedData(t), "sts", "stsb-dev.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const alikeGrade = 3 // of 5: "roughly the same, some important information differs"
	type pair struct {
		grade float64
		a, b  string
	}
	var pairs []pair
	var docs []recall.Doc
	for s := bufio.NewScanner(f); s.Scan(); {
		p := strings.Split(s.Text(), "\t")
		g, err := strconv.ParseFloat(p[0], 64)
		if err != nil || len(p) < 3 {
			t.Fatalf("%q", s.Text())
		}
		pairs = append(pairs, pair{g, p[1], p[2]})
		docs = append(docs, recall.Doc{ID: fmt.Sprint(2 * len(pairs)), Body: p[1]}, recall.Doc{ID: fmt.Sprint(2*len(pairs) + 1), Body: p[2]})
	}
	x := library(docs)
	if err := x.Learn(t.Context()); err != nil {
		t.Fatal(err)
	}
	cos := func(a, b []float32) float64 {
		var ab, aa, bb float64
		for i := range a {
			ab, aa, bb = ab+float64(a[i])*float64(b[i]), aa+float64(a[i])*float64(a[i]), bb+float64(b[i])*float64(b[i])
		}
		return ab / math.Sqrt(max(aa*bb, 1e-30))
	}
	jaccard := func(a, b string) float64 {
		y := recall.New(recall.Options{Hashing: true})
		y.Put(recall.Doc{ID: "a", Body: a})
		if h := y.Search(b, 1, recall.Hashing); len(h) > 0 {
			return h[0].Score
		}
		return 0
	}
	measure := func(sim func(a, b string) float64) (floor, alike, recalled float64) {
		type scored struct{ sim, grade float64 }
		var all []scored
		for i, p := range pairs {
			all = append(all, scored{sim(p.a, p.b), p.grade})
			floor += sim(p.a, pairs[(i+len(pairs)/2)%len(pairs)].b)
		}
		slices.SortFunc(all, func(a, b scored) int {
			if a.sim > b.sim {
				return -1
			}
			return 1
		})
		total, hit := 0, 0
		for _, p := range all {
			if p.grade >= alikeGrade {
				total++
			}
		}
		for i, p := range all {
			if p.grade >= alikeGrade {
				hit++
			}
			if i >= 20 && hit*4 >= 3*(i+1) {
				alike, recalled = p.sim, float64(hit)/float64(total)
			}
		}
		return floor / float64(len(pairs)), alike, recalled
	}
	learnt, hashing := recall.AlikeAt()
	for name, m := range map[string]struct {
		sim  func(a, b string) float64
		want struct{ Floor, Alike float64 }
	}{
		"learnt":  {func(a, b string) float64 { return cos(x.VectorOf(a), x.VectorOf(b)) }, learnt},
		"hashing": {jaccard, hashing},
	} {
		floor, alike, recalled := measure(m.sim)
		t.Logf("%-8s unrelated pairs %.3f; three of four alike from %.3f on, which holds %.0f %% of all alike", name, floor, alike, 100*recalled)
		if math.Abs(floor-m.want.Floor) > 0.02 || math.Abs(alike-m.want.Alike) > 0.03 {
			t.Errorf("%s: the scale says %.2f and %.2f", name, m.want.Floor, m.want.Alike)
		}
	}
}
