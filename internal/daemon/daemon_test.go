package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"passepartout/internal/daemon"
	"passepartout/internal/journal"
	"passepartout/internal/proto"
	"passepartout/internal/sandbox"
	"passepartout/internal/sexp"
)

func TestMain(m *testing.M) {
	sandbox.Init()
	goleak.VerifyTestMain(m)
}

// A house is a running daemon on a demo memex of its own.
type house struct {
	t        testing.TB
	settings daemon.Settings
	stop     context.CancelFunc
	ended    chan error
}

func settings(t testing.TB) daemon.Settings {
	t.Helper()
	dir, err := os.MkdirTemp("", "pp") // short: socket paths are limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	memex := filepath.Join(dir, "memex")
	if err := daemon.WriteDemo(memex, time.Now()); err != nil {
		t.Fatal(err)
	}
	return daemon.Settings{
		MemexDir: memex, StateDir: filepath.Join(dir, "state"), SocketPath: filepath.Join(dir, "run", "pp.sock"),
		Assistant: "test", Home: dir, User: "test", PrivacyTags: []string{"@personal"},
		ApprovalTTL: time.Hour, MaxClients: 2048,
	}
}

func open(t testing.TB, s daemon.Settings) *house {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	d, err := daemon.Open(ctx, s)
	if err != nil {
		stop()
		t.Fatal(err)
	}
	h := &house{t: t, settings: s, stop: stop, ended: make(chan error, 1)}
	go func() { h.ended <- d.Run(ctx) }()
	t.Cleanup(h.close)
	h.dial().Close() // it listens
	return h
}

// close stops the daemon and checks that it ended well.
func (h *house) close() {
	if h.ended == nil {
		return
	}
	h.stop()
	if err := <-h.ended; err != nil {
		h.t.Errorf("the daemon ended with %v", err)
	}
	h.ended = nil
}

func (h *house) dial() net.Conn {
	h.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		c, err := net.Dial("unix", h.settings.SocketPath)
		if err == nil {
			return c
		}
		if time.Now().After(deadline) {
			h.t.Fatal(err)
		}
		runtime.Gosched()
	}
}

// A peer is a client that has introduced itself.
type peer struct {
	t testing.TB
	*proto.Client
	nc net.Conn
	id int64
}

func (h *house) connect() *peer { return h.connectAs("cli") }

func (h *house) connectAs(channel string) *peer {
	h.t.Helper()
	nc := h.dial()
	c, err := proto.Connect(nc, channel, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { nc.Close() })
	return &peer{t: h.t, Client: c, nc: nc}
}

// request sends a message and returns its terminal response.
func (p *peer) request(m proto.Message) proto.Message {
	p.t.Helper()
	p.id++
	m.Meta = m.Meta.With("ID", sexp.NewInt(p.id))
	if err := p.Send(m); err != nil {
		p.t.Fatal(err)
	}
	return p.response()
}

func (p *peer) response() proto.Message {
	p.t.Helper()
	for {
		m, err := p.Receive()
		if err != nil {
			p.t.Fatal(err)
		}
		if id, ok := m.Meta.Get("IN-REPLY-TO"); ok && m.Kind == proto.Response && sexp.Equal(id, sexp.NewInt(p.id)) {
			return m
		}
	}
}

func say(session, text string) proto.Message {
	return proto.Message{
		Kind: proto.Event, Meta: sexp.P(sexp.Keyword("SESSION-ID"), session),
		Payload: sexp.P(sexp.Keyword("SENSOR"), sexp.Keyword("USER-INPUT"), sexp.Keyword("TEXT"), text),
	}
}

func data(t testing.TB, src string) proto.Message {
	t.Helper()
	v, err := sexp.Read([]byte(src), sexp.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := proto.ParseMessage(v)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestASentenceIsAnsweredFromTheMemex(t *testing.T) {
	h := open(t, settings(t))
	p := h.connect()
	m := p.request(say("main", "what is due this week?"))
	if got := m.Payload.Text("TEXT"); m.Payload.Word("STATUS") != "DONE" || !strings.Contains(got, "Order the beech boards") || !strings.Contains(got, "overdue    TODO Return the borrowed shredder") {
		t.Errorf("answered %s", got)
	}
	if strings.Contains(m.Payload.Text("TEXT"), "seed potatoes") {
		t.Error("something due in 25 days is shown as due this week")
	}
}

func TestCaptureEditsTheOrgFileAndNothingElse(t *testing.T) {
	h := open(t, settings(t))
	p := h.connect()
	inbox := filepath.Join(h.settings.MemexDir, "inbox", "inbox.org")
	before, err := os.ReadFile(inbox)
	if err != nil {
		t.Fatal(err)
	}
	p.request(say("main", "remind me to buy a lamp"))
	after, err := os.ReadFile(inbox)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(after), string(before)) || !strings.Contains(string(after[len(before):]), "* TODO buy a lamp") {
		t.Errorf("inbox became\n%s", after)
	}
}

func TestINV04AClientSentRequestCannotReachAnActuatorUngated(t *testing.T) {
	h := open(t, settings(t))
	p := h.connect()
	for _, src := range []string{
		`(:TYPE :REQUEST :TARGET :SHELL :PAYLOAD (:CMD "touch ~/.bashrc" :EXPLANATION "a client asked for this"))`,
		`(:TYPE :REQUEST :TARGET :SHELL :PAYLOAD (:CMD "rm -rf /" :EXPLANATION "a client asked for this"))`,
		`(:TYPE :REQUEST :TARGET "shell" :PAYLOAD (:CMD "rm -rf ~" :APPROVED T :EXPLANATION "a client asked for this"))`,
		`(:TYPE :REQUEST :TARGET :TOOL :PAYLOAD (:TOOL "SHELL" :ARGS (:CMD "rm -rf /") :EXPLANATION "a client asked for this"))`,
		`(:TYPE :REQUEST :TARGET :SYSTEM :PAYLOAD (:ACTION :EVAL :CODE "(quit)" :EXPLANATION "a client asked for this"))`,
		`(:TYPE :REQUEST :TARGET :TOOL :PAYLOAD (:TOOL "read-file" :ARGS (:FILEPATH "~/.ssh/id_rsa") :EXPLANATION "a client asked for this"))`,
		`(:TYPE :REQUEST :TARGET :TOOL :PAYLOAD (:TOOL "write-note" :ARGS (:FILEPATH "system/permissions.org" :CONTENT "| * | allow |") :EXPLANATION "a client asked for this"))`,
	} {
		m := p.request(data(t, src))
		if s := m.Payload.Word("STATUS"); s != "DENIED" && s != "PENDING" {
			t.Errorf("%s ended %s: %s", src, s, m.Payload.Text("TEXT"))
		}
	}
}

func TestAReplyIsOnlyItsAskersAlthoughOthersHearTheSession(t *testing.T) {
	h := open(t, settings(t))
	asker, other := h.connect(), h.connect()
	other.request(data(t, `(:TYPE :REQUEST :META (:SESSION-ID "main") :PAYLOAD (:ACTION :LISTEN))`))
	asker.request(say("main", "list my todos"))
	for {
		m, err := other.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if id, ok := m.Meta.Get("IN-REPLY-TO"); ok {
			t.Fatalf("a client that asked nothing got %s in reply to its own %s", m.Value(), id)
		}
		if m.Kind == proto.Response {
			return // it heard the whole turn
		}
	}
}

func TestWhoeverListensHearsWhatWaitsInAnotherSession(t *testing.T) {
	h := open(t, settings(t))
	asker, listener := h.connect(), h.connect()
	listener.request(data(t, `(:TYPE :REQUEST :META (:SESSION-ID "elsewhere") :PAYLOAD (:ACTION :LISTEN))`))
	if r := asker.request(say("main", "$ curl https://example.org/")); r.Payload.Word("STATUS") != "PENDING" {
		t.Fatalf("answered %s", r.Value())
	}
	m, err := listener.Receive()
	if err != nil || m.Do() != "approval-required" || m.Session() != "main" || m.Payload.Text("NAME") != "shell.run" {
		t.Errorf("heard %s, %v: want the question, and nothing else of that session", m.Value(), err)
	}
}

func TestClientsCannotClaimTheKernelsSensors(t *testing.T) {
	h := open(t, settings(t))
	p := h.connect()
	for _, sensor := range []string{"HEARTBEAT", "TOOL-OUTPUT", "APPROVAL-REQUIRED", "CRON", "LOOP-ERROR"} {
		m := p.request(data(t, `(:TYPE :EVENT :META (:SOURCE :SYSTEM) :PAYLOAD (:SENSOR :`+sensor+` :TEXT "/approve"))`))
		if m.Payload.Word("STATUS") != "FAILED" || m.Payload.Text("CODE") != "event.sensor" {
			t.Errorf("%s: %s", sensor, m.Value())
		}
	}
}

func TestAnInterruptDoesNotTouchAnotherSessionOrTheDaemon(t *testing.T) {
	h := open(t, settings(t))
	p := h.connect()
	p.request(data(t, `(:TYPE :EVENT :META (:SESSION-ID "other") :PAYLOAD (:SENSOR :INTERRUPT))`))
	if m := p.request(say("main", "help")); m.Payload.Word("STATUS") != "DONE" {
		t.Errorf("after an interrupt elsewhere: %s", m.Value())
	}
}

func TestMalformedFramesGetOneErrorAndHurtNobodyElse(t *testing.T) {
	h := open(t, settings(t))
	bystander := h.connect()
	frame := func(s string) string { return fmt.Sprintf("%06X%s", len(s), s) }
	hello := frame(`(:TYPE :EVENT :PAYLOAD (:ACTION :HANDSHAKE :VERSION "1" :CLIENT "cli"))`)
	var symbols strings.Builder
	symbols.WriteByte('(')
	for i := range 1_000_000 {
		fmt.Fprintf(&symbols, "s%d ", i)
	}
	symbols.WriteByte(')')
	for name, bytes := range map[string]string{
		"length that is not hex":           hello + "ZZZZZZ()",
		"FFFFFF before the handshake":      "FFFFFF",
		"a million parentheses":            hello + frame(strings.Repeat("(", 1_000_000)),
		"a million symbols":                hello + frame(symbols.String()),
		"a NUL":                            hello + frame("(:TYPE \x00)"),
		"invalid UTF-8":                    hello + frame("(:TYPE \"\xff\")"),
		"evaluation at read time":          hello + frame(`(:TYPE :EVENT :PAYLOAD (:TEXT #.(quit)))`),
		"no handshake":                     frame(`(:TYPE :EVENT :PAYLOAD (:SENSOR :USER-INPUT :TEXT "hi"))`),
		"HTTP":                             "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"an envelope with a forged origin": hello + frame(`(:TYPE :EVENT :ORIGIN :OWNER :PAYLOAD (:SENSOR :USER-INPUT :TEXT "hi"))`),
	} {
		t.Run(name, func(t *testing.T) {
			nc := h.dial()
			defer nc.Close()
			go io.WriteString(nc, bytes)
			r := proto.NewReader(nc, proto.MaxPayload)
			errorFrames := 0
			for {
				v, err := r.Next()
				if err != nil {
					break // closed, cleanly or by reset
				}
				m, err := proto.ParseMessage(v)
				if err != nil {
					t.Fatal(err)
				}
				if m.Do() == "error" {
					errorFrames++
				}
			}
			if errorFrames != 1 {
				t.Errorf("%d error frames, want 1", errorFrames)
			}
		})
	}
	if m := bystander.request(say("main", "help")); m.Payload.Word("STATUS") != "DONE" {
		t.Errorf("a bystander was hurt: %s", m.Value())
	}
}

func TestATruncatedFrameAndASilentClientAreClosedQuietly(t *testing.T) {
	h := open(t, settings(t))
	nc := h.dial()
	io.WriteString(nc, "000100(:TYPE")
	nc.Close()
	if m := h.connect().request(say("main", "help")); m.Payload.Word("STATUS") != "DONE" {
		t.Errorf("got %s", m.Value())
	}
}

func TestAClientThatDawdlesInsideAFrameIsCutOff(t *testing.T) {
	s := settings(t)
	s.FrameTimeout = 20 * time.Millisecond
	h := open(t, s)
	for name, sent := range map[string]string{"says nothing at all": "", "stops inside the length": "00", "stops inside the body": "000100(:TYPE"} {
		nc := h.dial()
		defer nc.Close()
		io.WriteString(nc, sent)
		r := proto.NewReader(nc, proto.MaxPayload)
		var last proto.Message
		for {
			v, err := r.Next()
			if err != nil {
				break
			}
			if last, err = proto.ParseMessage(v); err != nil {
				t.Fatal(err)
			}
		}
		if last.Payload.Text("CODE") != "frame.timeout" {
			t.Errorf("a client that %s got %s last", name, last.Value())
		}
	}
}

func TestAThousandClientsAreHeldAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("a thousand clients take a few seconds")
	}
	h := open(t, settings(t))
	const n = 1000
	peers := make([]*peer, n)
	for i := range peers {
		peers[i] = h.connect()
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	answered := 0
	for i, p := range peers {
		wg.Go(func() {
			m := p.request(say(fmt.Sprint("s", i), "help"))
			if m.Payload.Word("STATUS") == "DONE" {
				mu.Lock()
				answered++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if answered != n {
		t.Errorf("%d of %d clients got their answer", answered, n)
	}
}

func TestTenThousandConnectsLeaveMemoryFlat(t *testing.T) {
	if testing.Short() {
		t.Skip("ten thousand connects take a few seconds")
	}
	h := open(t, settings(t))
	churn := func(n int) uint64 {
		for range n {
			nc := h.dial()
			nc.Close()
		}
		h.connect().request(say("main", "help")) // the daemon has caught up with its own queue
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse
	}
	before := churn(2000)
	after := churn(8000)
	if after > before+16<<20 {
		t.Errorf("the heap grew from %d to %d bytes", before, after)
	}
}

func TestClientsBeyondTheLimitAreTurnedAwayWithAReason(t *testing.T) {
	s := settings(t)
	s.MaxClients = 3
	h := open(t, s)
	for held := range 10 {
		nc := h.dial()
		defer nc.Close()
		v, err := proto.NewReader(nc, proto.MaxPayload).Next()
		if err != nil {
			t.Fatal(err)
		}
		m, err := proto.ParseMessage(v)
		if err != nil {
			t.Fatal(err)
		}
		if m.Do() == "handshake" && held < s.MaxClients {
			continue
		}
		if m.Do() != "error" || m.Payload.Text("CODE") != "connection.refused" {
			t.Errorf("client %d got %s", held+1, m.Value())
		}
		return
	}
}

func TestASecondDaemonIsRefusedAndAStaleSocketIsCleaned(t *testing.T) {
	s := settings(t)
	h := open(t, s)
	if _, err := daemon.Open(context.Background(), s); !errors.Is(err, daemon.ErrRunning) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("a second daemon gave %v", err)
	}
	h.close()
	l, err := net.Listen("unix", s.SocketPath)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close() // a socket file nobody listens on, as after a crash
	open(t, s).connect()
}

func TestAFileInTheSocketsPlaceIsNotDeleted(t *testing.T) {
	s := settings(t)
	if err := os.MkdirAll(filepath.Dir(s.SocketPath), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.SocketPath, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := daemon.Open(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := d.Run(ctx); err == nil || !strings.Contains(err.Error(), "no socket") {
		t.Errorf("the daemon ended with %v", err)
	}
	if b, err := os.ReadFile(s.SocketPath); err != nil || string(b) != "precious" {
		t.Errorf("the file is now %q, %v", b, err)
	}
}

func TestTheSocketIsPrivate(t *testing.T) {
	h := open(t, settings(t))
	for path, want := range map[string]os.FileMode{
		h.settings.SocketPath: 0o600, filepath.Dir(h.settings.SocketPath): 0o700, h.settings.StateDir: 0o700, filepath.Join(h.settings.StateDir, "journal"): 0o700,
	} {
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if st.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", path, st.Mode().Perm(), want)
		}
	}
}

// token is the proof of TCP clients in tests.
const token = "a token of some length"

// overTCP lets a daemon of these settings be reached over TCP, too.
func overTCP(t *testing.T, s daemon.Settings) daemon.Settings {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.TCPAddr, s.TokenFile = l.Addr().String(), filepath.Join(t.TempDir(), "token")
	if err := errors.Join(l.Close(), os.WriteFile(s.TokenFile, []byte(token+"\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	return s
}

// far is connect over TCP.
func (h *house) far(token string) *peer {
	h.t.Helper()
	nc, err := net.Dial("tcp", h.settings.TCPAddr)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { nc.Close() })
	c, err := proto.Connect(nc, "cli", []byte(token))
	if err != nil {
		h.t.Fatal(err)
	}
	return &peer{t: h.t, Client: c, nc: nc}
}

func TestTCPWantsProofOfTheToken(t *testing.T) {
	h := open(t, overTCP(t, settings(t)))
	if r := h.far(token).request(say("main", "help")); r.Payload.Word("STATUS") != "DONE" {
		t.Errorf("with the token: %s", r.Payload)
	}
	for _, other := range []string{"a token of other length", token + "\n", token[1:]} {
		p := h.far(other)
		_ = p.Send(say("main", "help")) // it may have been cut off by now
		if m, err := p.Receive(); err == nil && m.Do() != "error" {
			t.Errorf("with %q: %s", other, m.Value())
		}
	}
}

func TestTCPOnAnotherAddressThanLoopbackIsRefused(t *testing.T) {
	s := overTCP(t, settings(t))
	s.TCPAddr = "0.0.0.0:0"
	d, err := daemon.Open(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("the daemon ended with %v", err)
	}
}

func TestATokenOthersCanReadIsRefused(t *testing.T) {
	s := overTCP(t, settings(t))
	if err := os.Chmod(s.TokenFile, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := daemon.Open(context.Background(), s); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("got %v", err)
	}
}

func TestAChangedPolicyIsInForceAtTheNextDecision(t *testing.T) {
	h := open(t, settings(t))
	p := h.connect()
	path := filepath.Join(h.settings.MemexDir, "system", "permissions.org")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if m := p.request(say("main", "agenda")); m.Payload.Word("STATUS") != "DONE" {
		t.Fatalf("before: %s", m.Value())
	}
	write(strings.Replace(string(good), "| agenda            | allow |", "| agenda            | deny  |", 1) + "\n# changed\n")
	if m := p.request(say("main", "agenda")); m.Payload.Word("STATUS") != "DENIED" || !strings.Contains(m.Payload.Text("TEXT"), "permissions") {
		t.Errorf("after: %s", m.Value())
	}
	write("| agenda | alow |\n")
	if m := p.request(say("main", "agenda")); m.Payload.Word("STATUS") != "DENIED" {
		t.Errorf("a policy that does not load replaced the last good one: %s", m.Value())
	}
}

func TestAPolicyThatDoesNotLoadStopsTheDaemonFromStarting(t *testing.T) {
	s := settings(t)
	path := filepath.Join(s.MemexDir, "system", "permissions.org")
	if err := os.WriteFile(path, []byte("| read-fiel | allow |\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := daemon.Open(context.Background(), s); err == nil || !strings.Contains(err.Error(), "permissions.org:1") || !strings.Contains(err.Error(), "read-file") {
		t.Errorf("got %v", err)
	}
}

func TestTheJournalOfASessionVerifies(t *testing.T) {
	s := settings(t)
	h := open(t, s)
	p := h.connect()
	for _, text := range []string{"help", "agenda", "$ rm -rf /", "note that all is well"} {
		p.request(say("main", text))
	}
	h.close()
	sum, err := journal.Verify(filepath.Join(s.StateDir, "journal"))
	if err != nil {
		t.Fatal(err)
	}
	if sum.Entries < 10 {
		t.Errorf("only %d entries", sum.Entries)
	}
}

func TestShutdownAnswersWhatWasAccepted(t *testing.T) {
	h := open(t, settings(t))
	p := h.connect()
	for i := range 20 {
		m := say(fmt.Sprint(i), "agenda")
		m.Meta = m.Meta.With("ID", sexp.NewInt(int64(i)))
		if err := p.Send(m); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.Receive(); err != nil { // at least one was taken
		t.Fatal(err)
	}
	h.close()
	perceived, ended := map[string]bool{}, map[string]int{}
	for {
		m, err := p.Receive()
		if err != nil {
			break
		}
		turn := m.Meta.Text("TURN")
		switch m.Kind {
		case proto.Status:
			perceived[turn] = true
		case proto.Response:
			ended[turn]++
		}
	}
	for turn := range perceived {
		if ended[turn] != 1 {
			t.Errorf("turn %s got %d terminal replies", turn, ended[turn])
		}
	}
}

func TestAnEditByAnotherProgramIsSeen(t *testing.T) {
	h := open(t, settings(t))
	p := h.connect()
	path := filepath.Join(h.settings.MemexDir, "notes", "lamp.org")
	if err := os.WriteFile(path, []byte("* TODO Mend the green lamp\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if strings.Contains(p.request(say("main", "list my todos")).Payload.Text("TEXT"), "Mend the green lamp") {
			return
		}
	}
	t.Error("a new file was not noticed")
}
