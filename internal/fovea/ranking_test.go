package fovea_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"passepartout/internal/recall"
)

var update = flag.Bool("update", false, "write the golden files")

// asked is what people ask for, and the note they mean.
var asked = []struct{ query, target string }{
	{"when is the car due for service", "syn-car"},
	{"automobile garage", "syn-car"},
	{"what did the doctor want in may", "syn-doctor"},
	{"blood test physician", "syn-doctor"},
	{"films to watch with the children", "syn-film"},
	{"movie list", "syn-film"},
	{"flat lease notice period", "syn-flat"},
	{"landlord extension", "syn-flat"},
	{"recieving parcels", "typo-receive"},
	{"parcle locker code", "typo-receive"},
	{"when does she swim", "infl-swim"},
	{"swimmer lesson", "infl-swim"},
	{"study about naps", "infl-study"},
	{"memory consolidation", "infl-study"},
	{"parse timestamp range bug", "code-parse"},
	{"parsetimestamp", "code-parse"},
	{"org.parseTimestamp", "code-parse"},
	{"dry run", "code-flag"},
	{"rsync wrapper", "code-flag"},
	{"econnreset", "code-err"},
	{"max concurrent streams", "code-err"},
	{"http server config", "code-camel"},
	{"read header timeout", "code-camel"},
	{"2026-12-03", "date-dentist"},
	{"dentist december okafor", "date-dentist"},
	{"root canal", "date-dentist"},
	{"14 march 2027", "date-launch"},
	{"launch date", "date-launch"},
	{"steuererklarung", "de-steuer"},
	{"Finanzamt Fristverlängerung", "de-steuer"},
	{"Apfel backen", "de-apfel"},
	{"Äpfel schälen", "de-apfel"},
	{"kündigungsfrist wohnung", "de-miete"},
	{"Mietverträge", "de-miete"},
	{"strassenfest", "de-strasse"},
	{"Bank und Getränk Straße", "de-strasse"},
	{"فندق في القاهرة", "ar-safar"},
	{"تذكرة السفر", "ar-safar"},
	{"عدس", "ar-tabkh"},
	{"رواية الطيب صالح", "ar-kitab"},
	{"كتاب", "ar-kitab"},
	{"Okonkwo", "name-okonkwo"},
	{"Chidima Okonkwo solar", "name-okonkwo"},
	{"where does uncle bastien live", "name-lyon"},
	{"rue des tables", "name-lyon"},
	{"choir iban 4471", "num-iban"},
	{"treasurer of the choir", "num-iban"},
	{"wifi password for guests", "para-wifi"},
	{"internet is slow what to do", "para-wifi"},
	{"locked out who has a key", "para-key"},
	{"neighbour with the spare key", "para-key"},
	{"what is emil allergic to", "para-allergy"},
	{"adrenaline pen", "para-allergy"},
	{"which batteries does the bike light need", "para-battery"},
	{"present for grandma", "para-gift"},
	{"gift ideas grandmother", "para-gift"},
	{"how long may I stay in vietnam", "para-visa"},
	{"mold in the bedroom", "para-mould"},
	{"black spots behind the wardrobe", "para-mould"},
	{"gdpr article 15", "acro-gdpr"},
	{"data subject access request", "acro-gdpr"},
	{"wind turbine decibel", "comp-wind"},
	{"ευχαριστω", "greek"},
	{"party list balloons", "emoji"},
	{`"two AAA cells"`, "para-battery"},
	{"adrenal*", "para-allergy"},
}

// A change in ranking shows as a change of the golden file.
func TestNotesAreFoundAtTheRankTheyWere(t *testing.T) {
	_, m := open(t, writeMemex(t, 2000))
	var b bytes.Buffer
	reciprocal, top3 := 0.0, 0
	for _, q := range asked {
		rank := 0
		for i, h := range m.Index().Search(q.query, 100, recall.Fused) {
			if h.ID == q.target {
				rank = i + 1
				break
			}
		}
		if rank > 0 {
			reciprocal += 1 / float64(rank)
		}
		if rank > 0 && rank <= 3 {
			top3++
		}
		fmt.Fprintf(&b, "%3d  %-14s %s\n", rank, q.target, q.query)
	}
	fmt.Fprintf(&b, "mean reciprocal rank %.3f, in the first three %d of %d (rank 0: not in the first 100)\n", reciprocal/float64(len(asked)), top3, len(asked))
	golden := filepath.Join("testdata", "ranking.golden")
	if *update {
		save(t, golden, b.String())
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, b.Bytes()) {
		t.Errorf("ranking changed; look at it, then run with -update:\n%s", changes(string(want), b.String()))
	}
	if top3*100 < 85*len(asked) {
		t.Errorf("only %d of %d are in the first three", top3, len(asked))
	}
}

// changes are the lines in which two texts of equally many lines differ.
func changes(before, after string) string {
	var b strings.Builder
	was, is := strings.Split(before, "\n"), strings.Split(after, "\n")
	for i := range max(len(was), len(is)) {
		var x, y string
		if i < len(was) {
			x = was[i]
		}
		if i < len(is) {
			y = is[i]
		}
		if x != y {
			fmt.Fprintf(&b, "-%s\n+%s\n", x, y)
		}
	}
	return b.String()
}
