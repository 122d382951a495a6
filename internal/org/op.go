package org

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Op is an edit as data, for scripts: which headline, what to do, with what.
type Op struct {
	// Target names a headline: "id:…", "line:N" (any line of its section), or
	// its outline path with slashes, "Projects/Garden".
	Target string   `json:"target"`
	Name   string   `json:"op"`
	Args   []string `json:"args,omitempty"`
}

// opArgs is how many arguments each operation takes at least and at most.
var opArgs = map[string][2]int{
	"todo": {0, 2}, "priority": {0, 1}, "title": {1, 1}, "tags": {0, 1000}, "property": {1, 2}, "id": {1, 1},
	"schedule": {0, 1}, "deadline": {0, 1}, "body": {1, 1}, "child": {1, 1}, "after": {1, 1}, "delete": {0, 0},
	"promote": {0, 0}, "demote": {0, 0}, "up": {0, 0}, "down": {0, 0}, "refile": {1, 1}, "sort": {1, 1}, "archive": {1, 1},
}

// OpNames lists the operations Edit knows, sorted.
func OpNames() []string {
	names := make([]string, 0, len(opArgs))
	for n := range opArgs {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// Edit carries out an operation given as data. archived is the text an "archive"
// took out, for the archive file.
func (f *File) Edit(op Op, at time.Time) (patches []Patch, archived string, err error) {
	n, known := opArgs[op.Name]
	if !known {
		return nil, "", refuse("operation %q is not one of %s", op.Name, strings.Join(OpNames(), " "))
	}
	if len(op.Args) < n[0] || len(op.Args) > n[1] {
		return nil, "", refuse("%s takes %d to %d arguments, not %d", op.Name, n[0], n[1], len(op.Args))
	}
	h, err := f.Resolve(op.Target)
	if err != nil {
		return nil, "", err
	}
	if op.Name == "archive" {
		return h.Archive(at, op.Args[0])
	}
	patches, err = h.run(op, at)
	return patches, "", err
}

func (h Headline) run(op Op, at time.Time) ([]Patch, error) {
	arg := func(i int) string {
		if i < len(op.Args) {
			return op.Args[i]
		}
		return ""
	}
	switch op.Name {
	case "todo":
		return h.SetTodo(arg(0), Change{At: at, Note: arg(1)})
	case "priority":
		return h.SetPriority(arg(0))
	case "title":
		return h.SetTitle(arg(0))
	case "tags":
		return h.SetTags(op.Args)
	case "property":
		if len(op.Args) == 1 {
			return h.RemoveProperty(arg(0))
		}
		return h.SetProperty(arg(0), arg(1))
	case "id":
		return h.SetID(arg(0))
	case "schedule":
		return h.Schedule(arg(0))
	case "deadline":
		return h.SetDeadline(arg(0))
	case "body":
		return h.SetBody(arg(0))
	case "child":
		return h.AppendChild(arg(0))
	case "after":
		return h.InsertAfter(arg(0))
	case "delete":
		return h.Delete()
	case "promote":
		return h.Shift(-1)
	case "demote":
		return h.Shift(1)
	case "up", "down":
		return h.Move(op.Name == "up")
	case "refile":
		target, err := h.f.Resolve(arg(0))
		if err != nil {
			return nil, err
		}
		return h.Refile(target)
	case "sort":
		key := map[string]SortKey{
			"title": SortTitle, "todo": SortTodo, "priority": SortPriority, "scheduled": SortScheduled, "deadline": SortDeadline,
		}[arg(0)]
		return h.Sort(key, false)
	}
	return nil, refuse("operation %q is not carried out here", op.Name)
}

// Resolve finds the headline an Op's target names. A path that fits more than
// one headline is refused.
func (f *File) Resolve(target string) (Headline, error) {
	if id, ok := strings.CutPrefix(target, "id:"); ok {
		if h, ok := f.Find(id); ok {
			return h, nil
		}
		return Headline{}, refuse("no headline has the id %q", id)
	}
	if num, ok := strings.CutPrefix(target, "line:"); ok {
		n, err := strconv.Atoi(num)
		if pos := f.Lines().Start(n); err == nil && pos >= 0 {
			if h, ok := f.At(pos); ok {
				return h, nil
			}
		}
		return Headline{}, refuse("line %q is not below a headline", num)
	}
	var found []Headline
	for h := range f.Headlines() {
		if strings.HasSuffix("/"+target, "/"+h.Title()) && strings.Join(h.Path(), "/") == target {
			found = append(found, h)
		}
	}
	if len(found) != 1 {
		return Headline{}, refuse("%d headlines have the path %q, want one", len(found), target)
	}
	return found[0], nil
}
