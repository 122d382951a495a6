package memory

// Disk and DiskFile let tests take the place of the file system.
type (
	Disk     = disk
	DiskFile = diskFile
)

// ErrNoSwap is what a disk answers that cannot exchange names.
var ErrNoSwap = errNoSwap

// RealDisk is the file system itself.
func RealDisk() Disk { return osDisk{} }

// OnDisk returns the options with another disk.
func (o Options) OnDisk(d Disk) Options {
	o.disk = d
	return o
}
