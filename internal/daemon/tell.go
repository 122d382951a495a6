package daemon

import (
	"errors"
	"fmt"
	"time"

	"passepartout/internal/channel"
	"passepartout/internal/memory"
	"passepartout/internal/proto"
	"passepartout/internal/pulse"
)

// A telling is something a person is told who did not ask: a reminder, a date, what
// became of a job.
type telling struct {
	cause string // the run or signal it comes from
	key   string // of what it is about, for telephones, which are told once
	text  string // for the clients on this machine
	far   string // what of it may leave the machine
	words string // besides, if they may: what a model wrote
	job   string // whose heading decides whether anything may
	asks  bool   // it is about a question
}

// What is told of something that may not leave: that there is one, not what.
const (
	privateOrder = "Something you wanted to be told of is private: look on your machine."
	lookThere    = "Look on your machine."
)

// reminder is the telling of an order that only reminds. The words of a hook also say
// what happened, which may be private although the hook is not.
func reminder(o pulse.Order, text string) telling {
	t := telling{cause: o.Run, key: aboutRun(o.Job, o.Due), text: text, far: text, job: o.Job}
	if _, hook := pulse.HookOf(o.Job); hook {
		t.far = o.Name + "\n" + lookThere
	}
	return t
}

// result is the telling of how a turn of a job ended.
func (d *Daemon) result(o pulse.Order, text string, asks bool) telling {
	t := telling{cause: o.Run, key: aboutRun(o.Job, o.Due), text: fmt.Sprintf("%s: %s", o.Name, text), job: o.Job, asks: asks}
	switch {
	case asks:
		t.far = o.Name + " waits for your answer: /approvals"
	case d.causes.isPrivate(o.Run):
		t.far = o.Name + " has an answer in which something private took part. " + lookThere
	default:
		t.far, t.words = o.Name+" has an answer. "+lookThere, t.text
	}
	return t
}

// failure is the telling of a run that failed. Why may be anything, so it stays here.
func failure(r pulse.Run) telling {
	return telling{
		cause: r.ID, key: aboutRun(r.Job, r.Due), text: fmt.Sprintf("%s failed: %s", r.Name, r.Text), job: r.Job,
		far: r.Name + " failed. Why, its history says: passepartout schedule history",
	}
}

// aboutRun is the same for every attempt at a due time.
func aboutRun(job string, due time.Time) string {
	return job + " " + due.UTC().Format(time.RFC3339Nano)
}

// tell tells whoever is there, and the owner's telephones where that is wanted. An error
// means that these may not learn of it.
func (d *Daemon) tell(t telling) error {
	err := d.tellFar(t)
	d.hear(t.cause, t.text)
	return err
}

// hear tells the clients on this machine something that is no answer: as part of the
// usual conversation, and as a note to who listens to another.
func (d *Daemon) hear(cause, text string) {
	if err := d.broadcast(defaultSession, proto.ID(cause), text); err != nil {
		d.log.Error("a notice was not told", "error", err)
	}
	d.hub.tellOthers(defaultSession, noticeMessage(text))
}

// tellFar hands a notice to every service that is linked; each has it on disk then.
func (d *Daemon) tellFar(t telling) error {
	if d.s.Notices == "local" || d.s.Notices != "always" && d.hub.watched() {
		return nil
	}
	if t.job != "" && d.hides(t.job) {
		t.far, t.words = privateOrder, ""
	}
	var errs []error
	for _, l := range d.lines.list() {
		if !l.linked.Load() {
			continue // nobody could be told there
		}
		n := channel.Notice{Key: t.key, Text: t.far, Asks: t.asks}
		// What a model wrote goes where its answers may go without a question.
		if t.words != "" && d.policy.allows(l.service.Name+".message") {
			n.Text = t.words
		}
		if _, err := l.gateway.Notify(n); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", l.service.Name, err))
		}
	}
	return errors.Join(errs...)
}

// hides reports whether an order stands in a private place, or where nobody knows.
func (d *Daemon) hides(job string) bool {
	heading, _ := pulse.HookOf(job)
	v := d.memory.View()
	o, ok := v.Get(memory.ID(heading))
	return !ok || v.PrivateObject(o)
}

// tellDates tells telephones of dates that have entered their time, each once a day at
// most. The clients here are told of all of them together.
func (d *Daemon) tellDates(fresh []coming) error {
	day := d.now().In(time.Local).Format(time.DateOnly)
	var errs []error
	for _, c := range fresh[:min(len(fresh), maxTold)] {
		errs = append(errs, d.tellFar(telling{key: c.key + " " + day, far: c.far}))
	}
	return errors.Join(errs...)
}
