package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"passepartout/internal/gate"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

func (a *app) chatCommand() *cobra.Command {
	var session string
	c := &cobra.Command{
		Use: "chat [TEXT…]", Short: "Say something and print the answer",
		Example: "  passepartout chat what is due this week?\n  passepartout chat -s trip 'search for ferries'",
		RunE: func(cmd *cobra.Command, args []string) error {
			in, err := a.input(args)
			if err != nil {
				return err
			}
			if in.text == "" {
				return a.prompt(cmd.Context(), session)
			}
			return a.ask(cmd.Context(), session, in)
		},
	}
	c.Flags().StringVarP(&session, "session", "s", "", "the conversation to continue (default main)")
	a.streamFlag(c)
	a.formatFlag(c)
	return c
}

func (a *app) streamFlag(c *cobra.Command) {
	c.Flags().BoolVar(&a.stream, "stream", false, "print the answer as it comes (default in a terminal)")
}

// ask sends one message and prints the answer. The exit code tells how it ended.
func (a *app) ask(ctx context.Context, session string, in input) error {
	c, err := a.connect(ctx, "cli")
	if err != nil {
		return err
	}
	defer c.close()
	m := say(session, in.text)
	if in.attached != "" {
		m.Payload = m.Payload.With("ATTACHED", sexp.String(in.attached))
	}
	return a.answer(c, m)
}

// answer exchanges one message and prints its terminal response.
func (a *app) answer(c *client, m proto.Message) error {
	if a.format != "" && a.format != "text" {
		return a.formatted(c, m)
	}
	var traces []sexp.Plist
	show := a.printer()
	r, err := c.converse(m, func(m proto.Message) {
		if m.Do() == "gate-trace" {
			traces = append(traces, m.Payload)
		}
		show.watch(m)
	})
	if err != nil {
		return err
	}
	if a.json {
		err = a.printJSON(answerJSON(r, traces))
	} else {
		err = show.end(r.Payload.Text("TEXT"))
	}
	if code := codeOf(r); code != exitOK && err == nil {
		return &exitError{code: code}
	}
	return err
}

// answerJSON is the documented form of an answer.
func answerJSON(r proto.Message, traces []sexp.Plist) map[string]any {
	out := map[string]any{
		"status": strings.ToLower(string(r.Payload.Word("STATUS"))), "text": r.Payload.Text("TEXT"),
		"session": r.Meta.Text("SESSION-ID"), "turn": r.Meta.Text("TURN"),
	}
	var actions []map[string]any
	for _, p := range traces {
		actions = append(actions, traceJSON(p.Text("ID"), p.Text("NAME"), p.Sub("TRACE")))
	}
	out["actions"] = actions
	return out
}

func traceJSON(id, name string, trace sexp.Plist) map[string]any {
	var verdicts []map[string]any
	for _, v := range gate.VerdictsOf(trace) {
		verdicts = append(verdicts, map[string]any{
			"gate": v.Gate, "decision": v.Decision.String(), "code": v.Code, "reason": v.Reason, "rule": v.Rule, "round": v.Round,
		})
	}
	return map[string]any{
		"id": id, "action": name, "decision": strings.ToLower(string(trace.Word("DECISION"))),
		"policy": trace.Text("POLICY"), "verdicts": verdicts,
	}
}

func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// printable drops control characters, whoever wrote them: text must not drive the
// terminal it is shown on.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, s)
}

// prompt is the plain conversation: a line in, an answer out. It suits dumb
// terminals and screen readers.
func (a *app) prompt(ctx context.Context, session string) error {
	c, err := a.connect(ctx, "cli")
	if err != nil {
		return err
	}
	defer c.close()
	fmt.Fprintln(a.errw, "Passepartout. Say `help` for what I understand, /help for commands, /quit to leave.")
	lines := bufio.NewScanner(a.in)
	lines.Buffer(nil, maxInput)
	for {
		fmt.Fprint(a.errw, "> ")
		if !lines.Scan() {
			fmt.Fprintln(a.errw)
			return lines.Err()
		}
		text := strings.TrimSpace(lines.Text())
		switch text {
		case "":
			continue
		case "/quit", "/exit", "quit", "exit":
			return nil
		}
		if a.word(ctx, text) {
			continue
		}
		if err := a.turn(c, session, text); err != nil {
			return err
		}
	}
}

// turn is one exchange at the prompt. A refusal is an answer, not an error.
func (a *app) turn(c *client, session, text string) error {
	show := a.printer()
	r, err := c.converse(say(session, text), func(m proto.Message) {
		switch {
		case m.Do() == "gate-trace" && (show.shown == "" || !speaks(m.Payload)):
			fmt.Fprintf(a.errw, "  · %s\n", printable(traceLine(m.Payload)))
		case m.Kind == proto.StreamChunk:
			if !show.live {
				fmt.Fprint(a.errw, printable(m.Payload.Text("OUTPUT"))) // of a running command
			}
			show.watch(m)
		}
	})
	if err != nil {
		return err
	}
	return show.end(r.Payload.Text("TEXT"))
}

// speaks reports whether a ruling is on an answer. Its line would stand in the
// middle of the answer when that is already being shown.
func speaks(trace sexp.Plist) bool { return strings.HasSuffix(trace.Text("NAME"), ".message") }

// traceLine is a ruling on one line: what, how it was decided, how to see why.
func traceLine(p sexp.Plist) string {
	trace := p.Sub("TRACE")
	line := fmt.Sprintf("%s: %s", p.Text("NAME"), strings.ToLower(string(trace.Word("DECISION"))))
	for _, v := range gate.VerdictsOf(trace) {
		if v.Decision != gate.Allow {
			line += fmt.Sprintf(", %s (%s)", v.Gate, v.Code)
		}
	}
	return line + "  why " + p.Text("ID")
}

func (a *app) sendCommand() *cobra.Command {
	var session string
	c := &cobra.Command{
		Use: "send [PLIST]", Short: "Send one message as a property list and print the response",
		Long: `Send one message as a property list, given or piped in. An action sent this way
is judged by the same gates as a model's.`,
		Example: `  passepartout send '(:TYPE :REQUEST :TARGET :TOOL :PAYLOAD (:TOOL "agenda" :ARGS (:SPAN "week") :EXPLANATION "Sent by hand."))'
  passepartout send '(:TYPE :REQUEST :PAYLOAD (:ACTION :HEALTH-CHECK))'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.send(cmd.Context(), session, args)
		},
	}
	c.Flags().StringVarP(&session, "session", "s", "", "the conversation it belongs to (default main)")
	return c
}

func (a *app) send(ctx context.Context, session string, args []string) error {
	src := strings.Join(args, "")
	if src == "" {
		raw, err := io.ReadAll(io.LimitReader(a.in, proto.MaxPayload))
		if err != nil {
			return err
		}
		src = string(raw)
	}
	v, err := sexp.Read([]byte(src), sexp.Limits{})
	if err != nil {
		return &exitError{exitUsage, fmt.Errorf("message: %w", err)}
	}
	m, err := proto.ParseMessage(v)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	if session != "" {
		m.Meta = m.Meta.With("SESSION-ID", sexp.String(session))
	}
	c, err := a.connect(ctx, "cli")
	if err != nil {
		return err
	}
	defer c.close()
	r, err := c.exchange(m, nil)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(a.out, r.Value()); err != nil {
		return err
	}
	if code := codeOf(r); code != exitOK {
		return &exitError{code: code}
	}
	return nil
}
