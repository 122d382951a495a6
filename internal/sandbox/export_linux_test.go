package sandbox

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// LandlockAlone puts this thread behind Landlock and no other wall, with the rules of
// a run that may write to root. It returns the version in force.
func LandlockAlone(root string) (abi int, err error) {
	runtime.LockOSThread()
	if abi = landlockABI(); abi == 0 {
		return 0, nil
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return abi, err
	}
	p := &plan{WriteRoots: []string{root}}
	return abi, restrictLandlock(abi, p.landlockRules(abi))
}

// HideCgroups makes control groups look absent and returns what brings them back.
func HideCgroups() (restore func()) {
	old := cgroupMount
	cgroupMount = "/no/such/mount"
	return func() { cgroupMount = old }
}

// What the tests of control groups look at.
var (
	OwnGroups    = ownGroups
	SweepCgroups = sweepCgroups
)

// Witnesses are the ways to see who opens files, best first. Each begins to look and
// returns what ends that.
var Witnesses = map[string]func(files, roots []string) (opened func() []string, err error){
	"fanotify": func(files, roots []string) (func() []string, error) {
		l, err := listen(files, roots)
		if err != nil {
			return nil, err
		}
		return l.opened, nil
	},
	"inotify": func(files, roots []string) (func() []string, error) { return overhear(files, roots).opened, nil },
}
