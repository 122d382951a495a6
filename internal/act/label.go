package act

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"passepartout/internal/memory"
	"passepartout/internal/org"
)

// What a turn writes into the memex carries the labels of what it has read. Without
// that a note would wash them off: a summary of a private letter could leave the
// machine tomorrow, and a stranger's words would be the person's own.

// originKey is the property that says that a text is not the person's own.
const originKey = "ORIGIN"

// archivedKey is the property with the tags an archived heading had from its place.
const archivedKey = "ARCHIVE_ITAGS"

// labelled is an entry with the turn's labels.
func (m Memex) labelled(t Turn, e org.Entry) org.Entry {
	if t.Taint.Untrusted {
		e.Properties = append(slices.Clone(e.Properties), org.Property{Key: originKey, Value: t.origin()})
	}
	if t.Taint.Private && !m.private(e.Tags) && len(m.PrivateTags) > 0 {
		e.Tags = append(slices.Clone(e.Tags), m.PrivateTags[0])
	}
	return e
}

// origin names the turn a text came from.
func (t Turn) origin() string { return "conversation, turn " + t.ID }

func (m Memex) private(tags []string) bool { return anyOf(m.PrivateTags, tags) }

// anyOf reports whether some tag is a privacy tag. Letter case does not count, as
// nowhere where they are looked for.
func anyOf(private, tags []string) bool {
	return slices.ContainsFunc(tags, func(t string) bool {
		return slices.ContainsFunc(private, func(p string) bool { return strings.EqualFold(p, t) })
	})
}

// relabel are the changes that put the turn's labels on a heading it writes text
// into, and keep on a heading those it has.
func (m Memex) relabel(t Turn, v *memory.View, o memory.Object, c Call) []memory.Change {
	var out []memory.Change
	writes := c.Has("TITLE") || c.Has("BODY") || c.Text("VALUE") != ""
	if writes && t.Taint.Untrusted && o.Origin() == "" {
		out = append(out, memory.Change{Kind: memory.SetProperty, Key: originKey, Value: t.origin()})
	}
	tags := o.Tags
	if c.Has("TAGS") {
		tags = c.Texts("TAGS")
	}
	// A heading that is private by where it stands would be public elsewhere.
	moves := c.Text("REFILE-TO") != "" && v.PrivateObject(o)
	if (writes && t.Taint.Private && !v.PrivateObject(o) || moves) && !m.private(tags) && len(m.PrivateTags) > 0 {
		out = append(out, memory.Change{Kind: memory.SetTags, Tags: append(slices.Clone(tags), m.PrivateTags[0])})
	}
	return out
}

// note is the text of a file a turn writes. Of an Org file the labels are part:
// they stand in front, where all its headings inherit them.
func (f Files) note(t Turn, path string, text []byte) []byte {
	if !isNote(path) {
		return text
	}
	of := org.Parse(text)
	origin, private := f.said(of)
	var head []byte
	if t.Taint.Untrusted && !origin {
		head = fmt.Appendf(head, "#+PROPERTY: %s %s%s", originKey, t.origin(), of.EOL())
	}
	if t.Taint.Private && len(f.PrivateTags) > 0 && !private {
		head = fmt.Appendf(head, "#+FILETAGS: :%s:%s", f.PrivateTags[0], of.EOL())
	}
	front := of.Preamble().Start // after a byte order mark
	if at := drawerEnd(of); at > front {
		// A file's drawer must stay the first thing in it.
		out := slices.Concat(text[:at], head, text[at:])
		if o, p := f.said(org.Parse(out)); (o || !t.Taint.Untrusted) && (p || !t.Taint.Private) {
			return out
		}
	}
	return slices.Concat(text[:front], head, text[front:])
}

// said reports which labels a file's own settings give to all of it, as memory reads
// them: not what merely looks like a setting, nor one without a value.
func (f Files) said(of *org.File) (origin, private bool) {
	from, _ := of.Property(originKey)
	return from != "", anyOf(f.PrivateTags, of.FileTags())
}

// drawerEnd is where the property drawer ends that a file begins with, 0 without one.
func drawerEnd(of *org.File) int {
	front := of.Preamble().Start
	rest, ok := bytes.CutPrefix(of.Bytes()[front:], []byte(":PROPERTIES:"+of.EOL()))
	if !ok || len(of.Properties()) == 0 {
		return 0
	}
	_, after, found := bytes.Cut(rest, []byte(":END:"+of.EOL()))
	if !found {
		return 0
	}
	return len(of.Bytes()) - len(after)
}

// isNote reports whether a file can say itself where its text came from.
func isNote(path string) bool { return strings.HasSuffix(path, ".org") }

// keepsLabels refuses an edit that would take a label off: that is for the person's
// own hand, in their own editor.
func (m Memex) keepsLabels(o memory.Object, c Call) error {
	switch key := strings.TrimSuffix(c.Text("PROPERTY"), "+"); {
	case strings.EqualFold(key, originKey):
		return errors.New("where a text came from is not for an action to change")
	case strings.EqualFold(key, archivedKey):
		return errors.New("the tags a heading was archived with are not for an action to change")
	}
	if c.Has("TAGS") && m.private(o.Tags) && !m.private(c.Texts("TAGS")) {
		return errors.New("the tag that keeps this heading private can only be taken off by hand")
	}
	return nil
}
