package main_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"
)

// An acpEditor is the client's side of the protocol, as an editor implements it.
type acpEditor struct {
	choose func(sdk.RequestPermissionRequest) sdk.RequestPermissionOutcome

	mu      sync.Mutex // guards what follows
	text    strings.Builder
	users   []string
	calls   []sdk.SessionUpdateToolCall
	updates []sdk.SessionToolCallUpdate
	asked   []sdk.RequestPermissionRequest
	heard   chan struct{} // a note that something arrived
}

var _ sdk.Client = (*acpEditor)(nil)

func (e *acpEditor) RequestPermission(_ context.Context, r sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error) {
	if err := r.Validate(); err != nil {
		return sdk.RequestPermissionResponse{}, err
	}
	e.mu.Lock()
	e.asked = append(e.asked, r)
	e.mu.Unlock()
	return sdk.RequestPermissionResponse{Outcome: e.choose(r)}, nil
}

func (e *acpEditor) SessionUpdate(_ context.Context, n sdk.SessionNotification) error {
	if err := n.Validate(); err != nil {
		return err
	}
	e.mu.Lock()
	switch u := n.Update; {
	case u.AgentMessageChunk != nil:
		e.text.WriteString(u.AgentMessageChunk.Content.Text.Text)
	case u.UserMessageChunk != nil:
		e.users = append(e.users, u.UserMessageChunk.Content.Text.Text)
	case u.ToolCall != nil:
		e.calls = append(e.calls, *u.ToolCall)
	case u.ToolCallUpdate != nil:
		e.updates = append(e.updates, *u.ToolCallUpdate)
	}
	e.mu.Unlock()
	select {
	case e.heard <- struct{}{}:
	default:
	}
	return nil
}

// said is all the agent has said since it was last asked.
func (e *acpEditor) said() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.text.String()
	e.text.Reset()
	return s
}

func (*acpEditor) ReadTextFile(context.Context, sdk.ReadTextFileRequest) (sdk.ReadTextFileResponse, error) {
	return sdk.ReadTextFileResponse{}, sdk.NewMethodNotFound("fs/read_text_file")
}

func (*acpEditor) WriteTextFile(context.Context, sdk.WriteTextFileRequest) (sdk.WriteTextFileResponse, error) {
	return sdk.WriteTextFileResponse{}, sdk.NewMethodNotFound("fs/write_text_file")
}

func (*acpEditor) CreateTerminal(context.Context, sdk.CreateTerminalRequest) (sdk.CreateTerminalResponse, error) {
	return sdk.CreateTerminalResponse{}, sdk.NewMethodNotFound("terminal/create")
}

func (*acpEditor) KillTerminal(context.Context, sdk.KillTerminalRequest) (sdk.KillTerminalResponse, error) {
	return sdk.KillTerminalResponse{}, sdk.NewMethodNotFound("terminal/kill")
}

func (*acpEditor) TerminalOutput(context.Context, sdk.TerminalOutputRequest) (sdk.TerminalOutputResponse, error) {
	return sdk.TerminalOutputResponse{}, sdk.NewMethodNotFound("terminal/output")
}

func (*acpEditor) ReleaseTerminal(context.Context, sdk.ReleaseTerminalRequest) (sdk.ReleaseTerminalResponse, error) {
	return sdk.ReleaseTerminalResponse{}, sdk.NewMethodNotFound("terminal/release")
}

func (*acpEditor) WaitForTerminalExit(context.Context, sdk.WaitForTerminalExitRequest) (sdk.WaitForTerminalExitResponse, error) {
	return sdk.WaitForTerminalExitResponse{}, sdk.NewMethodNotFound("terminal/wait_for_exit")
}

// startACP starts the real program. It has ended, well, when the test has.
func startACP(t *testing.T, env []string) (io.WriteCloser, io.Reader) {
	t.Helper()
	c := exec.Command(binary, "acp")
	c.Env, c.Stderr = env, os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	watchdog := time.AfterFunc(2*time.Minute, func() { _ = c.Process.Kill() }) // ends a test that would wait for ever
	t.Cleanup(func() {
		in.Close()
		_, _ = io.Copy(io.Discard, out) // until it has ended
		watchdog.Stop()
		if err := c.Wait(); err != nil {
			t.Errorf("passepartout acp: %v", err)
		}
	})
	return in, out
}

// acpConnect starts the real program and introduces the editor to it.
func acpConnect(t *testing.T, ctx context.Context, env []string, e *acpEditor) *sdk.ClientSideConnection {
	t.Helper()
	e.heard = make(chan struct{}, 1)
	in, out := startACP(t, env)
	conn := sdk.NewClientSideConnection(e, in, out)
	r, err := conn.Initialize(ctx, sdk.InitializeRequest{ProtocolVersion: sdk.ProtocolVersionNumber})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Validate(); err != nil || r.ProtocolVersion != sdk.ProtocolVersionNumber || !r.AgentCapabilities.LoadSession || r.AgentCapabilities.SessionCapabilities.List == nil {
		t.Fatalf("initialize: %v, %+v", err, r)
	}
	return conn
}

func choosing(id string) func(sdk.RequestPermissionRequest) sdk.RequestPermissionOutcome {
	return func(sdk.RequestPermissionRequest) sdk.RequestPermissionOutcome {
		return sdk.NewRequestPermissionOutcomeSelected(sdk.PermissionOptionId(id))
	}
}

func TestAnEditorDrivesAWholeSessionOverACP(t *testing.T) {
	env, memex := editorHome(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e := &acpEditor{choose: choosing("allow-once")}
	conn := acpConnect(t, ctx, env, e)
	s, err := conn.NewSession(ctx, sdk.NewSessionRequest{Cwd: memex, McpServers: []sdk.McpServer{}})
	if err != nil {
		t.Fatal(err)
	}
	say := func(text string) sdk.StopReason {
		t.Helper()
		r, err := conn.Prompt(ctx, sdk.PromptRequest{SessionId: s.SessionId, Prompt: []sdk.ContentBlock{sdk.TextBlock(text)}})
		if err != nil {
			t.Fatal(err)
		}
		return r.StopReason
	}
	inbox := func() string {
		raw, _ := os.ReadFile(filepath.Join(memex, "inbox", "inbox.org")) // none yet: nothing captured
		return string(raw)
	}

	if end, got := say("echo Grüße 日本"), e.said(); end != sdk.StopReasonEndTurn || got != "I heard: Grüße 日本" {
		t.Errorf("ends %q, says %q", end, got)
	}
	if end, got := say("keep the lamp in mind"), e.said(); end != sdk.StopReasonEndTurn || !strings.HasSuffix(got, "That is done.") {
		t.Errorf("after a yes: ends %q, says %q", end, got)
	}
	if len(e.asked) != 1 || len(e.asked[0].Options) != 4 || !strings.Contains(*e.asked[0].ToolCall.Title, "tool.capture the lamp") {
		t.Fatalf("asked %+v", e.asked)
	}
	if !strings.Contains(inbox(), "the lamp") || len(e.calls) == 0 || e.calls[0].Status != sdk.ToolCallStatusPending {
		t.Errorf("inbox %q, calls %+v", inbox(), e.calls)
	}
	e.choose = choosing("reject")
	if end := say("keep the chair in mind"); end != sdk.StopReasonEndTurn || strings.Contains(inbox(), "the chair") {
		t.Errorf("after a no: ends %q, inbox %q", end, inbox())
	}
	e.said()
	e.choose = func(sdk.RequestPermissionRequest) sdk.RequestPermissionOutcome {
		return sdk.NewRequestPermissionOutcomeCancelled()
	}
	if end := say("keep the table in mind"); end != sdk.StopReasonCancelled {
		t.Errorf("a question the editor drops ends with %q", end)
	}
	pending := exec.Command(binary, "approvals")
	pending.Env = env
	if out, err := pending.Output(); err != nil || !strings.Contains(string(out), "tool.capture") || strings.Contains(inbox(), "the table") {
		t.Errorf("the plan must go on waiting: %q, %v, inbox %q", out, err, inbox())
	}

	list, err := conn.ListSessions(ctx, sdk.ListSessionsRequest{})
	if err != nil || list.Validate() != nil || len(list.Sessions) != 1 || list.Sessions[0].SessionId != s.SessionId || *list.Sessions[0].Title != "echo Grüße 日本" {
		t.Errorf("sessions %+v, %v", list, err)
	}
	other := &acpEditor{choose: choosing("reject")}
	again := acpConnect(t, ctx, env, other)
	if _, err := again.LoadSession(ctx, sdk.LoadSessionRequest{SessionId: s.SessionId, Cwd: memex, McpServers: []sdk.McpServer{}}); err != nil {
		t.Fatal(err)
	}
	if got := other.said(); len(other.users) != 4 || other.users[0] != "echo Grüße 日本" || !strings.Contains(got, "I heard: Grüße 日本") {
		t.Errorf("loaded %q and %q", other.users, got)
	}
}

func TestCancellingInAnEditorStopsTheTurn(t *testing.T) {
	env, memex := editorHome(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e := &acpEditor{choose: choosing("reject")}
	conn := acpConnect(t, ctx, env, e)
	s, err := conn.NewSession(ctx, sdk.NewSessionRequest{Cwd: memex, McpServers: []sdk.McpServer{}})
	if err != nil {
		t.Fatal(err)
	}
	end := make(chan sdk.StopReason, 1)
	go func() {
		r, err := conn.Prompt(ctx, sdk.PromptRequest{SessionId: s.SessionId, Prompt: []sdk.ContentBlock{sdk.TextBlock("tell me a long story")}})
		if err != nil {
			t.Error(err)
		}
		end <- r.StopReason
	}()
	<-e.heard // the first part is shown while the model still speaks
	if err := conn.Cancel(ctx, sdk.CancelNotification{SessionId: s.SessionId}); err != nil {
		t.Fatal(err)
	}
	if got := <-end; got != sdk.StopReasonCancelled {
		t.Errorf("ends with %q", got)
	}
	if got := e.said(); strings.Contains(got, "second part") {
		t.Errorf("it went on: %q", got)
	}
}

// TestTheSDKsOwnExampleClientGetsThroughASession runs the client that comes with the
// SDK, unchanged: it says hello, is asked for a permission and chooses the first.
func TestTheSDKsOwnExampleClientGetsThroughASession(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	client := filepath.Join(t.TempDir(), "client")
	if out, err := exec.Command("go", "build", "-o", client, "github.com/coder/acp-go-sdk/example/client").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	env, memex := editorHome(t)
	c := exec.Command(client, binary, "acp")
	c.Env, c.Stdin = env, strings.NewReader("1\n")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"Connected to agent (protocol v1)", "Permission requested: tool.capture the bell", "That is done.", "Agent completed"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("it does not print %q:\n%s", want, out)
		}
	}
	raw, err := os.ReadFile(filepath.Join(memex, "inbox", "inbox.org"))
	if err != nil || !strings.Contains(string(raw), "the bell") {
		t.Errorf("inbox %q, %v", raw, err)
	}
}
