// Package org reads, edits and prints Org files without losing a byte.
//
// The model is spans, not trees of copies. [Parse] returns an immutable [File]:
// the original bytes plus one small record of offsets per headline. Printing is
// [File.Bytes], the very slice that was parsed. A [Headline] is a cheap handle
// (file, index) whose methods cut strings out of the source when asked.
//
//	f := org.Parse(src)
//	for h := range f.Headlines() {          // document order
//		h.Level(); h.Todo(); h.Title(); h.Tags(); h.AllTags(); h.ID()
//		h.Scheduled(); h.Property("EFFORT"); h.Body(); h.Parent()
//	}
//	c := h.Contents()                       // links, blocks, clocks … on demand
//	patches, err := h.SetTodo("DONE", now)  // an edit is a few byte patches
//	g, err := f.Apply(patches)              // a new File; only touched sections are read again
//
// Central types: [File], [Headline], [Span], [Timestamp], [Contents] (what a body
// holds), [Patch] (what an edit is). [Dump] is the reading compared with Emacs.
//
// The rules follow org-element of Org 9.7 under stock settings. The package is
// pure: it has no clock, opens no file (a #+SETUPFILE is fetched by the caller
// through [Options]) and makes no identifiers; edits take the time and the id.
//
// The rule a newcomer will break: a Headline belongs to the File it came from.
// After Apply, take handles from the new File; the old one still answers, about
// the old text. And an edit never formats: bytes that no Patch names stay as
// they are, including odd spacing, line ends and invalid UTF-8.
package org
