package sandbox

// SkipRaceExitDelay keeps a stage built with the race detector from lingering
// a second after its work, as that runtime does by default.
func SkipRaceExitDelay() { stageEnv = append(stageEnv, "GORACE=atexit_sleep_ms=0") }

// HideCgroups makes control groups look absent and returns what brings them back.
func HideCgroups() (restore func()) {
	old := cgroupMount
	cgroupMount = "/no/such/mount"
	return func() { cgroupMount = old }
}
