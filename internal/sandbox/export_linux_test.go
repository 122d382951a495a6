package sandbox

// SkipRaceExitDelay keeps a stage built with the race detector from lingering
// a second after its work, as that runtime does by default.
func SkipRaceExitDelay() { stageEnv = append(stageEnv, "GORACE=atexit_sleep_ms=0") }
