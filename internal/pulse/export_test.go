package pulse

// Settled waits until nothing runs.
func (p *Pulse) Settled() { p.runs.Wait() }

// Happened deals with an event at once.
func (p *Pulse) Happened(e Event) { p.happened(e) }

// Abandon lets go of everything as a killed process does: nothing is recorded.
func (p *Pulse) Abandon() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.log.mu.Lock()
	_ = p.log.file.Close()
	p.log.fault = errAbandoned
	p.log.mu.Unlock()
	p.stop()
	p.runs.Wait()
}

var errAbandoned = abandoned{}

type abandoned struct{}

func (abandoned) Error() string { return "the process is gone" }
