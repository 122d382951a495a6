package pulse_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"passepartout/internal/pulse"
)

// TestADayOfIdlingCallsNoModel lets 24 hours pass by a clock of its own: first with
// nothing but the heartbeat, then with twenty jobs whose predicates fire for some.
func TestADayOfIdlingCallsNoModel(t *testing.T) {
	t.Run("with a heartbeat alone", func(t *testing.T) {
		b := newBed(t, map[string]string{"notes/a.org": "* A\n"})
		beats := 0
		o := b.options()
		o.Checks = []pulse.Check{{Name: "counts", Every: time.Minute, Run: func(context.Context) (string, error) { beats++; return "fine", nil }}}
		b.openWith(o)
		var before, after runtime.MemStats
		day := func() {
			for end := b.clock().Add(24 * time.Hour); b.clock().Before(end); {
				b.set(b.clock().Add(time.Minute))
				b.p.Tick(b.clock())
				b.p.Beat(context.Background(), b.clock())
			}
		}
		day()
		runtime.GC()
		runtime.ReadMemStats(&before)
		day()
		runtime.GC()
		runtime.ReadMemStats(&after)
		if n := len(b.orders()); n != 0 || beats != 2*24*60 {
			t.Errorf("%d orders, %d beats: want 0 and %d", n, beats, 2*24*60)
		}
		grown := int64(after.HeapAlloc) - int64(before.HeapAlloc)
		t.Logf("24 hours, %d beats, 0 orders, heap grew by %d bytes", beats/2, grown)
		if grown > 256<<10 {
			t.Errorf("a second idle day costs %d bytes", grown)
		}
	})
	t.Run("with twenty jobs", func(t *testing.T) {
		var jobs []string
		for i := range 5 {
			jobs = append(jobs,
				job(fmt.Sprintf("Changed %d", i), "Say what changed.", "CRON=*/10 * * * *", fmt.Sprintf("WHEN=changed notes/n%d.org", i)),
				job(fmt.Sprintf("Query %d", i), "Say what is new.", "CRON=*/15 * * * *", fmt.Sprintf("WHEN=query tag:t%d", i)),
				job(fmt.Sprintf("Due %d", i), "Say what is due.", "CRON=0 8 * * *", "WHEN=due"),
				job(fmt.Sprintf("Appeared %d", i), "Look at it.", "CRON=*/5 * * * *", fmt.Sprintf("WHEN=appeared inbox/n%d-*.txt", i)))
		}
		files := schedule(jobs...)
		for i := range 5 {
			files[fmt.Sprintf("notes/n%d.org", i)] = "* Note\n"
		}
		b := newBed(t, files)
		b.pass(start.Add(6 * time.Hour))
		if n := len(b.orders()); n != 0 {
			t.Fatalf("%d calls although nothing happened: %v", n, b.orders())
		}
		b.write("notes/n1.org", "* Note\nMore.\n")
		b.write("notes/n2.org", "* Note :t3:\n") // is also a match of the query
		b.write("inbox/n4-scan.txt", "text")
		b.write("notes/n3.org", "* TODO Pay\nDEADLINE: <2026-11-17 Tue>\n")
		b.pass(start.Add(24 * time.Hour))
		var names []string
		for _, o := range b.orders() {
			names = append(names, o.Name)
		}
		want := "Appeared 4, Changed 1, Changed 2, Changed 3, Due 0, Due 1, Due 2, Due 3, Due 4, Query 3"
		if got := strings.Join(sorted(names), ", "); got != want {
			t.Errorf("want  %s\nfound %s", want, got)
		}
		t.Logf("20 jobs, 24 hours: %d calls, each for a predicate that fired", len(names))
	})
}

func sorted(s []string) []string {
	for i := range s {
		for j := i; j > 0 && s[j] < s[j-1]; j-- {
			s[j], s[j-1] = s[j-1], s[j]
		}
	}
	return s
}

func soak() bool { return os.Getenv("PASSEPARTOUT_SOAK") != "" }

// manyJobs is a schedule of n jobs over the day.
func manyJobs(n int) map[string]string {
	files := map[string]string{}
	for f := range (n + 499) / 500 {
		var b strings.Builder
		for i := f * 500; i < min(n, (f+1)*500); i++ {
			b.WriteString(job(fmt.Sprintf("Job %05d", i), "Words for it.", fmt.Sprintf("CRON=%d %d * * %d", i%60, i%24, i%7), "DO=call x"))
		}
		files[fmt.Sprintf("system/jobs%03d.org", f)] = b.String()
	}
	return files
}

// TestTenThousandJobs opens a pulse over ten thousand jobs and lets it idle by the
// real clock. An ordinary run has fewer jobs and a shorter rest.
func TestTenThousandJobs(t *testing.T) {
	n, rest := 1000, 200*time.Millisecond
	if soak() {
		n, rest = 10_000, 20*time.Second
	}
	b := newBed(t, manyJobs(n))
	if err := b.p.Close(); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	o := b.options()
	o.Now = time.Now
	p, err := pulse.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	p.Tick(time.Now())
	took := time.Since(begin)
	if got := len(p.Status().Jobs); got != n {
		t.Fatalf("want %d jobs, found %d", n, got)
	}
	ctx, cancel := context.WithTimeout(context.Background(), rest)
	defer cancel()
	cpu := cpuTime()
	var wg sync.WaitGroup
	wg.Go(func() { p.Run(ctx) })
	wg.Wait()
	used := cpuTime() - cpu
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d jobs: started in %s; %s of CPU in %s idle, %.3f %%", n, took, used, rest, 100*used.Seconds()/rest.Seconds())
}

// BenchmarkStart opens a pulse over ten thousand jobs.
func BenchmarkStart(b *testing.B) {
	bed := newBed(&testing.T{}, manyJobs(10_000))
	for b.Loop() {
		if err := bed.p.Close(); err != nil {
			b.Fatal(err)
		}
		bed.open()
	}
}
