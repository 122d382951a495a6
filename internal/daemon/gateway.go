package daemon

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"passepartout/internal/act"
	"passepartout/internal/channel"
	"passepartout/internal/flight"
	"passepartout/internal/gate"
	"passepartout/internal/journal"
	"passepartout/internal/memory"
	"passepartout/internal/org"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// filesDir is where files go that people send, relative to the memex.
const filesDir = "inbox/files"

// planNow is a plan as it stands; one whose time is over is closed first.
func (d *Daemon) planNow(token string) (flight.Plan, bool) {
	if _, err := d.plans.Pending(); err != nil {
		d.log.Error("plans cannot be listed", "error", err)
	}
	return d.plans.Get(token)
}

// askedEverything reports whether an owner is to be shown questions that came up
// elsewhere: if they are named among those who answer.
func (d *Daemon) askedEverything(o proto.Origin) bool {
	named := d.s.Approvers.Channels
	return o.Role == proto.RoleOwner && (slices.Contains(named, o.Channel) || slices.Contains(named, o.Who))
}

// became looks in the journal for what a turn did that the program died in the
// middle of. Rulings are on disk before their effects, so what is not there did
// not happen.
func (d *Daemon) became(turn proto.ID) (channel.Became, string) {
	if err := d.journal.Sync(); err != nil {
		return channel.Acted, "" // nothing is known, so nothing is begun again
	}
	became, token := channel.Nothing, ""
	for e, err := range journal.Read(filepath.Join(d.s.StateDir, "journal")) {
		if err != nil {
			d.log.Error("the journal cannot be read; a message is not begun again", "error", err)
			return channel.Acted, ""
		}
		if e.Body.Word("KIND") != "RULING" || e.Body.Text("TURN") != string(turn) {
			continue
		}
		switch dec, _ := gate.ParseDecision(strings.ToLower(string(e.Body.Sub("TRACE").Word("DECISION")))); dec {
		case gate.Ask:
			if _, ok := d.plans.Get(e.Body.Text("ID")); ok {
				token = e.Body.Text("ID")
			}
		case gate.Allow:
			if d.reaches(e.Body.Sub("ACTION")) {
				became = channel.Acted
			}
		case gate.Deny:
		}
	}
	open, err := d.plans.Pending()
	if err != nil {
		return channel.Acted, ""
	}
	for _, p := range open { // one of several steps is called otherwise than its rulings
		if p.Turn.Text("ID") == string(turn) {
			token = p.Token
		}
	}
	if token != "" {
		return channel.Asked, token
	}
	return became, ""
}

// reaches reports whether carrying out an action leaves a trace in the world.
func (d *Daemon) reaches(action sexp.Plist) bool {
	a, err := d.policy.vocabulary.Recorded(action)
	if err != nil {
		return true
	}
	switch a.Spec().Effect {
	case proto.Speak, proto.ReadLocal:
		return false
	case proto.EffectUnknown, proto.WriteMemory, proto.WriteLocal, proto.Execute, proto.Network, proto.SendMessage, proto.Rewrite:
	}
	return true
}

// withheld stands for a text that may not leave the machine.
const withheld = "[This is marked private and stays on your machine: look there.]"

// screen takes out of a text what may not leave the machine. Replies were judged
// before; this is for what the program itself says, such as a question about an
// action.
func (d *Daemon) screen(text string) string {
	low := strings.ToLower(text)
	for _, tag := range d.s.PrivacyTags {
		if tag = strings.ToLower(strings.Trim(tag, ":")); tag != "" && strings.Contains(low, tag) {
			return withheld
		}
	}
	return d.watch.Redact(text)
}

// keepFile puts a file somebody sent into the inbox, with a heading that says
// where it came from. Doing it again for the same message changes nothing.
func (d *Daemon) keepFile(ctx context.Context, k channel.Kept) (string, error) {
	dir := filepath.Join(d.s.MemexDir, filepath.FromSlash(filesDir))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	name := k.ID + "-" + k.Name
	if strings.EqualFold(filepath.Ext(name), ".org") || strings.EqualFold(filepath.Ext(name), ".org_archive") {
		name += ".txt" // or its headings would be the user's own notes
	}
	if err := writeWhole(root, name, k.Read); err != nil {
		return "", err
	}
	rel := filesDir + "/" + name
	return rel, d.noteFile(ctx, k, rel)
}

// writeWhole writes a file so that it is there as a whole or not at all.
func writeWhole(root *os.Root, name string, write func(io.Writer) error) error {
	part := "." + name + ".part"
	f, err := root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = root.Rename(part, name)
	}
	if err != nil {
		return errors.Join(err, root.Remove(part))
	}
	return nil
}

// noteFile adds the heading of a file that came in, unless it is there.
func (d *Daemon) noteFile(ctx context.Context, k channel.Kept, rel string) error {
	for o := range d.memory.View().All() {
		if id, _ := o.Property("MESSAGE"); id == k.ID {
			return nil
		}
	}
	_, err := d.memory.Apply(ctx, memory.Tx{
		Actor: "channel", Label: "file from " + k.From.Who,
		Edits: []memory.Edit{{File: inbox, Change: memory.Change{Kind: memory.Insert, Entry: org.Entry{
			Title: "File from " + k.From.Who + ": " + k.Name,
			Tags:  []string{"untrusted"},
			Properties: []org.Property{
				{Key: "ORIGIN", Value: k.From.Who}, {Key: "MESSAGE", Value: k.ID}, {Key: "CREATED", Value: k.Sent.Format("[2006-01-02 Mon 15:04]")},
			},
			Body: "[[file:" + strings.TrimPrefix(rel, "inbox/") + "]]",
		}}}},
	})
	return err
}

// label is what reading a file does to a turn: what people sent is not to be
// trusted, whatever else it is.
func (d *Daemon) label(m act.Memex) func(string) proto.Taint {
	sent := filepath.Join(d.s.MemexDir, filepath.FromSlash(filesDir)) + string(filepath.Separator)
	return func(path string) proto.Taint {
		t := m.Label(path)
		t.Untrusted = t.Untrusted || strings.HasPrefix(path, sent)
		return t
	}
}
