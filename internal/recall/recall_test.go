package recall_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"passepartout/internal/recall"
)

// shelf is a handful of notes that only differ in what a test asks about.
var shelf = []recall.Doc{
	{ID: "pump", Title: "Offer for the heat pump", Body: "The plumber wants 14,000 for a pump that heats the house."},
	{ID: "passport", Title: "Passport", Tags: []string{"travel"}, Body: "Renewing takes six weeks; bring a photograph."},
	{ID: "parser", Title: "parseQuery is slow", Body: "Profile of memory.ParseQuery and org-agenda-files with http2."},
	{ID: "garten", Title: "Garten", Body: "Die Äpfel müssen vor dem Frost geerntet werden. Straße fegen."},
	{ID: "safar", Title: "السفر إلى القاهرة", Body: "حجز الفندق والتذاكر قبل نهاية الشهر"},
	{ID: "heat", Title: "Summer heat", Body: "Too hot to work. The pump in the garden is broken."},
	{ID: "dentist", Title: "Dentist 2026-11-30", Body: "Appointment at nine."},
}

func filled(docs []recall.Doc) *recall.Index {
	text := map[string]string{}
	for _, d := range docs {
		text[d.ID] = d.Title + "\n" + d.Body
	}
	x := recall.New(recall.Options{Text: func(id string) string { return text[id] }, Hashing: true})
	for _, d := range docs {
		x.Put(d)
	}
	return x
}

func TestTheNoteThatIsMeantComesFirst(t *testing.T) {
	x := filled(shelf)
	for query, want := range map[string]string{
		"heat pump offers":      "pump",
		"renewal of passports":  "passport",
		"pasport":               "passport",
		"photograpy":            "passport",
		"parse query":           "parser",
		"parsequery":            "parser",
		"org-agenda-files":      "parser",
		"agenda files":          "parser",
		"photo*":                "passport",
		`"broken"`:              "heat",
		`"garden is broken"`:    "heat",
		"apfel":                 "garten",
		"strasse":               "garten",
		"Apfelernte":            "garten",
		"فندق":                  "safar",
		"القاهره":               "safar",
		"2026-11-30":            "dentist",
		"travel":                "passport",
		"the plumber's invoice": "pump",
	} {
		hits := x.Search(query, 3, recall.Fused)
		if len(hits) == 0 || hits[0].ID != want {
			t.Errorf("%s: want %s first, found %+v", query, want, hits)
		}
	}
}

func TestAPhraseMustStandAsItIsQuoted(t *testing.T) {
	if hits := filled(shelf).Search(`"pump heat"`, 5, recall.Fused); len(hits) != 0 {
		t.Errorf("no note has these words in this order, found %+v", hits)
	}
}

func TestNothingIsFoundForNothing(t *testing.T) {
	x := filled(shelf)
	for _, q := range []string{"", "  ", "the of and", `""`, "*", "…", "zzzzqqqq"} {
		for _, m := range []recall.Mode{recall.Fused, recall.Lexical, recall.Vector} {
			if hits := x.Search(q, 5, m); len(hits) != 0 {
				t.Errorf("%q by %v: want nothing, found %+v", q, m, hits)
			}
		}
	}
	if hits := x.Search("pump", 0, recall.Fused); len(hits) != 0 {
		t.Errorf("a limit of 0 found %+v", hits)
	}
}

func TestModesHaveNames(t *testing.T) {
	for _, m := range []recall.Mode{recall.Fused, recall.Lexical, recall.Vector, recall.Hashing} {
		if back, err := recall.ParseMode(m.String()); err != nil || back != m {
			t.Errorf("%v: read back as %v, %v", m, back, err)
		}
	}
	if m, err := recall.ParseMode(":hashing"); err != nil || m != recall.Hashing {
		t.Errorf(":hashing: found %v, %v", m, err)
	}
	if _, err := recall.ParseMode("bert"); err == nil {
		t.Error("bert is no mode")
	}
}

// invented makes notes about a few topics, whose words are never all in one note.
func invented(n int, seed uint64) []recall.Doc {
	r := rand.New(rand.NewPCG(seed, 1))
	docs := make([]recall.Doc, n)
	for i := range docs {
		topic := r.IntN(20)
		var b strings.Builder
		for range 20 + r.IntN(30) {
			if r.IntN(3) == 0 {
				fmt.Fprintf(&b, "common%d ", r.IntN(400))
			} else {
				fmt.Fprintf(&b, "topic%dword%d ", topic, r.IntN(40))
			}
		}
		docs[i] = recall.Doc{ID: fmt.Sprintf("n%05d", i), Title: fmt.Sprintf("topic%dword%d", topic, r.IntN(40)), Body: b.String()}
	}
	return docs
}

// some returns five of the words.
func some(r *rand.Rand, words string) string {
	w := strings.Fields(words)
	r.Shuffle(len(w), func(i, j int) { w[i], w[j] = w[j], w[i] })
	return " " + strings.Join(w[:5], " ")
}

func TestLearntVectorsRelateWordsThatNeverMeet(t *testing.T) {
	var docs []recall.Doc
	r := rand.New(rand.NewPCG(7, 7))
	cars := strings.Fields("automobile car van truck coupe wagon jeep taxi")
	cakes := strings.Fields("bread cake tart muffin scone pretzel bagel roll")
	for i := range 200 {
		docs = append(docs,
			recall.Doc{ID: fmt.Sprintf("c%d", i), Body: cars[i%len(cars)] + some(r, "engine wheel brake gearbox road fuel tyre clutch mirror bonnet axle garage")},
			recall.Doc{ID: fmt.Sprintf("b%d", i), Body: cakes[i%len(cakes)] + some(r, "flour oven yeast sugar tin knead dough butter crust baker salt recipe")})
	}
	x := filled(docs)
	if err := x.Learn(context.Background()); err != nil {
		t.Fatal(err)
	}
	about := 0
	for _, h := range x.Search("automobile", 60, recall.Vector) {
		if strings.HasPrefix(h.ID, "c") {
			about++
		}
	}
	if about < 55 {
		t.Errorf("of the 60 nearest to automobile %d are about cars, and 25 have the word", about)
	}
}

func TestLearningTwiceGivesTheSameRanking(t *testing.T) {
	docs := invented(800, 1)
	a, b := filled(docs), filled(docs)
	for _, x := range []*recall.Index{a, b} {
		if err := x.Learn(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 50 {
		q := fmt.Sprintf("topic%dword%d common%d common%d", i%20, i%40, i, i*3)
		if x, y := a.Search(q, 50, recall.Fused), b.Search(q, 50, recall.Fused); !slices.Equal(x, y) {
			t.Fatalf("%s: two indexes of the same notes disagree:\n%v\n%v", q, x[:3], y[:3])
		}
	}
}

// Whatever was put, replaced and deleted before, the index finds what an index
// made of the remaining notes alone finds.
func TestAnIndexForgetsItsPast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		live := map[string]recall.Doc{}
		x := recall.New(recall.Options{})
		word := rapid.SampledFrom([]string{"alpha", "beta", "gamma", "delta", "epsilon", "zeta"})
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			id := fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "id"))
			if rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
				x.Delete(id)
				delete(live, id)
				continue
			}
			d := recall.Doc{ID: id, Title: word.Draw(t, "title"), Body: strings.Join(rapid.SliceOfN(word, 0, 5).Draw(t, "body"), " ")}
			x.Put(d)
			live[id] = d
		}
		if x.Len() != len(live) {
			t.Fatalf("want %d notes, found %d", len(live), x.Len())
		}
		q := word.Draw(t, "query")
		var want, found []string
		for id, d := range live {
			if strings.Contains(d.Title+" "+d.Body, q) {
				want = append(want, id)
			}
		}
		for _, h := range x.Search(q, 100, recall.Lexical) {
			found = append(found, h.ID)
		}
		slices.Sort(want)
		slices.Sort(found)
		if !slices.Equal(want, found) {
			t.Fatalf("%s: want %v, found %v", q, want, found)
		}
	})
}

func TestCompactionKeepsRankingAndVectors(t *testing.T) {
	docs := invented(3000, 2)
	x := filled(docs)
	if err := x.Learn(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, d := range docs[:1500] { // more than a quarter: compacts on the way
		x.Delete(d.ID)
	}
	y := filled(docs[1500:])
	for i := range 20 {
		q := fmt.Sprintf("topic%dword%d", i, i)
		a, b := x.Search(q, 10, recall.Lexical), y.Search(q, 10, recall.Lexical)
		if len(a) != len(b) {
			t.Fatalf("%s: %d hits after deleting, %d without the deleted", q, len(a), len(b))
		}
		for _, h := range x.Search(q, 30, recall.Vector) {
			if h.ID < docs[1500].ID {
				t.Fatalf("%s: found %s, which was deleted", q, h.ID)
			}
		}
	}
}

func TestSearchesRunBesidePuts(t *testing.T) {
	docs := invented(2000, 3)
	x := filled(docs[:500])
	var wg sync.WaitGroup
	wg.Go(func() {
		for _, d := range docs[500:] {
			x.Put(d)
		}
		for _, d := range docs[:400] {
			x.Delete(d.ID)
		}
	})
	wg.Go(func() {
		if err := x.Learn(context.Background()); err != nil {
			t.Error(err)
		}
	})
	for range 2 {
		wg.Go(func() {
			for i := range 200 {
				x.Search(fmt.Sprintf("topic%dword%d common3", i%20, i%40), 10, recall.Fused)
			}
		})
	}
	wg.Wait()
	if x.Len() != 1600 {
		t.Errorf("want 1600 notes, found %d", x.Len())
	}
}

func FuzzSearchNeverPanics(f *testing.F) {
	for _, d := range shelf {
		f.Add(d.Title, d.Body)
	}
	f.Add("\xff\xfe*", `"`+"\u0640")
	f.Fuzz(func(t *testing.T, q, body string) {
		x := filled(append(slices.Clone(shelf), recall.Doc{ID: "new", Title: q, Body: body}))
		for _, m := range []recall.Mode{recall.Fused, recall.Lexical, recall.Vector, recall.Hashing} {
			for _, h := range x.Search(q, 5, m) {
				if h.ID == "" || h.Score <= 0 {
					t.Fatalf("%q: hit %+v", q, h)
				}
			}
		}
	})
}
