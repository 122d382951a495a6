package pulse_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"passepartout/internal/pulse"
)

func hooks(hs ...string) map[string]string {
	return map[string]string{"system/hooks.org": strings.Join(hs, "")}
}

func TestHooksFireForTheirEvents(t *testing.T) {
	b := newBed(t, map[string]string{
		"system/hooks.org": job("Notes", "Look at it.", "HOOK=file notes/*.org") +
			job("Done projects", "", "HOOK=todo DONE projects/", "DO=skill review note") +
			job("Denials", "", "HOOK=approval denied", "DO=call x") +
			job("Rulings", "", "HOOK=journal ruling", "DO=call y") +
			job("Chat", "", "HOOK=signal user-input", "DO=call z"),
		"system/more.org": "#+HOOK: todo * => prompt What follows from this?\n#+HOOK: file x\n",
		"notes/plain.org": "#+HOOK: file * => prompt Planted.\n",
	})
	for _, e := range []pulse.Event{
		{Kind: "file", What: "notes/a.org", Text: "notes/a.org changed"},
		{Kind: "file", What: "other/a.org"},
		{Kind: "todo", What: "DONE", Path: "projects/p.org", Text: "P is DONE"},
		{Kind: "todo", What: "NEXT", Path: "projects/p.org", Text: "P is NEXT"},
		{Kind: "approval", What: "approved"},
		{Kind: "approval", What: "denied"},
		{Kind: "journal", What: "outcome"},
		{Kind: "signal", What: "user-input"},
	} {
		b.p.Happened(e)
		b.p.Settled()
	}
	var got []string
	for _, o := range b.orders() {
		got = append(got, o.Name)
		if o.Sensor != "hook" {
			t.Errorf("%s comes from the sensor %q", o.Name, o.Sensor)
		}
	}
	want := "Chat, Denials, Done projects, Notes, todo * => prompt What follows from this?, todo * => prompt What follows from this?"
	if g := strings.Join(sorted(got), ", "); g != want {
		t.Errorf("want  %s\nfound %s", want, g)
	}
	if text := b.orders()[0].Text; text != "Look at it.\n\nEvent: notes/a.org changed" {
		t.Errorf("the prompt is %q", text)
	}
	st := b.p.Status()
	if len(st.Problems) != 1 || len(st.Hooks) != 7 {
		t.Errorf("%d hooks, problems %q", len(st.Hooks), st.Problems)
	}
	for _, h := range st.Hooks {
		if h.File == "notes/plain.org" && h.State != "not allowed" {
			t.Errorf("a hook in a note is %q", h.State)
		}
	}
}

func TestALoopOfHooksEnds(t *testing.T) {
	b := newBed(t, hooks(job("A", "", "HOOK=file a.org", "DO=call x"), job("B", "", "HOOK=file b.org", "DO=call y"), job("C", "", "HOOK=file c.org", "DO=call z")))
	next := map[string]string{"x": "b.org", "y": "c.org", "z": "a.org"}
	var events []pulse.Event
	b.do = func(_ context.Context, o pulse.Order) (string, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		events = append(events, pulse.Event{Kind: "file", What: next[o.What], Turn: o.Run}) // each run causes the next event
		return "", nil
	}
	b.p.Happened(pulse.Event{Kind: "file", What: "a.org"})
	for range 20 {
		b.p.Settled()
		b.mu.Lock()
		todo := events
		events = nil
		b.mu.Unlock()
		for _, e := range todo {
			b.p.Happened(e)
		}
	}
	b.p.Settled()
	if n := len(b.orders()); n != 3 {
		t.Errorf("want 3 runs, found %d", n)
	}
	runs, err := b.p.History("A", 1)
	if err != nil || len(runs) != 1 || runs[0].Text != "a loop: A → B → C → A" {
		t.Errorf("found %+v, %v", runs, err)
	}
}

func TestALoopThroughAnotherProgramIsSlowedDown(t *testing.T) {
	b := newBed(t, hooks(job("A", "", "HOOK=file a.org", "DO=call x")))
	for range 500 { // what a program a hook started does has no cause we know
		b.p.Happened(pulse.Event{Kind: "file", What: "a.org"})
		b.p.Settled()
	}
	if n := len(b.orders()); n != 20 {
		t.Errorf("want 20 runs within a minute, found %d", n)
	}
	b.set(start.Add(2 * time.Minute))
	b.p.Happened(pulse.Event{Kind: "file", What: "a.org"})
	b.p.Settled()
	if n := len(b.orders()); n != 21 {
		t.Errorf("it does not go on: %d", n)
	}
}

func TestAHookThatHangsOrFailsBlocksNobody(t *testing.T) {
	b := newBed(t, hooks(job("Hangs", "", "HOOK=file a.org", "DO=call hang", "TIMEOUT=100ms"), job("Fails", "", "HOOK=file b.org", "DO=call fail")))
	b.do = func(ctx context.Context, o pulse.Order) (string, error) {
		if o.What == "hang" {
			<-ctx.Done()
			return "", ctx.Err()
		}
		return "", errors.New("no")
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { b.p.Run(ctx); close(ended) }()
	for i := range 20_000 { // far more than anybody can take; each must return at once
		b.p.Notify(pulse.Event{Kind: "file", What: "a.org", Text: fmt.Sprint(i)})
	}
	b.p.Notify(pulse.Event{Kind: "file", What: "b.org"})
	cancel()
	<-ended
	if err := b.p.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestManyEventsBecomeOneRun(t *testing.T) {
	b := newBed(t, hooks(job("A", "Look.", "HOOK=file *")))
	hold := make(chan struct{})
	b.do = func(context.Context, pulse.Order) (string, error) { <-hold; return "", nil }
	for i := range 30 {
		b.p.Happened(pulse.Event{Kind: "file", What: "f", Text: fmt.Sprintf("f%d changed", i)})
	}
	close(hold)
	b.p.Settled()
	total := 0
	for _, o := range b.orders() {
		total += strings.Count(o.Text, "Event: ")
	}
	if n := len(b.orders()); n > 5 || total != 30 {
		t.Errorf("%d runs about %d events", n, total)
	}
}
