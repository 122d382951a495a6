package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"passepartout/internal/org"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// formats are the forms an answer can be printed in.
var formats = []string{"text", "md", "org", "json", "stream-json"}

// formatFlag lets a command's answer be printed in another form.
func (a *app) formatFlag(c *cobra.Command) {
	c.Flags().Var(&a.format, "format", "how the answer is printed: text, md, org, json, or stream-json, a line for each thing that happens")
	// The flag is registered on the line above.
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// A format is one of formats; "" is text.
type format string

// String is the format's name.
func (f *format) String() string { return string(*f) }

// Type is how help calls it.
func (f *format) Type() string { return "FORMAT" }

// Set takes a format by its name.
func (f *format) Set(name string) error {
	for _, known := range formats {
		if known == name {
			*f = format(name)
			return nil
		}
	}
	return fmt.Errorf("want %s", strings.Join(formats, ", "))
}

// formatted exchanges one message and prints what comes in the chosen form.
func (a *app) formatted(c *client, m proto.Message) error {
	var traces []sexp.Plist
	var failed error
	line := json.NewEncoder(a.out)
	line.SetEscapeHTML(false)
	event := func(v map[string]any) {
		if a.format == "stream-json" {
			failed = errors.Join(failed, line.Encode(v))
		}
	}
	r, err := c.converse(m, func(m proto.Message) {
		reset, _ := m.Payload.Get("RESET")
		switch {
		case m.Do() == "gate-trace":
			traces = append(traces, m.Payload)
			v := traceJSON(m.Payload.Text("ID"), m.Payload.Text("NAME"), m.Payload.Sub("TRACE"))
			v["type"] = "action"
			event(v)
		case m.Kind == proto.StreamChunk && reset != nil && !sexp.IsNil(reset):
			event(map[string]any{"type": "reset"})
		case m.Kind == proto.StreamChunk && m.Payload.Text("TEXT") != "":
			event(map[string]any{"type": "delta", "text": m.Payload.Text("TEXT")})
		case m.Kind == proto.StreamChunk && m.Payload.Text("OUTPUT") != "":
			event(map[string]any{"type": "output", "text": m.Payload.Text("OUTPUT")})
		}
	})
	if err != nil {
		return err
	}
	switch a.format {
	case "stream-json":
		v := answerJSON(r, traces)
		v["type"] = "answer"
		event(v)
	case "json":
		failed = a.printJSON(answerJSON(r, traces))
	case "org":
		_, failed = a.out.Write([]byte(printable(string(org.FromMarkdown([]byte(r.Payload.Text("TEXT")))))))
	default:
		_, failed = fmt.Fprintln(a.out, printable(r.Payload.Text("TEXT")))
	}
	if code := codeOf(r); code != exitOK && failed == nil {
		return &exitError{code: code}
	}
	return failed
}
