package memory

import (
	"errors"
	"fmt"

	"passepartout/internal/org"
)

// ChangeKind names what an edit does.
type ChangeKind string

// The kinds of change. What each takes from Change is noted beside it.
const (
	SetTodo        ChangeKind = "set-todo"        // Value: keyword, "" clears it
	SetTitle       ChangeKind = "set-title"       // Value
	SetPriority    ChangeKind = "set-priority"    // Value: one character, "" removes it
	SetTags        ChangeKind = "set-tags"        // Tags: all of the object's own
	SetProperty    ChangeKind = "set-property"    // Key, Value
	RemoveProperty ChangeKind = "remove-property" // Key
	Schedule       ChangeKind = "schedule"        // Value: timestamp, "" removes it
	SetDeadline    ChangeKind = "set-deadline"    // Value: timestamp, "" removes it
	SetBody        ChangeKind = "set-body"        // Value
	Insert         ChangeKind = "insert"          // Entry or Value (Org text): last child of the object, or end of the file
	Refile         ChangeKind = "refile"          // Target: the new parent, a headline or a file
	Archive        ChangeKind = "archive"         // moves the subtree to FILE_archive
	Delete         ChangeKind = "delete"          // removes the subtree
)

var changeKinds = []string{
	string(SetTodo), string(SetTitle), string(SetPriority), string(SetTags), string(SetProperty), string(RemoveProperty),
	string(Schedule), string(SetDeadline), string(SetBody), string(Insert), string(Refile), string(Archive), string(Delete),
}

// subtree reports whether the change concerns everything below the object too.
func (k ChangeKind) subtree() bool { return k == Refile || k == Archive || k == Delete }

// Change is what is to happen to an object.
type Change struct {
	Kind   ChangeKind
	Key    string
	Value  string
	Tags   []string
	Entry  org.Entry
	Target ID
}

// Edit is one change to one object, provided it is still what the caller saw.
type Edit struct {
	Object ID
	// File names the file to insert into, made if it does not exist; only for
	// Insert without Object.
	File string
	// Expect is the Hash (or Own hash) of the object the caller read. It may be
	// zero only for Insert, which cannot overwrite anything.
	Expect Hash
	Change Change
}

// Tx is a set of edits that happen together or not at all.
type Tx struct {
	Actor, Turn, Label string // for history; Turn groups what one turn of the agent did
	Edits              []Edit
	DryRun             bool // compute the result, write nothing
	// Shown marks headings that show what is recorded elsewhere. Taking such an
	// edit back would only make them wrong, so undo passes it over.
	Shown bool

	kind OpKind // OpEdit if empty
}

func (tx Tx) opKind() OpKind {
	switch {
	case tx.kind != "":
		return tx.kind
	case tx.Shown:
		return opShown
	}
	return OpEdit
}

// Result says what a transaction did.
type Result struct {
	Seq     uint64         // of the operation, 0 for a dry run
	IDs     []ID           // for each edit, the object's identifier afterwards
	Objects []ObjectChange // everything whose hash changed
	Files   []FileDiff
}

// FileDiff is one file before and after; nil means it does not exist.
type FileDiff struct {
	Path          string
	Before, After []byte
}

// Reasons for which a transaction is refused. Nothing was written.
var (
	// ErrNotFound means there is no such object or file; read again.
	ErrNotFound = errors.New("not found")
	// ErrInvalid means the edit itself makes no sense; asking again is useless.
	ErrInvalid = errors.New("invalid edit")
	// ErrUnsaved means a client has unsaved changes in the file; ask the user to save.
	ErrUnsaved = errors.New("file has unsaved changes in a client")
)

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}

// ConflictError means the object is not what the caller saw. Both versions are
// kept: Theirs is in the file, Ours in the history as a conflict.
type ConflictError struct {
	Object        ID
	File          string
	Expect, Found Hash
	Theirs        string // the section as it is in the file
	Ours          string // what the edit would have made of the version the caller saw, if known
}

// Error says what was expected and found.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("conflict: %s in %s has changed: expected %.12s, found %.12s", e.Object, e.File, e.Expect, e.Found)
}

// DivergedError means an operation cannot be undone because what it wrote has
// been changed since. Diff shows how.
type DivergedError struct {
	Seq  uint64
	Path string
	Diff string
}

// Error names the operation and the file.
func (e *DivergedError) Error() string {
	return fmt.Sprintf("operation %d cannot be undone: %s was changed since", e.Seq, e.Path)
}
