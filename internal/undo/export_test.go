package undo

import "path/filepath"

// LeaveIntent announces the undoing of an entry and does nothing more, as a
// process does that dies at that moment.
func (s *Store) LeaveIntent(id uint64) error {
	return writeRecord(filepath.Join(s.dir, intentFile), intent{id, true})
}
