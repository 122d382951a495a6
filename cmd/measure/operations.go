package main

// An operation is one row of the document: what the ancestor took, and where ours is
// found. The ancestor's figures are those of its own measurement, on another machine of
// the same kind.
type operation struct {
	section  string
	what     string
	ancestor float64 // 0: it had nothing like it
	unit     string  // of the ancestor's figure and of ours
	figure   string  // key of ours
	times    float64 // our figure times this is in the unit; 1 if 0
	more     bool    // more is better
}

// value is our figure in the row's unit.
func (o operation) value(f figures) (float64, bool) {
	v, ok := f[o.figure]
	if o.times != 0 {
		v *= o.times
	}
	return v, ok
}

// better is how many times better ours is than the ancestor's.
func (o operation) better(v float64) float64 {
	if o.more {
		return v / o.ancestor
	}
	return o.ancestor / v
}

const (
	gateSection   = "Gates: one decision"
	frameSection  = "Frames"
	memorySection = "Memory"
	askSection    = "Context and queries"
	daemonSection = "The daemon"
)

// operations are the rows, in the order of the document.
var operations = []operation{
	{gateSection, "message of 200 characters, all gates", 149, "µs", "gate DecideStandardStack/message-200 ns/op", 1e-3, false},
	{gateSection, "message of 10,000 characters", 2401, "µs", "gate DecideStandardStack/message-10000 ns/op", 1e-3, false},
	{gateSection, "reading a file", 280, "µs", "gate DecideStandardStack/read-file ns/op", 1e-3, false},
	{gateSection, "shell: `ls -la /tmp`", 56, "µs", "gate DecideStandardStack/shell-ls ns/op", 1e-3, false},
	{gateSection, "no explanation, refused", 4.4, "µs", "gate DecideStandardStack/no-explanation ns/op", 1e-3, false},
	{gateSection, "all gates and 10 synthetic ones", 174, "µs", "gate DecideStandardStack/message-200-and-10-gates ns/op", 1e-3, false},
	{gateSection, "all gates and 50", 188, "µs", "gate DecideStandardStack/message-200-and-50-gates ns/op", 1e-3, false},
	{gateSection, "all gates and 100", 235, "µs", "gate DecideStandardStack/message-200-and-100-gates ns/op", 1e-3, false},
	{gateSection, "10 synthetic gates only", 7.9, "µs", "gate DecideSyntheticGates/10 ns/op", 1e-3, false},
	{gateSection, "50 synthetic gates only", 39.8, "µs", "gate DecideSyntheticGates/50 ns/op", 1e-3, false},
	{gateSection, "100 synthetic gates only", 79, "µs", "gate DecideSyntheticGates/100 ns/op", 1e-3, false},
	{gateSection, "one value of a message by its key", 260, "ns", "gate Lookup ns/op", 1, false},

	{frameSection, "300 B: write", 60.5, "MB/s", "proto Frame/encode/300B MB/s", 1, true},
	{frameSection, "300 B: read", 35.1, "MB/s", "proto Frame/decode/300B MB/s", 1, true},
	{frameSection, "300 B: write and read", 19.3, "MB/s", "proto Frame/encode+decode/300B MB/s", 1, true},
	{frameSection, "100 KB, one string: write", 118.6, "MB/s", "proto Frame/encode/102400B MB/s", 1, true},
	{frameSection, "100 KB, one string: read", 59.7, "MB/s", "proto Frame/decode/102400B MB/s", 1, true},
	{frameSection, "100 KB, one string: write and read", 33.6, "MB/s", "proto Frame/encode+decode/102400B MB/s", 1, true},
	{frameSection, "100 KB, an outline: write", 67.5, "MB/s", "proto Frame/encode/AST MB/s", 1, true},
	{frameSection, "100 KB, an outline: read", 36.6, "MB/s", "proto Frame/decode/AST MB/s", 1, true},
	{frameSection, "100 KB, an outline: write and read", 21.5, "MB/s", "proto Frame/encode+decode/AST MB/s", 1, true},

	{memorySection, "first reading, 1k headlines (ours from files, theirs from a ready tree)", 24.1, "ms", "fovea Scale/1k/scan ns/op", 1e-6, false},
	{memorySection, "first reading, 10k", 240, "ms", "fovea Scale/10k/scan ns/op", 1e-6, false},
	{memorySection, "first reading, 100k", 2422, "ms", "fovea Scale/100k/scan ns/op", 1e-6, false},
	{memorySection, "reading again, nothing changed, 10k", 235, "ms", "fovea Scale/10k/refresh ns/op", 1e-6, false},
	{memorySection, "reading again, nothing changed, 100k", 2072, "ms", "fovea Scale/100k/refresh ns/op", 1e-6, false},
	{memorySection, "heap for a headline at 100k, beyond the text", 768, "B", "fovea Scale/100k/memory heap-B/headline", 1, false},
	{memorySection, "snapshot, 10k", 3100, "µs", "fovea Scale/10k/snapshot ns/op", 1e-3, false},
	{memorySection, "snapshot, 100k", 43_600, "µs", "fovea Scale/100k/snapshot ns/op", 1e-3, false},
	{memorySection, "taking back, 100k (ours on disk and synced, theirs in memory)", 11.2, "ms", "fovea Scale/100k/undo ns/op", 1e-6, false},
	{memorySection, "saving after one change, 1k", 51, "ms", "fovea Scale/1k/save ns/op", 1e-6, false},
	{memorySection, "saving after one change, 10k", 418, "ms", "fovea Scale/10k/save ns/op", 1e-6, false},
	{memorySection, "saving after one change, 100k", 4309, "ms", "fovea Scale/100k/save ns/op", 1e-6, false},
	{memorySection, "loading what was saved, 10k", 417, "ms", "fovea Scale/10k/start ns/op", 1e-6, false},
	{memorySection, "loading what was saved, 100k", 4930, "ms", "fovea Scale/100k/start ns/op", 1e-6, false},
	{memorySection, "one edit, on disk, synced and seen, 100k", 0, "ms", "fovea Scale/100k/edit ns/op", 1e-6, false},
	{memorySection, "an edit by another program, seen, 100k", 0, "ms", "fovea Scale/100k/external ns/op", 1e-6, false},

	{askSection, "context for a model, 1k headlines", 2.16, "ms", "fovea Scale/1k/context ns/op", 1e-6, false},
	{askSection, "context for a model, 10k", 28.5, "ms", "fovea Scale/10k/context ns/op", 1e-6, false},
	{askSection, "context for a model, 100k", 713, "ms", "fovea Scale/100k/context ns/op", 1e-6, false},
	{askSection, "context with a focus, 100k", 813, "ms", "fovea Scale/100k/context-focus ns/op", 1e-6, false},
	{askSection, "length of the context, 100k", 676_832, "characters", "fovea Scale/100k/context chars", 1, false},
	{askSection, "headlines with a tag, 1k", 1.8, "ms", "fovea Scale/1k/tag ns/op", 1e-6, false},
	{askSection, "headlines with a tag, 10k", 17.4, "ms", "fovea Scale/10k/tag ns/op", 1e-6, false},
	{askSection, "headlines with a tag, 100k", 183, "ms", "fovea Scale/100k/tag ns/op", 1e-6, false},
	{askSection, "search by words and meaning, 100k", 0, "ms", "fovea Scale/100k/query ns/op", 1e-6, false},
	{askSection, "agenda of a week, 100k", 0, "ms", "fovea Scale/100k/agenda ns/op", 1e-6, false},
	{askSection, "likeness of two vectors of 384", 25.1, "µs", "recall Cosine/384 ns/op", 1e-3, false},
	{askSection, "likeness of two vectors of 768", 49.4, "µs", "recall Cosine/768 ns/op", 1e-3, false},
	{askSection, "likeness of two vectors of 1,536", 99, "µs", "recall Cosine/1536 ns/op", 1e-3, false},

	{daemonSection, "start to an accepted connection, empty memex", 2330, "ms", "cmd/passepartout DaemonStart/0 p50-ms", 1, false},
	{daemonSection, "start, 10k headlines", 2700, "ms", "cmd/passepartout DaemonStart/10k p50-ms", 1, false},
	{daemonSection, "start, 100k headlines", 8100, "ms", "cmd/passepartout DaemonStart/100k p50-ms", 1, false},
	{daemonSection, "memory at rest, empty memex", 128.5, "MB", "cmd/passepartout DaemonStart/0 RSS-MB", 1, false},
	{daemonSection, "memory at rest, 10k headlines", 199, "MB", "cmd/passepartout DaemonStart/10k RSS-MB", 1, false},
	{daemonSection, "memory at rest, 100k headlines", 568, "MB", "cmd/passepartout DaemonStart/100k RSS-MB", 1, false},
	{daemonSection, "turn through the mock model, empty memex, 1 client, p50", 0.385, "ms", "cmd/passepartout Clients/1 p50-ms", 1, false},
	{daemonSection, "the same, p99", 0.69, "ms", "cmd/passepartout Clients/1 p99-ms", 1, false},
	{daemonSection, "turns of 1 client", 2380, "1/s", "cmd/passepartout Clients/1 turns/s", 1, true},
	{daemonSection, "turns of 10 clients", 3640, "1/s", "cmd/passepartout Clients/10 turns/s", 1, true},
	{daemonSection, "turns of 100 clients", 3200, "1/s", "cmd/passepartout Clients/100 turns/s", 1, true},
	{daemonSection, "memory with 100 clients", 218, "MB", "cmd/passepartout Clients/100 RSS-MB", 1, false},
	{daemonSection, "turn with 1k headlines, 1 client, p50", 2.8, "ms", "cmd/passepartout MemexTurn/1k/1 p50-ms", 1, false},
	{daemonSection, "turn with 10k headlines, p50", 29.4, "ms", "cmd/passepartout MemexTurn/10k/1 p50-ms", 1, false},
	{daemonSection, "turn with 100k headlines, p50", 880, "ms", "cmd/passepartout MemexTurn/100k/1 p50-ms", 1, false},
	{daemonSection, "turns of 10 clients, 1k headlines", 521, "1/s", "cmd/passepartout MemexTurn/1k/10 turns/s", 1, true},
	{daemonSection, "turns of 10 clients, 10k headlines", 52, "1/s", "cmd/passepartout MemexTurn/10k/10 turns/s", 1, true},
	{daemonSection, "turns of 10 clients, 100k headlines", 1.4, "1/s", "cmd/passepartout MemexTurn/100k/10 turns/s", 1, true},
	{daemonSection, "turn with an answer of 9 KB, p50", 47, "ms", "cmd/passepartout LongReply p50-ms", 1, false},
	{daemonSection, "health check, p50", 0.04, "ms", "cmd/passepartout HealthCheck/1 p50-ms", 1, false},
	{daemonSection, "health checks of 10 clients", 59_000, "1/s", "cmd/passepartout HealthCheck/10 turns/s", 1, true},
	{daemonSection, "refused of 100 clients that connect at once", 62, "", "cmd/passepartout ConnectAtOnce refused-of-100", 1, false},
	{daemonSection, "memory with 500 resting connections", 153, "MB", "cmd/passepartout ConnectAtOnce RSS-MB-at-500", 1, false},
	{daemonSection, "turn by rules that reads, p50", 0, "ms", "cmd/passepartout Turn/read p50-µs", 1e-3, false},
	{daemonSection, "turn by rules that writes a note, synced, p50", 0, "ms", "cmd/passepartout Turn/write p50-µs", 1e-3, false},
	{daemonSection, "turn by rules that runs a command in a sandbox, p50", 0, "ms", "cmd/passepartout Turn/command p50-µs", 1e-3, false},
	{daemonSection, "from nothing to the first answer", 0, "ms", "cmd/passepartout ColdStart ns/op", 1e-6, false},
	{daemonSection, "a command without a daemon (`version`)", 0, "ms", "cmd/passepartout Command ns/op", 1e-6, false},
}

// A curve shows how figures grow with a size.
type curve struct {
	file   string // docs/img/NAME.svg
	title  string
	along  string // what grows
	sizes  []string
	unit   string
	series []series
}

// A series is one line of a curve. The figure's key has * in the size's place.
type series struct {
	name   string
	figure string
	times  float64
}

var headlines = []string{"1k", "10k", "100k", "1m"}

var curves = []curve{
	{"bench-memory", "Reading and changing a memex", "headlines", headlines, "ms", []series{
		{"first reading", "fovea Scale/*/scan ns/op", 1e-6},
		{"warm start", "fovea Scale/*/start ns/op", 1e-6},
		{"index for recall", "fovea Scale/*/index ns/op", 1e-6},
		{"one edit, synced", "fovea Scale/*/edit ns/op", 1e-6},
		{"edit by another program", "fovea Scale/*/external ns/op", 1e-6},
		{"saving the index", "fovea Scale/*/save ns/op", 1e-6},
		{"snapshot", "fovea Scale/*/snapshot ns/op", 1e-6},
	}},
	{"bench-ask", "Asking a memex", "headlines", headlines, "ms", []series{
		{"context", "fovea Scale/*/context ns/op", 1e-6},
		{"context, p99", "fovea Scale/*/context p99-ms", 1},
		{"search", "fovea Scale/*/query ns/op", 1e-6},
		{"search, p99", "fovea Scale/*/query p99-ms", 1},
		{"agenda of a week", "fovea Scale/*/agenda ns/op", 1e-6},
		{"tag", "fovea Scale/*/tag ns/op", 1e-6},
	}},
	{"bench-rss", "Memory of a memex", "headlines", headlines, "MB", []series{
		{"resident", "fovea Scale/*/memory RSS-MB", 1},
	}},
	{"bench-clients", "Turns of many clients", "clients", []string{"1", "10", "100", "1000"}, "ms", []series{
		{"p50", "cmd/passepartout Clients/* p50-ms", 1},
		{"p99", "cmd/passepartout Clients/* p99-ms", 1},
	}},
	{"bench-throughput", "Turns in a second, and the daemon's memory", "clients", []string{"1", "10", "100", "1000"}, "", []series{
		{"turns/s", "cmd/passepartout Clients/* turns/s", 1},
		{"resident MB", "cmd/passepartout Clients/* RSS-MB", 1},
	}},
	{"bench-gates", "One decision of many gates", "gates", []string{"10", "100", "1000"}, "µs", []series{
		{"synthetic gates", "gate DecideSyntheticGates/* ns/op", 1e-3},
		{"beside all of ours", "gate DecideStandardStack/message-200-and-*-gates ns/op", 1e-3},
	}},
}
