package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"passepartout/internal/durable"
	"passepartout/internal/fovea"
	"passepartout/internal/memory"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// focusFile keeps where sessions look, in the state directory.
const focusFile = "focus.json"

// Bounds of what is remembered.
const (
	deepestFocus = 10 // projects on a stack
	mostPins     = 32
	mostGazes    = 256 // sessions
)

// A gaze is where one session looks.
type gaze struct {
	Stack []memory.ID `json:"stack,omitempty"` // projects, the current one last
	Pins  []memory.ID `json:"pins,omitempty"`

	point memory.ID     // where a client's cursor is; not kept
	last  fovea.Context // what was shown last; not kept
}

// gazes are those of all sessions. They are safe for concurrent use.
type gazes struct {
	path string

	mu  sync.Mutex // guards what follows, and the file
	set map[string]*gaze
}

func openGazes(path string) (*gazes, error) {
	g := &gazes{path: path, set: map[string]*gaze{}}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return g, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &g.set); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for name, z := range g.set {
		if z == nil {
			delete(g.set, name)
		}
	}
	return g, nil
}

// of is a session's gaze; g.mu is held.
func (g *gazes) of(session string) *gaze {
	z := g.set[session]
	if z == nil {
		z = &gaze{}
		if len(g.set) >= mostGazes {
			for name, old := range g.set {
				if len(old.Stack) == 0 && len(old.Pins) == 0 {
					delete(g.set, name)
				}
			}
		}
		g.set[session] = z
	}
	return z
}

// change changes a session's gaze and keeps it. What could not be kept is undone.
func (g *gazes) change(session string, how func(*gaze) error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	z := g.of(session)
	before := gaze{Stack: slices.Clone(z.Stack), Pins: slices.Clone(z.Pins)}
	if err := how(z); err != nil {
		return err
	}
	if slices.Equal(before.Stack, z.Stack) && slices.Equal(before.Pins, z.Pins) {
		return nil
	}
	err := g.save()
	if err != nil {
		z.Stack, z.Pins = before.Stack, before.Pins
	}
	return err
}

func (g *gazes) save() error {
	kept := map[string]*gaze{}
	for name, z := range g.set {
		if len(z.Stack) > 0 || len(z.Pins) > 0 {
			kept[name] = z
		}
	}
	raw, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	return durable.Replace(g.path, raw, 0o600)
}

// focus is where a session looks now: its client's cursor, else its current project.
func (g *gazes) focus(v *memory.View, session string) fovea.Focus {
	g.mu.Lock()
	defer g.mu.Unlock()
	z := g.set[session]
	if z == nil {
		return fovea.Focus{}
	}
	f := fovea.Focus{Scopes: slices.Clone(z.Stack), Pinned: slices.Clone(z.Pins)}
	for _, id := range append(slices.Clone(z.Stack), z.point) {
		if _, ok := v.Get(id); ok && id != "" {
			f.ID = id
		}
	}
	return f
}

// showed remembers what a session was shown.
func (g *gazes) showed(session string, c fovea.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.of(session).last = c
}

func (g *gazes) lastShown(session string) (fovea.Context, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	z := g.set[session]
	if z == nil || z.last.Budget == 0 {
		return fovea.Context{}, false
	}
	return z.last, true
}

// look is what the session looks at, as it was put there.
func (g *gazes) look(session string) (stack, pins []memory.ID, point memory.ID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	z := g.set[session]
	if z == nil {
		return nil, nil, ""
	}
	return slices.Clone(z.Stack), slices.Clone(z.Pins), z.point
}

// node is what a person means by a name: an id, a path, path:line, or else words.
func (d *Daemon) node(v *memory.View, name string) (memory.Object, error) {
	name = d.inMemex(name)
	if o, ok := v.Lookup(name); ok {
		return o, nil
	}
	if found := d.mirror.Search(v, name, 1); len(found) > 0 && !strings.ContainsAny(name, "/:") {
		return found[0], nil
	}
	return memory.Object{}, fmt.Errorf("%s: want an identifier, a path or path:line of the memex, or words of a heading: %w", name, memory.ErrNotFound)
}

// inMemex is a name relative to the memex, where it is the absolute path of something
// in it: the real one, or the one an editor has through the link it opened.
func (d *Daemon) inMemex(name string) string {
	for _, root := range []string{d.memex, d.s.MemexDir} {
		if rel, err := filepath.Rel(root, name); err == nil && filepath.IsAbs(name) && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel)
		}
	}
	return name
}

// located says where an object is, for clients.
func located(o memory.Object) sexp.Plist {
	return sexp.P(sexp.Keyword("ID"), string(o.ID), sexp.Keyword("TITLE"), o.Title, sexp.Keyword("FILE"), o.File, sexp.Keyword("LINE"), o.Line)
}

// pointUpdate takes where a client's cursor is: (:SENSOR :POINT-UPDATE :ID "…"), or
// :FILE and :LINE; without either it looks away.
func (d *Daemon) pointUpdate(c *conn, m proto.Message, session string) {
	if c.origin.Role != proto.RoleOwner {
		c.fail(m, "event.role", "only the owner's clients may say where the eye rests")
		return
	}
	v := d.memory.View()
	name := m.Payload.Text("ID")
	if name == "" {
		name = m.Payload.Text("ELEMENT")
	}
	if file := m.Payload.Text("FILE"); name == "" && file != "" {
		name = file
		if line := m.Payload.Number("LINE"); line > 0 {
			name = fmt.Sprintf("%s:%d", file, line)
		}
	}
	var o memory.Object
	if name != "" {
		var ok bool
		if o, ok = v.Lookup(d.inMemex(name)); !ok {
			c.fail(m, "point.unknown", fmt.Sprintf("%s is not in the memex", name))
			return
		}
	}
	if err := d.gazes.change(session, func(z *gaze) error { z.point = o.ID; return nil }); err != nil {
		c.fail(m, "point.failed", err.Error())
		return
	}
	c.answer(m, sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("POINT-UPDATE"), sexp.Keyword("FOCUS"), string(o.ID), sexp.Keyword("STATUS"), sexp.Keyword("DONE")))
}

// refocus changes where a session looks and says what was done.
func (d *Daemon) refocus(session, op, name string) (string, error) {
	v := d.memory.View()
	var o memory.Object
	if op == "push" || op == "pin" || op == "unpin" {
		var err error
		if o, err = d.node(v, name); err != nil {
			return "", err
		}
	}
	said := ""
	err := d.gazes.change(session, func(z *gaze) error {
		switch op {
		case "push":
			if z.Stack = slices.DeleteFunc(z.Stack, func(id memory.ID) bool { return id == o.ID }); len(z.Stack) >= deepestFocus {
				return fmt.Errorf("%d projects are in focus already: pop one first", len(z.Stack))
			}
			z.Stack = append(z.Stack, o.ID)
			said = "In focus: " + o.Title
		case "pop":
			if len(z.Stack) == 0 {
				return errors.New("no project is in focus")
			}
			z.Stack = z.Stack[:len(z.Stack)-1]
			said = "No project is in focus any more."
			if n := len(z.Stack); n > 0 {
				back, _ := v.Get(z.Stack[n-1])
				said = "Back in focus: " + back.Title
			}
		case "clear":
			*z = gaze{last: z.last}
			said = "Nothing is in focus."
		case "pin":
			if len(z.Pins) >= mostPins && !slices.Contains(z.Pins, o.ID) {
				return fmt.Errorf("%d nodes are pinned already: unpin one first", len(z.Pins))
			}
			if !slices.Contains(z.Pins, o.ID) {
				z.Pins = append(z.Pins, o.ID)
			}
			said = "Pinned: " + o.Title
		case "unpin":
			z.Pins = slices.DeleteFunc(z.Pins, func(id memory.ID) bool { return id == o.ID })
			said = "No longer pinned: " + o.Title
		default:
			return fmt.Errorf("want push, pop, list, clear, pin or unpin, found %q", op)
		}
		return nil
	})
	return said, err
}

// answerFocus is /focus for programs.
func answerFocus(_ context.Context, d *Daemon, a asking) (sexp.Plist, error) {
	m, session, said := a.message, a.session, ""
	if op := strings.ToLower(string(m.Payload.Word("OP"))); op != "" && op != "list" {
		var err error
		if said, err = d.refocus(session, op, m.Payload.Text("NODE")); err != nil {
			return sexp.Plist{}, err
		}
	}
	v := d.memory.View()
	stack, pins, point := d.gazes.look(session)
	places := func(ids []memory.ID) sexp.List {
		var rows []sexp.Value
		for _, id := range ids {
			if o, ok := v.Get(id); ok {
				rows = append(rows, located(o).List())
			}
		}
		return sexp.NewList(rows...)
	}
	return sexp.P(
		sexp.Keyword("TEXT"), said, sexp.Keyword("STACK"), places(stack), sexp.Keyword("PINNED"), places(pins), sexp.Keyword("POINT"), string(point)), nil
}

// focusWord answers /focus.
func (d *Daemon) focusWord(session string, args []string) string {
	if len(args) == 0 || args[0] == "list" {
		return d.describeFocus(session)
	}
	op, name := args[0], strings.Join(args[1:], " ")
	if !slices.Contains([]string{"push", "pop", "clear", "pin", "unpin"}, op) {
		op, name = "push", strings.Join(args, " ")
	}
	said, err := d.refocus(session, op, name)
	if err != nil {
		return fmt.Sprintf("The focus stays: %v.", err)
	}
	return said
}

func (d *Daemon) unfocusWord(session string, _ []string) string {
	return d.focusWord(session, []string{"clear"})
}

func (d *Daemon) describeFocus(session string) string {
	v := d.memory.View()
	stack, pins, point := d.gazes.look(session)
	var b strings.Builder
	line := func(what string, id memory.ID) {
		if o, ok := v.Get(id); ok {
			fmt.Fprintf(&b, "%s: %s (%s:%d)\n", what, o.Title, o.File, o.Line)
		}
	}
	for i := range stack {
		what := "project"
		if i == 0 {
			what = "current project"
		}
		line(what, stack[len(stack)-1-i])
	}
	line("cursor", point)
	for _, id := range pins {
		line("pinned", id)
	}
	if b.Len() == 0 {
		return "Nothing is in focus. /focus NAME puts a project there, /focus pop takes it away."
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// contextWord answers /context, /context why NAME and /context dropped.
func (d *Daemon) contextWord(session string, args []string) string {
	c, ok := d.gazes.lastShown(session)
	if !ok {
		return "No model was shown anything of the memex in this session."
	}
	switch {
	case len(args) == 0:
		shown := 0
		for _, e := range c.Entries {
			if e.Form != fovea.Dropped {
				shown++
			}
		}
		return fmt.Sprintf("%d of %d tokens: %d nodes shown, %d dropped, %d not weighed. /context why NAME, /context dropped.",
			c.Tokens, c.Budget, shown, len(c.Entries)-shown, c.Unseen)
	case args[0] == "dropped":
		return listEntries(c.Entries, func(e fovea.Entry) bool { return e.Form == fovea.Dropped }, "Nothing was dropped.")
	case args[0] == "why" && len(args) > 1:
		name := strings.Join(args[1:], " ")
		o, err := d.node(d.memory.View(), name)
		if err != nil {
			return err.Error()
		}
		return listEntries(c.Entries, func(e fovea.Entry) bool { return e.ID == o.ID }, o.Title+" was not weighed: nothing made it relevant.")
	}
	return "want /context, /context why NAME or /context dropped"
}

func listEntries(all []fovea.Entry, want func(fovea.Entry) bool, none string) string {
	const most = 40
	var b strings.Builder
	n := 0
	for _, e := range all {
		if !want(e) {
			continue
		}
		if n++; n <= most {
			title := e.Title
			if title == "" {
				title = string(e.ID)
			}
			fmt.Fprintf(&b, "%s (%s): %s, %d tokens, %s\n", title, e.Section, e.Form, e.Tokens, e.Reason)
		}
	}
	if n == 0 {
		return none
	}
	if n > most {
		fmt.Fprintf(&b, "… and %d more\n", n-most)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
