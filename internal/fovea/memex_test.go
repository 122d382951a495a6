package fovea_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"passepartout/internal/fovea"
	"passepartout/internal/memory"
	"passepartout/internal/recall"
)

// An area of life, and the words people use in it.
type area struct{ name, things, deeds, details string }

var areas = []area{
	{"house", "roof gutter boiler radiator window kitchen bathroom stairs cellar attic fence wall tiles insulation", "repair paint replace measure order inspect seal clean", "the craftsman comes on Monday;needs two coats;the invoice is in the folder;costs more than planned;water gets in when it rains"},
	{"garden", "tomatoes roses hedge lawn compost apple pear beans potatoes shed pond seeds soil", "plant prune water harvest sow dig mow fertilise", "after the last frost;in the shade;slugs ate half of it;the neighbour lent the tool;needs rain"},
	{"travel", "flight train hotel ferry visa luggage museum beach mountains ticket itinerary airport", "book cancel compare pack reserve visit print", "window seat if possible;breakfast included;the connection is short;refund within a week;passport control takes long"},
	{"software", "parser cache index socket daemon compiler test benchmark release branch database scheduler", "refactor debug profile deploy review document rewrite", "fails under load;a race condition;the stack trace points to the lock;p99 latency doubled;covered by a unit test"},
	{"health", "dentist doctor vaccine prescription allergy blood pressure sleep knee back therapy glasses", "schedule measure renew ask book note", "twice a day after meals;the insurance pays half;better since last month;bring the card;results in a week"},
	{"money", "tax mortgage invoice salary pension insurance savings account fund budget receipt loan", "pay file check transfer compare cancel declare", "due at the end of the quarter;interest went up;the bank wants a form;keep for ten years;deductible"},
	{"kitchen", "bread soup curry pasta cake lentils dumplings sauce salad dough stew pancake", "bake simmer knead chop season roast freeze", "half a teaspoon of salt;let it rest overnight;the children liked it;oven at two hundred degrees;double the garlic"},
	{"music", "piano guitar choir concert chord rehearsal score sonata metronome recording melody rhythm", "practise tune record rehearse transcribe perform", "slow tempo first;left hand alone;the conductor changed the date;bars twelve to twenty;a new string"},
	{"school", "essay exam lecture thesis library seminar homework textbook semester grade professor project", "write revise read hand in prepare present", "three sources at least;the deadline moved;group of four;chapter seven is on the test;ask for an extension"},
	{"car", "tyres brakes engine battery gearbox oil clutch exhaust mirror bumper inspection garage", "change check repair rotate charge tow wash", "before winter;makes a noise uphill;the mechanic found rust;under warranty;every ten thousand kilometres"},
	{"people", "birthday mother uncle wedding neighbour colleague friend grandmother dinner letter present visit", "invite call thank write remember meet", "likes orchids;moved to Lyon;allergic to nuts;anniversary in June;sent a postcard"},
	{"books", "novel biography poem essay history author chapter translation library philosophy quotation review", "read borrow finish quote recommend return", "slow start but a strong end;the narrator lies;lent by Ada;underlined page ninety;sequel announced"},
}

// hard are notes made to be asked for in other words than their own.
var hard = []struct{ id, title, body string }{
	{"syn-car", "Automobile service", "The garage checks brakes, tyres and engine of the automobile every spring."},
	{"syn-doctor", "Physician", "The physician wants another blood test in May; bring the insurance card."},
	{"syn-film", "Movies to watch", "Stalker, The Third Man, and something funny for the children."},
	{"syn-flat", "Apartment lease", "The landlord extends the lease of the apartment until 2028; notice is three months."},
	{"typo-receive", "Receiving parcels", "The locker code for parcels is on the fridge."},
	{"infl-swim", "Swimming lessons", "She swims on Tuesdays; lessons are paid until July."},
	{"infl-study", "Studies on sleep", "Two studies say that short naps improve memory consolidation."},
	{"code-parse", "parseTimestamp mishandles ranges", "org.parseTimestamp drops the end of <2026-01-02 Fri>--<2026-01-05 Mon>."},
	{"code-flag", "The --dry-run flag", "cmd/sync gained --dry-run; it prints what rsync_wrapper would do."},
	{"code-err", "ECONNRESET in http2 client", "MAX_CONCURRENT_STREAMS was 1; raised to 100 and the resets went away."},
	{"code-camel", "HTTPServerConfig defaults", "readHeaderTimeout is 5s; idleTimeout stays at two minutes."},
	{"date-dentist", "Dentist on 2026-12-03", "At nine, Dr. Okafor, root canal."},
	{"date-launch", "Launch window", "Either 14 March 2027 or the week after."},
	{"de-steuer", "Steuererklärung", "Belege sammeln, Fristverlängerung beim Finanzamt beantragen."},
	{"de-apfel", "Apfelkuchen", "Die Äpfel schälen, den Teig kühl stellen, bei 180 Grad backen."},
	{"de-miete", "Mietvertrag", "Die Kündigungsfrist beträgt drei Monate zum Monatsende."},
	{"de-strasse", "Straßenfest", "Wir bringen Bänke und Getränke mit; die Straße wird gesperrt."},
	{"ar-safar", "السفر إلى القاهرة", "حجز الفندق والتذاكر قبل نهاية الشهر."},
	{"ar-tabkh", "وصفة العدس", "اغسل العدس ثم اطبخه مع البصل والكمون."},
	{"ar-kitab", "كتب للقراءة", "رواية موسم الهجرة إلى الشمال للطيب صالح."},
	{"name-okonkwo", "Meeting with Chidimma Okonkwo", "She leads the solar co-operative and wants our roof data."},
	{"name-lyon", "Address in Lyon", "Uncle Bastien, 14 rue des Tables Claudiennes."},
	{"num-iban", "Bank details of the choir", "IBAN ends in 4471; the treasurer is Farida."},
	{"para-wifi", "Router", "The guest network password is on the back of the router; restart it when the internet is slow."},
	{"para-key", "Spare key", "Mrs. Lindqvist on the second floor keeps a copy in case we lock ourselves out."},
	{"para-allergy", "Nuts", "Emil must not eat hazelnuts or walnuts; adrenaline pen in the blue bag."},
	{"para-battery", "Bicycle light", "Takes two AAA cells; rechargeables do not fit."},
	{"para-gift", "Ideas for Grandmother", "Orchids, a warm scarf, large-print crosswords."},
	{"para-visa", "Entry to Vietnam", "Ninety days with the e-visa, apply two weeks ahead at the official site."},
	{"para-mould", "Damp corner in the bedroom", "Black spots behind the wardrobe; air twice a day and keep it warm."},
	{"acro-gdpr", "GDPR request", "Answer the data subject within one month, Article 15."},
	{"comp-wind", "Windturbine noise", "Forty-five decibels at the fence at night."},
	{"greek", "Ευχαριστώ", "Greek for thank you; the stress is on the last syllable."},
	{"emoji", "Party 🎉 list", "Balloons, paper plates, ice."},
}

// writeMemex writes a memex of about n headings: files of projects, notes two to
// four levels deep, the same every time.
func writeMemex(tb testing.TB, n int) string {
	tb.Helper()
	dir := tb.TempDir()
	r := rand.New(rand.NewPCG(2026, uint64(n)))
	perFile := max(20, n/2000)
	for written, file := 0, 0; written < n; file++ {
		a := areas[file%len(areas)]
		var b strings.Builder
		fmt.Fprintf(&b, "#+TITLE: %s %d\n\n* %s %d\n", a.name, file, strings.ToUpper(a.name[:1])+a.name[1:], file)
		level := 2
		for i := range perFile {
			level = min(max(level+r.IntN(3)-1, 2), 5)
			writeNote(&b, r, a, level, fmt.Sprintf("n%d-%d", file, i))
		}
		written += perFile + 1
		save(tb, filepath.Join(dir, "projects", fmt.Sprintf("%s-%05d.org", a.name, file)), b.String())
	}
	var b strings.Builder
	b.WriteString("* Assorted\n")
	for _, h := range hard {
		fmt.Fprintf(&b, "** %s\n:PROPERTIES:\n:ID: %s\n:END:\n%s\n", h.title, h.id, h.body)
	}
	save(tb, filepath.Join(dir, "notes", "assorted.org"), b.String())
	return dir
}

func writeNote(b *strings.Builder, r *rand.Rand, a area, level int, id string) {
	things, deeds, details := strings.Fields(a.things), strings.Fields(a.deeds), strings.Split(a.details, ";")
	thing, other := things[r.IntN(len(things))], things[r.IntN(len(things))]
	deed := deeds[r.IntN(len(deeds))]
	todo := ""
	if r.IntN(4) == 0 {
		todo = "TODO "
	}
	fmt.Fprintf(b, "%s %s%s the %s\n", strings.Repeat("*", level), todo, strings.ToUpper(deed[:1])+deed[1:], thing)
	if todo != "" && r.IntN(3) == 0 {
		fmt.Fprintf(b, "DEADLINE: <%s>\n", clock.AddDate(0, 0, r.IntN(400)-200).Format("2006-01-02 Mon"))
	}
	fmt.Fprintf(b, ":PROPERTIES:\n:ID: %s\n:END:\n", id)
	for range 1 + r.IntN(3) {
		fmt.Fprintf(b, "%s the %s and the %s: %s.\n", deeds[r.IntN(len(deeds))], thing, other, details[r.IntN(len(details))])
	}
	if r.IntN(10) == 0 {
		fmt.Fprintf(b, "See [[id:n%d-%d]].\n", r.IntN(50), r.IntN(20))
	}
}

func save(tb testing.TB, path, text string) {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
}

var clock = time.Date(2026, 11, 15, 9, 0, 0, 0, time.UTC)

// open reads a memex and mirrors it, with learnt vectors.
func open(tb testing.TB, dir string) (*memory.Store, *fovea.Mirror) {
	tb.Helper()
	s, err := memory.Open(context.Background(), dir, memory.Options{State: tb.TempDir(), Now: func() time.Time { return clock }})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	m := fovea.NewMirror(recall.Options{})
	m.Sync(s.View())
	if err := m.Learn(context.Background()); err != nil {
		tb.Fatal(err)
	}
	return s, m
}

// remote is an embedder elsewhere that remembers what it was sent.
type remote struct{ sent []string }

func (*remote) Name() string { return "remote" }
func (*remote) Local() bool  { return false }

func (r *remote) Embed(_ context.Context, texts []string, _ bool) ([][]float32, error) {
	r.sent = append(r.sent, texts...)
	out := make([][]float32, len(texts))
	for i := range out {
		out[i] = []float32{1, 2, 3}
	}
	return out, nil
}
