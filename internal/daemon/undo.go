package daemon

import (
	"path/filepath"

	"passepartout/internal/place"
	"passepartout/internal/undo"
)

// openUndo opens the memory of what files looked like before the agent changed
// them. It reads nothing that is the daemon's own.
func (d *Daemon) openUndo() (*undo.Store, error) {
	dir := filepath.Join(d.s.StateDir, "undo")
	own := d.layout()
	return undo.Open(dir, undo.Options{
		MaxBytes: d.s.UndoBytes, MaxFile: d.s.UndoFile, Now: d.now,
		Skip: func(p string) bool { return own.Kind(p) == place.Own },
	})
}

// unreadable names what a walk through a directory must not look into: the gates
// judged the directory, not every file in it.
func (d *Daemon) unreadable(path string) bool { return sealedPlace(d.layout(), path) }

// layout says what paths are on this machine.
func (d *Daemon) layout() place.Layout {
	return place.Layout{Home: d.s.Home, User: d.s.User, Own: d.own()}
}

// sealedPlace reports whether what lies there is not for reading unasked.
func sealedPlace(l place.Layout, path string) bool {
	switch l.Kind(path) {
	case place.Secret, place.Own, place.Process, place.Device, place.Unknown:
		return true
	case place.Ordinary, place.Sink, place.System, place.Top, place.Agent, place.Startup:
	}
	return false
}

// closed reports whether a file decides about the agent, or records what it did.
func (d *Daemon) closed(path string) bool { return d.layout().Kind(path) == place.Own }
