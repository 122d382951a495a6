//go:build race

package sandbox_test

// raceEnabled tells that this binary, and so the stage, carries the race
// detector, whose shadow memory no tight memory limit can hold.
const raceEnabled = true
