package sandbox

import "io/fs"

// ChangeKind says what happened to a path.
type ChangeKind uint8

// Kinds of change. The zero value is invalid.
const (
	ChangeUnknown ChangeKind = iota
	Created
	Modified
	Deleted
)

// String names the kind as a diff would.
func (k ChangeKind) String() string {
	switch k {
	case ChangeUnknown:
		return "unknown"
	case Created:
		return "created"
	case Modified:
		return "modified"
	case Deleted:
		return "deleted"
	}
	return "unknown"
}

// Change is one path that a dry run would have changed.
type Change struct {
	Path string
	Kind ChangeKind
	// Mode is the type and permissions after the change; zero when deleted.
	Mode fs.FileMode
	// Size and SHA256 (in hexadecimal) describe a regular file afterwards.
	Size   int64
	SHA256 string
	// Upper holds the new content of a file, until the overlay's directory
	// is removed.
	Upper string
	// Target is where a symbolic link points.
	Target string
}

// overlayDirs are where the changes to one write root are collected.
type overlayDirs struct{ Root, Upper, Work string }

// overlay turns a run into a dry run.
type overlay struct {
	dir  string
	dirs []overlayDirs
}
