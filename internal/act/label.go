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

func (m Memex) private(tags []string) bool {
	return slices.ContainsFunc(tags, func(t string) bool { return slices.Contains(m.PrivateTags, t) })
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
	var head []byte
	if t.Taint.Untrusted && !hasKeyword(text, "#+property:", strings.ToLower(originKey)) {
		head = fmt.Appendf(head, "#+PROPERTY: %s %s\n", originKey, t.origin())
	}
	if t.Taint.Private && len(f.PrivateTags) > 0 && !hasKeyword(text, "#+filetags:", strings.ToLower(f.PrivateTags[0])) {
		head = fmt.Appendf(head, "#+FILETAGS: :%s:\n", f.PrivateTags[0])
	}
	at := 0
	if rest, ok := bytes.CutPrefix(text, []byte(":PROPERTIES:\n")); ok { // a file's drawer must stay the first thing in it
		if drawer, _, found := bytes.Cut(rest, []byte(":END:\n")); found {
			at = len(":PROPERTIES:\n") + len(drawer) + len(":END:\n")
		}
	}
	return slices.Concat(text[:at], head, text[at:])
}

// isNote reports whether a file can say itself where its text came from.
func isNote(path string) bool { return strings.HasSuffix(path, ".org") }

// hasKeyword reports whether a line in front of the first heading has a keyword with
// that word in its value.
func hasKeyword(text []byte, keyword, word string) bool {
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("*")) {
			return false
		}
		value, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(string(line))), keyword)
		if ok && slices.Contains(strings.FieldsFunc(value, func(r rune) bool { return r == ' ' || r == ':' }), word) {
			return true
		}
	}
	return false
}

// keepsLabels refuses an edit that would take a label off: that is for the person's
// own hand, in their own editor.
func (m Memex) keepsLabels(o memory.Object, c Call) error {
	if strings.EqualFold(strings.TrimSuffix(c.Text("PROPERTY"), "+"), originKey) {
		return errors.New("where a text came from is not for an action to change")
	}
	if c.Has("TAGS") && m.private(o.Tags) && !m.private(c.Texts("TAGS")) {
		return errors.New("the tag that keeps this heading private can only be taken off by hand")
	}
	return nil
}
