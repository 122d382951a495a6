package memory

// Disk and DiskFile let tests take the place of the file system.
type (
	Disk     = disk
	DiskFile = diskFile
	Renaming = renaming
)

// Swap has two files exchange their names.
const Swap = swap

// ErrNoSwap is what a disk answers that cannot exchange names.
var ErrNoSwap = errNoSwap

// RealDisk is the file system itself.
func RealDisk() Disk { return osDisk{} }

// OnDisk returns the options with another disk.
func (o Options) OnDisk(d Disk) Options {
	o.disk = d
	return o
}

// Kill lets go of the store as a killed process does: nothing is saved.
func (s *Store) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if err := s.release(); err != nil {
		panic(err)
	}
}

// StateName is the name of a memex's directory below Options.State.
func StateName(root string) string { return stateName(root) }
