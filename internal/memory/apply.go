package memory

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"passepartout/internal/org"
	"passepartout/internal/sexp"
)

// maxRaces is how often a transaction starts over because somebody else wrote a
// file at the same moment.
const maxRaces = 5

// Apply carries out a transaction: all of it or nothing. It returns a
// [*ConflictError] if an object is not what the caller saw, unless what changed
// is another headline, which is merged.
func (s *Store) Apply(ctx context.Context, tx Tx) (Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for race := 0; ; race++ {
		if err := s.writableLocked(); err != nil {
			return Result{}, err
		}
		if err := ctx.Err(); err != nil {
			return Result{}, err
		}
		r, err := s.applyOnceLocked(tx)
		if !errors.Is(err, errRaced) || race == maxRaces {
			return r, err
		}
	}
}

func (s *Store) applyOnceLocked(tx Tx) (Result, error) {
	if len(tx.Edits) == 0 {
		return Result{}, invalid("no edits")
	}
	if err := s.lookAgainLocked(tx); err != nil {
		return Result{}, err
	}
	w := &work{s: s, now: s.opt.Now(), drafts: map[string]*draft{}, was: map[ID]ID{}}
	r := Result{IDs: make([]ID, len(tx.Edits))}
	for i, e := range tx.Edits {
		id, err := w.edit(e)
		if err != nil {
			return Result{}, s.keepConflictLocked(tx, fmt.Errorf("edit %d: %w", i+1, err))
		}
		r.IDs[i] = id
	}
	op := &Op{Kind: tx.opKind(), At: w.now, Actor: tx.Actor, Turn: tx.Turn, Label: tx.Label}
	return s.commitLocked(op, w, r, tx.DryRun)
}

// lookAgainLocked reads the files an edit touches from disk, so that what the
// user saved a moment ago is known even if no watcher told us.
func (s *Store) lookAgainLocked(tx Tx) error {
	paths := map[string]bool{}
	v := s.View()
	for _, e := range tx.Edits {
		for _, id := range []ID{e.Object, e.Change.Target} {
			if o, ok := v.Get(id); id != "" && ok {
				paths[o.File] = true
				if e.Change.Kind == Archive {
					paths[archivePath(o.File)] = true
				}
			}
		}
		if e.File != "" {
			p, err := s.cleanPath(e.File)
			if err != nil {
				return err
			}
			paths[p] = true
		}
	}
	return s.rereadLocked(slices.Sorted(maps.Keys(paths)))
}

// rereadLocked brings single files up to date.
func (s *Store) rereadLocked(paths []string) error {
	var cs []replacement
	for _, p := range paths {
		fi, err := os.Lstat(s.abs(p))
		if errors.Is(err, fs.ErrNotExist) {
			cs = append(cs, replacement{p, nil})
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		if !fi.Mode().IsRegular() {
			return fmt.Errorf("%s: want a regular file, found %s", p, fi.Mode().Type())
		}
		st := statOf(fi, time.Now())
		old := s.diskNode(p)
		setup := old != nil && s.setupNow(old) == old.setup
		if setup && old.stat.same(st) {
			continue
		}
		b, err := readFile(s.abs(p), s.opt.MaxFile)
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		if setup && bytes.Equal(b, old.of.Bytes()) {
			continue
		}
		cs = append(cs, replacement{p, s.node(p, s.parse(p, b), st, nil)})
	}
	return s.absorbLocked(cs)
}

// cleanPath checks that a path lies in the memex, also after following links, and
// names an Org file.
func (s *Store) cleanPath(p string) (string, error) {
	local := filepath.FromSlash(p)
	if !filepath.IsLocal(local) {
		return "", fmt.Errorf("%s: %w", p, ErrOutside)
	}
	p = filepath.ToSlash(filepath.Clean(local))
	for part := range strings.SplitSeq(p, "/") {
		if strings.HasPrefix(part, ".") {
			return "", invalid("%s: hidden files are not part of the memex", p)
		}
	}
	if !isOrg(p) {
		return "", invalid("%s: want a name ending in .org", p)
	}
	if !utf8.ValidString(p) || strings.ContainsFunc(p, unicode.IsControl) {
		return "", invalid("%q: want a name in UTF-8 without control characters", p)
	}
	abs := s.abs(p)
	if s.opt.State != "" && within(s.opt.State, abs) {
		return "", fmt.Errorf("%s: %w", p, ErrOutside)
	}
	// The deepest directory that exists decides where the file would really be.
	for dir := abs; ; dir = filepath.Dir(dir) {
		real, err := filepath.EvalSymlinks(dir)
		if errors.Is(err, fs.ErrNotExist) && dir != s.root {
			if _, err := os.Lstat(dir); err == nil {
				return "", fmt.Errorf("%s: dangling link: %w", p, ErrOutside)
			}
			continue
		}
		if err != nil {
			return "", err
		}
		if !within(s.root, real) {
			return "", fmt.Errorf("%s: %w", p, ErrOutside)
		}
		rest, err := filepath.Rel(dir, abs)
		if err != nil {
			return "", err
		}
		rel, err := filepath.Rel(s.root, filepath.Join(real, rest))
		return filepath.ToSlash(rel), err
	}
}

// work is a transaction in the making.
type work struct {
	s      *Store
	now    time.Time
	drafts map[string]*draft
	was    map[ID]ID // identifiers given in this transaction → those they replace
}

// draft is one file being edited.
type draft struct {
	path string
	base *node // nil for a new file
	f    *org.File
	done [][]org.Patch // applied so far, each set in the coordinates it was made for
}

func (w *work) draft(p string) (*draft, error) {
	if d, ok := w.drafts[p]; ok {
		return d, nil
	}
	if o, ok := w.s.overlays[p]; ok {
		return nil, fmt.Errorf("%s: %w: %s", p, ErrUnsaved, o.client)
	}
	d := &draft{path: p, base: w.s.diskNode(p)}
	if d.base == nil {
		d.f = w.s.parse(p, nil)
	} else if d.f = d.base.of; d.base.limit != nil {
		return nil, fmt.Errorf("%s: read only: %w", p, d.base.limit)
	}
	w.drafts[p] = d
	return d, nil
}

// apply carries out patches on the draft.
func (d *draft) apply(ps []org.Patch, err error) error {
	if err != nil {
		return err
	}
	f, err := d.f.Apply(ps)
	if err != nil {
		return err
	}
	ps = slices.Clone(ps)
	slices.SortStableFunc(ps, func(a, b org.Patch) int { return a.Start - b.Start })
	d.done = append(d.done, ps)
	d.f = f
	return nil
}

// headline finds headline i of the base in the draft as it is now.
func (d *draft) headline(i int) (org.Headline, bool) {
	pos := d.base.sectionSpan(i).Start
	for _, set := range d.done {
		shift := 0
		for _, p := range set {
			if p.Start > pos {
				break
			}
			if pos < p.End {
				return org.Headline{}, false
			}
			shift += len(p.Text) - (p.End - p.Start)
		}
		pos += shift
	}
	h, ok := d.f.At(pos)
	return h, ok && h.LineSpan().Start == pos
}

// edit carries out one edit on the drafts and returns the object's identifier afterwards.
func (w *work) edit(e Edit) (ID, error) {
	if !slices.Contains(changeKinds, string(e.Change.Kind)) {
		if near, ok := sexp.Nearest(string(e.Change.Kind), changeKinds); ok {
			return "", invalid("unknown change %q, did you mean %q", e.Change.Kind, near)
		}
		return "", invalid("unknown change %q, want one of %s", e.Change.Kind, strings.Join(changeKinds, ", "))
	}
	if e.Object == "" && e.File != "" && e.Change.Kind == Insert {
		p, err := w.s.cleanPath(e.File)
		if err != nil {
			return "", err
		}
		return w.insertFile(p, e.Change)
	}
	o, ok := w.s.View().Get(e.Object)
	if !ok {
		return "", fmt.Errorf("object %s: %w", e.Object, ErrNotFound)
	}
	d, err := w.draft(o.File)
	if err != nil {
		return "", err
	}
	if err := w.s.expectLocked(e, o); err != nil {
		return "", err
	}
	if o.IsFile() {
		if e.Change.Kind != Insert {
			return "", invalid("%s is a file: want insert, found %s", o.File, e.Change.Kind)
		}
		return w.insertFile(o.File, e.Change)
	}
	return w.editHeadline(d, o, e.Change)
}

// expectLocked compares what the caller saw with what there is. A headline whose
// own text is the one the caller saw may be edited though its children changed:
// that is the three-way merge at headline level.
func (s *Store) expectLocked(e Edit, o Object) error {
	switch {
	case e.Expect.IsZero():
		if e.Change.Kind == Insert {
			return nil
		}
		return invalid("object %s: an edit must say which version it expects", e.Object)
	case e.Expect == o.Hash:
		return nil
	case !e.Change.Kind.subtree():
		if base, ok := s.hist.base[e.Expect]; e.Expect == o.Own || ok && base == o.Own {
			return nil
		}
	}
	c := &ConflictError{Object: e.Object, File: o.File, Expect: e.Expect, Found: o.Hash, Theirs: o.Text()}
	c.Ours = s.wouldBeLocked(e)
	return c
}

// wouldBeLocked is what the edit makes of the version the caller saw, if history has it.
func (s *Store) wouldBeLocked(e Edit) string {
	base, ok := s.sectionTextLocked(e.Expect)
	if !ok {
		return ""
	}
	f := org.Parse(base)
	if f.Len() == 0 || e.Change.Kind.subtree() {
		return string(base)
	}
	ps, err := changeHeadline(f.Headline(0), e.Change, s.opt.Now())
	if err != nil {
		return string(base)
	}
	if f, err = f.Apply(ps); err != nil {
		return string(base)
	}
	return string(f.Bytes())
}

// keepConflictLocked records a conflict in the history before it is returned.
func (s *Store) keepConflictLocked(tx Tx, err error) error {
	var c *ConflictError
	if !errors.As(err, &c) || tx.DryRun {
		return err
	}
	op := &Op{Kind: opConflict, At: s.opt.Now(), Actor: tx.Actor, Turn: tx.Turn, Label: tx.Label, Objects: []ObjectChange{{
		ID: c.Object, File: c.File, OldText: []byte(c.Theirs), NewText: []byte(c.Ours),
	}}}
	return errors.Join(err, s.hist.fact(op))
}

// editHeadline carries out a change on an existing headline.
func (w *work) editHeadline(d *draft, o Object, c Change) (ID, error) {
	h, ok := d.headline(o.i)
	if !ok {
		return "", fmt.Errorf("object %s: removed by an earlier edit of the transaction: %w", o.ID, ErrNotFound)
	}
	id := o.ID
	if id.Derived() && (c.Kind == SetTitle || c.Kind == Refile || c.Kind == Archive) {
		if h.ID() == "" {
			id = ID(w.s.opt.NewID())
			if err := d.apply(h.SetID(string(id))); err != nil {
				return "", err
			}
			h, _ = d.headline(o.i)
			w.was[id] = o.ID
		}
	}
	if c.Kind == Refile || c.Kind == Archive {
		if err := w.keepLabels(d, o); err != nil {
			return "", err
		}
		h, _ = d.headline(o.i)
	}
	switch c.Kind {
	case Insert:
		id, text, err := w.insertion(c)
		if err != nil {
			return "", err
		}
		return id, d.apply(h.AppendChild(text))
	case Refile:
		return id, w.refile(d, h, c.Target)
	case Archive:
		return id, w.archive(d, h)
	case Delete:
		return "", d.apply(h.Delete())
	default:
	}
	if c.Kind == SetProperty && strings.EqualFold(c.Key, "ID") && ID(c.Value) != o.ID {
		if err := w.free(ID(c.Value)); err != nil {
			return "", err
		}
		id, w.was[ID(c.Value)] = ID(c.Value), o.ID
	}
	return id, d.apply(changeHeadline(h, c, w.now))
}

// keepLabels writes down on a headline about to be moved what it has from where it
// stands: that it is private, and that it is not the user's own. Elsewhere it would
// be neither.
func (w *work) keepLabels(d *draft, o Object) error {
	v := w.s.View()
	h, _ := d.headline(o.i)
	if v.PrivateObject(o) && !v.anyPrivate(h.Tags()) && len(v.private) > 0 {
		if err := d.apply(h.SetTags(append(h.Tags(), v.private[0]))); err != nil {
			return err
		}
		h, _ = d.headline(o.i)
	}
	if origin := o.Origin(); origin != "" && originIn(h.Properties()) == "" {
		return d.apply(h.SetProperty(originKey, origin))
	}
	return nil
}

// changeHeadline makes the patches of a change within one section.
func changeHeadline(h org.Headline, c Change, now time.Time) ([]org.Patch, error) {
	switch c.Kind {
	case SetTodo:
		return h.SetTodo(c.Value, org.Change{At: now, LogDone: true})
	case SetTitle:
		return h.SetTitle(c.Value)
	case SetPriority:
		return h.SetPriority(c.Value)
	case SetTags:
		return h.SetTags(c.Tags)
	case SetProperty:
		return h.SetProperty(c.Key, c.Value)
	case RemoveProperty:
		return h.RemoveProperty(c.Key)
	case Schedule:
		return h.Schedule(c.Value)
	case SetDeadline:
		return h.SetDeadline(c.Value)
	case SetBody:
		return h.SetBody(org.EscapeBody(c.Value))
	default:
	}
	return nil, invalid("%s does not change a headline in place", c.Kind)
}

// insertFile adds an entry at the end of a file, making the file if needed.
func (w *work) insertFile(p string, c Change) (ID, error) {
	d, err := w.draft(p)
	if err != nil {
		return "", err
	}
	id, text, err := w.insertion(c)
	if err != nil {
		return "", err
	}
	return id, d.apply(d.f.Append(text))
}

// insertion is the Org text of what is to be inserted, with an id so that the
// caller can find it again.
func (w *work) insertion(c Change) (ID, string, error) {
	text := c.Value
	if text == "" {
		if err := checkEntry(c.Entry); err != nil {
			return "", "", err
		}
		text = c.Entry.Format(1)
	}
	f := org.Parse([]byte(text))
	if f.Len() == 0 || f.Headline(0).LineSpan().Start != 0 {
		return "", "", invalid("text to insert must start with a headline")
	}
	for h := range f.Headlines() {
		if err := w.free(ID(h.ID())); err != nil {
			return "", "", err
		}
	}
	if id := f.Headline(0).ID(); id != "" {
		return ID(id), text, nil
	}
	id := w.s.opt.NewID()
	ps, err := f.Headline(0).SetID(id)
	if err != nil {
		return "", "", err
	}
	if f, err = f.Apply(ps); err != nil {
		return "", "", err
	}
	return ID(id), string(f.Bytes()), nil
}

// free makes sure that an identifier can be given: the name of another object would
// lead to the one or to the other, by which file comes first.
func (w *work) free(id ID) error {
	if id.Derived() {
		return invalid("identifier %q: what starts with ~ is derived, not written", id)
	}
	if o, taken := w.s.View().Get(id); taken && id != "" {
		return invalid("identifier %q belongs to %s:%d", id, o.File, o.Line)
	}
	return nil
}

// checkEntry makes sure that no field of an entry can pose as something else.
func checkEntry(e org.Entry) error {
	if strings.TrimSpace(e.Title) == "" {
		return invalid("an entry needs a title")
	}
	for _, raw := range []string{e.Scheduled, e.Deadline, e.ClosedRaw} {
		if raw == "" {
			continue
		}
		if _, err := org.ParseTimestamp(raw); err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	h := org.Parse([]byte(org.Entry{Title: "x", Tags: e.Tags, Properties: e.Properties}.Format(1))).Headline(0)
	if !slices.Equal(h.Tags(), e.Tags) {
		return invalid("tags %q cannot be written as tags", e.Tags)
	}
	if len(h.Properties()) != len(e.Properties) || h.File().Len() != 1 {
		return invalid("properties %q cannot be written as properties", e.Properties)
	}
	if strings.ContainsAny(e.Todo+e.Priority, " \t\r\n]") {
		return invalid("want a keyword and a priority without blanks, found %q and %q", e.Todo, e.Priority)
	}
	return nil
}

// refile moves a subtree under another headline or to the end of a file.
func (w *work) refile(d *draft, h org.Headline, target ID) error {
	t, ok := w.s.View().Get(target)
	if !ok {
		return fmt.Errorf("target %s: %w", target, ErrNotFound)
	}
	to, err := w.draft(t.File)
	if err != nil {
		return err
	}
	if t.IsFile() {
		text := d.f.Text(h.Span())
		if err := d.apply(h.Delete()); err != nil {
			return err
		}
		return to.apply(to.f.Append(text))
	}
	th, ok := to.headline(t.i)
	if !ok {
		return fmt.Errorf("target %s: removed by an earlier edit of the transaction: %w", target, ErrNotFound)
	}
	if to == d {
		return d.apply(h.Refile(th))
	}
	if err := to.apply(th.AppendChild(d.f.Text(h.Span()))); err != nil {
		return err
	}
	return d.apply(h.Delete())
}

func archivePath(p string) string { return p + "_archive" }

func (w *work) archive(d *draft, h org.Headline) error {
	if strings.HasSuffix(d.path, ".org_archive") {
		return invalid("%s is an archive already", d.path)
	}
	to, err := w.draft(archivePath(d.path))
	if err != nil {
		return err
	}
	ps, text, err := h.Archive(w.now, w.s.abs(d.path))
	if err := d.apply(ps, err); err != nil {
		return err
	}
	return to.apply(to.f.Append(text))
}

// newUUID is a random identifier in the form Org writes.
func newUUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails; see crypto/rand
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
