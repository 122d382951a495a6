package recall

import (
	"context"
	"math"
	"slices"
	"strings"
)

// Bounds of a calibration.
const (
	calNotes     = 2000 // among which a note must be found
	calQuestions = 200
	calLeast     = 8 // fewer prove nothing, and the model gets no say
	calBody      = 40
	calPairs     = 1000
	calShare     = 0.5 // any, to take the signals apart again
)

// calWeights are the shares that are tried.
var calWeights = []float64{0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6}

// calibrate finds out on the notes themselves whether a model's vectors help, and
// how much they should count. A title is a person's own short name for what a note
// says, much like a question: so for some notes the title is taken away, and the
// rest is looked for by it. Others are looked for by two words that stand in them,
// as somebody would who remembers these: that must not get worse. The share is
// chosen that finds both best, less the doubt that so few questions leave; a model
// that does not find better than words do gets none.
func (x *Index) calibrate(ctx context.Context, p *provided, e Embedder) (Calibration, error) {
	t, asked := x.trial(p, e.Local())
	c := Calibration{Floor: t.serving.floor(), Questions: len(asked), Notes: x.Len()}
	if len(asked) < calLeast {
		return c, nil
	}
	if err := t.Learn(ctx); err != nil {
		return c, err
	}
	questions, err := t.embedTrial(ctx, asked, e)
	if err != nil {
		return c, err
	}
	t.serving.centre()
	t.serving.cal = Calibration{Weight: calShare, Floor: c.Floor}
	ranks := make([][]float64, len(calWeights)) // reciprocal, by weight and question
	for i, a := range asked {
		if len(questions[i]) != p.raw {
			continue
		}
		hits := t.SearchNear(a.question, questions[i], pool, Fused)
		for w, share := range calWeights {
			ranks[w] = append(ranks[w], reciprocalRank(hits, a.id, share))
		}
	}
	c.Questions = len(ranks[0])
	if c.Questions < calLeast {
		return c, nil
	}
	c.Weight, c.Gain = bestWeight(ranks)
	return c, nil
}

// bestWeight is the share whose gain over none, less its standard error, is highest.
func bestWeight(ranks [][]float64) (weight, gain float64) {
	const least = 0.002 // of a rank's reciprocal; less is chance
	const sure = 2      // standard errors
	best := least
	n := float64(len(ranks[0]))
	for w := 1; w < len(calWeights); w++ {
		var sum, squares float64
		for i, r := range ranks[w] {
			d := r - ranks[0][i]
			sum += d
			squares += d * d
		}
		mean := sum / n
		doubt := sure * math.Sqrt(max(squares/n-mean*mean, 0)/n)
		if mean-doubt > best {
			best, weight, gain = mean-doubt, calWeights[w], mean
		}
	}
	return weight, gain
}

// reciprocalRank is 1 over the place the note would have if a provider's vectors had
// that share; 0 if it was not found.
func reciprocalRank(hits []Hit, id string, weight float64) float64 {
	score := func(h Hit) float64 {
		if h.keep == 1 {
			return h.Score
		}
		of := (1 - h.keep) / calShare // what a share counts in this question
		return (h.Score-h.Lent)/h.keep*(1-weight*of) + h.Lent/calShare*weight
	}
	at := slices.IndexFunc(hits, func(h Hit) bool { return h.ID == id })
	if at < 0 {
		return 0
	}
	mine, before := score(hits[at]), 0
	for i, h := range hits {
		if s := score(h); i != at && (s > mine || s == mine && h.ID < id) {
			before++
		}
	}
	return 1 / float64(before+1)
}

// A trialNote is looked for: by its title, or by words in it if it still has one.
type trialNote struct {
	id, question, body string
	titled             bool
}

// embedTrial gives the notes that lost their titles vectors of the rest, and returns
// those of the questions.
func (x *Index) embedTrial(ctx context.Context, asked []trialNote, e Embedder) ([][]float32, error) {
	var questions, bodies []string
	var ids []string
	for _, a := range asked {
		questions = append(questions, a.question)
		if !a.titled {
			bodies, ids = append(bodies, a.body), append(ids, a.id)
		}
	}
	texts, err := embedAll(ctx, e, bodies, false)
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		if len(texts[i]) == x.serving.raw {
			x.serving.put(x.byID[id], textKey{}, texts[i])
		}
	}
	return embedAll(ctx, e, questions, true)
}

// remembered are the two words next to each other in a text that tell most, of those
// that are in more notes than this.
func (x *Index) remembered(text string) string {
	var s scanner
	var best float32
	words, last, lastIDF := "", "", float32(0)
	s.words(text, func(w []byte, compound bool) {
		if compound {
			return
		}
		word, idf := string(w), float32(0)
		if t, ok := x.words[word]; ok && t != stopped && len(x.terms[t].posts) >= leastInNotes && len(word) > 2 {
			idf = x.idf(t)
		}
		if both := min(idf, lastIDF); both > best && word != last {
			best, words = both, last+" "+word
		}
		last, lastIDF = word, idf
	})
	return words
}

// trial is an index of some of the notes with their vectors, those that are to be
// found without their titles.
func (x *Index) trial(p *provided, local bool) (*Index, []trialNote) {
	t := New(Options{})
	t.serving = newProvided(p.name, p.raw)
	x.mu.RLock()
	defer x.mu.RUnlock()
	var with []uint32
	for n := range x.notes {
		if !x.notes[n].gone && n < len(p.scale) && p.scale[n] != 0 {
			with = append(with, uint32(n))
		}
	}
	every := max(1, (len(with)+calNotes-1)/calNotes)
	type sampled struct {
		n               uint32
		id, title, body string
	}
	var notes []sampled
	titles := map[string]int{}
	for i := 0; i < len(with); i += every {
		id := x.notes[with[i]].id
		title, body, private := x.opt.Parts(id)
		if private && !local {
			continue // its title would be a question
		}
		notes = append(notes, sampled{with[i], id, title, clip(body)})
		titles[strings.ToLower(title)]++
	}
	fit := func(s sampled) bool {
		return titles[strings.ToLower(s.title)] == 1 && len(s.body) >= calBody && len(x.parse(s.title).words) >= 2
	}
	fits := 0
	for _, s := range notes {
		if fit(s) {
			fits++
		}
	}
	step, seen := max(2, (2*fits+calQuestions-1)/calQuestions), 0
	var asked []trialNote
	for _, s := range notes {
		d := Doc{ID: s.id, Title: s.title, Body: s.body}
		if fit(s) {
			switch seen % step {
			case 0:
				d.Title = ""
				asked = append(asked, trialNote{id: s.id, question: s.title, body: s.body})
			case step / 2:
				asked = append(asked, trialNote{id: s.id, body: s.body, titled: true})
			}
			seen++
		}
		t.Put(d)
		from := int(s.n) * p.dims
		t.serving.putQuantised(t.byID[s.id], textKey{}, p.bytes[from:from+p.dims], p.scale[s.n])
	}
	for i, a := range asked {
		if a.titled {
			asked[i].question = t.remembered(a.body)
		}
	}
	return t, slices.DeleteFunc(asked, func(a trialNote) bool { return a.question == "" })
}

// floor is the mean cosine of notes that were not chosen for being alike.
func (p *provided) floor() float64 {
	var with []uint32
	for n, s := range p.scale {
		if s != 0 {
			with = append(with, uint32(n))
		}
	}
	if len(with) < 2 {
		return 0
	}
	var sum float64
	count := min(calPairs, len(with))
	for i := range count {
		a, b := with[i*len(with)/count], with[(i*len(with)/count+len(with)/2+i%7)%len(with)]
		q := probe{s: &p.space, bytes: p.bytes[int(a)*p.dims : int(a+1)*p.dims], scale: p.scale[a]}
		if a != b {
			sum += float64(q.cosine(b))
		}
	}
	return min(max(sum/float64(count), 0), 0.95)
}

// embedAll embeds in batches.
func embedAll(ctx context.Context, e Embedder, texts []string, query bool) ([][]float32, error) {
	var out [][]float32
	for batch := range slices.Chunk(texts, batchSize) {
		v, err := e.Embed(ctx, batch, query)
		if err != nil {
			return nil, err
		}
		out = append(out, v...)
	}
	return out, nil
}
