package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fullDisk runs in a mount namespace of its own, where it can make small disks. Each
// command is preceded by a word for it and followed by its exit code.
const fullDisk = `
mount -t tmpfs -o size=256k none "$HOME/.local/state" || { echo no-mount; exit 0; }
say() { word=$1; shift; passepartout "$@"; echo "$word=$?"; }
stop() { lock="$HOME/.local/state/passepartout/daemon.lock"; kill "$(cat "$lock")"; flock -w 20 "$lock" true; }
say room "remind me to water the tree"
cat /dev/zero > "$HOME/.local/state/fill" 2>/dev/null
i=0
while [ $i -lt 20 ]; do
  passepartout "remind me to oil gate $i" > "$HOME/said"
  case $(cat "$HOME/said") in Captured*|"It was done"*) i=$((i+1));; *) break;; esac
done
cat "$HOME/said"
echo "kept=$(grep -c '^\* TODO oil gate' "$HOME/memex/inbox/inbox.org")/$i"
rm "$HOME/.local/state/fill"
say mended "remind me to mend the fence"
say asked "run curl -s https://example.com/ in the shell"
say unbroken journal verify
echo "resumed=$(grep -c ':KIND :RESUMED' "$HOME"/.local/state/passepartout/journal/*.journal)"
stop
say after "remind me to paint the door"
say record journal verify
say well doctor
stop
`

// TestAFullDiskStopsTheAgentAndLosesNothing: with no room for the record nothing is
// done, and said so; everything that was said to be done is there; and with room
// again the same daemon goes on.
func TestAFullDiskStopsTheAgentAndLosesNothing(t *testing.T) {
	if _, err := exec.LookPath("unshare"); err != nil {
		t.Skip("unshare is not installed")
	}
	h := bareHome(t, "PROVIDER_CASCADE=reflex")
	h.file("memex/inbox/inbox.org", "* TODO Something\n", 0o600)
	if err := os.MkdirAll(filepath.Join(h.home, ".local", "state"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("unshare", "-rm", "sh", "-c", fullDisk)
	c.Env = append(h.env, "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"))
	raw, err := c.CombinedOutput()
	out := string(raw)
	switch {
	case strings.Contains(out, "no-mount") || strings.Contains(out, "unshare failed"):
		t.Skip("this machine lets nobody make a small disk")
	case err != nil:
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"room=0", "so nothing ", " done: journal has failed: the disk is full", "mended=0", "unbroken=0", "resumed=1", "after=0", "record=0"} {
		if !strings.Contains(out, want) {
			t.Errorf("want %q in:\n%s", want, out)
		}
	}
	_, rest, _ := strings.Cut(out, "kept=")
	line, _, _ := strings.Cut(rest, "\n")
	if kept, said, ok := strings.Cut(line, "/"); !ok || kept != said {
		t.Errorf("%s captured of %s that were said to be:\n%s", kept, said, out)
	}
	if strings.Contains(out, "panic") || strings.Contains(out, "goroutine ") {
		t.Errorf("it crashed:\n%s", out)
	}
}
