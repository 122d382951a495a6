package sandbox_test

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"passepartout/internal/sandbox"
)

// BenchmarkSpawn measures what the walls cost: the same program started
// plainly and on each path.
func BenchmarkSpawn(b *testing.B) {
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("/bin/true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, m := range methods {
		b.Run(m.String(), func(b *testing.B) {
			dir := b.TempDir()
			for b.Loop() {
				res, err := sandbox.Run(context.Background(), sandbox.Spec{Argv: []string{"/bin/true"}, WriteRoots: []string{dir}, Method: m})
				if err != nil || !res.OK() {
					b.Fatal(res.Cause, err)
				}
			}
		})
	}
}

// BenchmarkOutput measures the way of a command's output to the cap.
func BenchmarkOutput(b *testing.B) {
	const size = 1 << 30
	for _, m := range methods {
		b.Run(m.String(), func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				res, err := sandbox.Run(context.Background(), sandbox.Spec{
					Argv: []string{"/usr/bin/head", "-c", "1073741824", "/dev/zero"}, Method: m,
					Limits: sandbox.Limits{Wall: time.Minute},
				})
				if err != nil || res.Stdout.Total != size {
					b.Fatal(res.Stdout.Total, err)
				}
			}
		})
	}
}
