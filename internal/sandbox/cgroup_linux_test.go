package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"passepartout/internal/sandbox"
)

// TestOnlyAbandonedGroupsAreSweptAway makes three: of a process that is gone, of one
// that runs, and of one whose number means something elsewhere.
func TestOnlyAbandonedGroupsAreSweptAway(t *testing.T) {
	parents, err := sandbox.OwnGroups()
	if err != nil {
		t.Skip(err)
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		t.Skip(err)
	}
	ours := "passepartout-" + strings.Trim(space, "pid:[]") + "-"
	groups := map[string]bool{ours + "4194305-GONE": false, ours + "1-RUNNING": true, "passepartout-1-4194305-ELSEWHERE": true}
	for name := range groups {
		dir := filepath.Join(parents["pids"], name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Skip(err)
		}
		t.Cleanup(func() { _ = os.Remove(dir) })
	}
	sandbox.SweepCgroups()
	for name, stays := range groups {
		if _, err := os.Stat(filepath.Join(parents["pids"], name)); (err == nil) != stays {
			t.Errorf("%s: stays is %v, want %v", name, err == nil, stays)
		}
	}
}
