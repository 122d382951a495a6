package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"passepartout/internal/gate"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// checkCommand judges an action without carrying it out.
func (a *app) checkCommand() *cobra.Command {
	var o struct {
		world, tool string
		args        []string
		jsonl       bool
	}
	cmd := &cobra.Command{
		Use:   "check [COMMAND]",
		Short: "Judge a shell command or a tool call without running it",
		Long: `Judge a shell command, or with --tool a tool call, and show what each gate said.

Nothing is run and no daemon is needed. Without --world the action is judged as
the daemon would judge it; with it, for the machine the file describes. The exit
status is 0 for allow, 3 for deny and 4 for ask.`,
		Example: `  passepartout check 'rm -rf build'
  passepartout check --tool web-fetch --arg url=https://example.org/`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := a.checker(o.world)
			if err != nil {
				return err
			}
			if o.jsonl {
				return c.serve(a.in, a.out)
			}
			row, err := rowOf(args, o.tool, o.args)
			if err != nil {
				return err
			}
			return a.show(c.judge(row))
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.world, "world", "", "judge for the machine this `FILE` describes")
	f.StringVar(&o.tool, "tool", "", "judge a call of this tool")
	f.StringArrayVar(&o.args, "arg", nil, "an argument of the tool, as `NAME=VALUE`")
	f.BoolVar(&o.jsonl, "jsonl", false, "read one row a line from standard input, answer one row a line")
	return cmd
}

// rowOf makes the row that the command line means.
func rowOf(words []string, tool string, args []string) (row, error) {
	if tool == "" {
		cmd := strings.Join(words, " ")
		if strings.TrimSpace(cmd) == "" || len(args) > 0 {
			return row{}, usageError("want a command, or --tool with its --arg")
		}
		return row{Cmd: &cmd}, nil
	}
	if len(words) > 0 {
		return row{}, usageError("want a command or --tool, not both")
	}
	call := map[string]string{}
	for _, a := range args {
		k, v, ok := strings.Cut(a, "=")
		if !ok || k == "" {
			return row{}, usageError("argument %q: want NAME=VALUE", a)
		}
		if _, dup := call[k]; dup {
			return row{}, usageError("argument %q is given twice", k)
		}
		call[k] = v
	}
	raw, err := json.Marshal(call)
	if err != nil {
		return row{}, err
	}
	return row{Propose: &proposal{Tool: tool, Args: raw}}, nil
}

// show prints an answer and ends with the exit code that says the same.
func (a *app) show(ans answer) error {
	var err error
	if a.json {
		ans.ID = json.RawMessage("null")
		err = a.printJSON(ans)
	} else {
		_, err = io.WriteString(a.out, ans.text())
	}
	switch {
	case err != nil:
		return err
	case ans.Decision == gate.Allow.String():
		return nil
	case ans.Decision == gate.Ask.String():
		return &exitError{code: exitPending}
	}
	return &exitError{code: exitDenied}
}

// text is an answer for a person: the ruling, then what every gate said.
func (a answer) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n", a.Decision, printable(a.what))
	tw := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	for _, v := range a.verdicts {
		says := v.Reason
		if v.Rule != "" {
			says = strings.TrimSpace(says + " [" + v.Rule + "]")
		}
		fmt.Fprintf(tw, "  %s\t%s\t%s\t%s\n", v.Gate, v.Decision, strings.TrimSpace(v.Code+" "+v.Also), printable(says))
	}
	if len(a.verdicts) == 0 {
		fmt.Fprintf(tw, "  %s\t%s\t%s\t%s\n", a.Gate, a.Decision, strings.Join(a.Codes, " "), printable(a.Reason))
	}
	_ = tw.Flush() // a strings.Builder does not fail
	return b.String()
}

// A row is one question of the protocol.
type row struct {
	ID      json.RawMessage `json:"id"`
	Cmd     *string         `json:"cmd"`
	Kind    string          `json:"kind"`
	Payload *string         `json:"payload"`
	Text    *string         `json:"text"`
	Session []turn          `json:"session"`
	Propose *proposal       `json:"propose"`
}

// A turn is something said in a session: by the user, or by a tool.
type turn struct {
	User   *string `json:"user"`
	Tool   string  `json:"tool"`
	Output *string `json:"output"`
}

type proposal struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
}

// An answer is one line of the protocol, and what a person is shown.
type answer struct {
	ID       json.RawMessage `json:"id"`
	Decision string          `json:"decision"`
	Gate     string          `json:"gate"`
	Codes    []string        `json:"codes"`
	Reason   string          `json:"reason"`
	Effects  []string        `json:"effects"`
	NS       int64           `json:"ns"`

	what     string
	verdicts []gate.Verdict
}

// refused is the answer to a row that is no action at all.
func refused(code string, err error) answer {
	return answer{Decision: gate.Deny.String(), Gate: "decoder", Codes: []string{code}, Reason: err.Error(), Effects: []string{}}
}

// maxRow is the longest row read.
const maxRow = 16 << 20

// serve answers rows until the input ends. A row it cannot read is denied and
// the run goes on.
func (c *checker) serve(in io.Reader, out io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return eachLine(in, func(line []byte) error {
		if len(bytes.TrimSpace(line)) == 0 {
			return nil
		}
		var r row
		var a answer
		if err := unmarshal(line, &r); err != nil {
			a = refused("input.invalid", err)
		} else {
			a = c.judge(r)
		}
		if a.ID = r.ID; len(a.ID) == 0 {
			a.ID = json.RawMessage("null")
		}
		return enc.Encode(a)
	})
}

// judge answers one row.
func (c *checker) judge(r row) answer {
	q, err := c.question(r)
	if err != nil {
		return refused("input.invalid", err)
	}
	a, err := c.vocabulary.Decode(q.data, c.cause())
	if err != nil {
		return refused("proposal.invalid", err)
	}
	f := c.facts(q)
	start := time.Now()
	ruling := c.chain.Decide(a, f)
	ns := time.Since(start).Nanoseconds()
	out := answerOf(ruling)
	out.NS = ns
	if q.scan {
		out = scanned(out, ruling)
	}
	return out
}

// scanned reduces an answer to the question whether a credential was found.
func scanned(out answer, r gate.Ruling) answer {
	out.Decision, out.Codes, out.Gate, out.Reason = gate.Allow.String(), []string{}, "", ""
	for _, v := range r.Verdicts() {
		switch v.Code {
		case "exposure.credential", "vault.literal", "vault-value.found":
			out.Decision = gate.Deny.String()
			out.Codes = append(out.Codes, v.Code)
			if out.Gate == "" {
				out.Gate, out.Reason = v.Gate, v.Reason
			}
		}
	}
	return out
}

func answerOf(r gate.Ruling) answer {
	out := answer{
		Decision: r.Decision().String(), Codes: []string{}, Effects: r.Effects(),
		what: brief(r.Action()), verdicts: r.Verdicts(),
	}
	for i, v := range r.Objections() {
		if i == 0 {
			out.Gate, out.Reason = v.Gate, v.Reason
		}
		out.Codes = append(append(out.Codes, v.Code), strings.Fields(v.Also)...)
	}
	return out
}

// brief is an action on one line.
func brief(a proto.Action) string {
	const most = 100
	s := a.Name() + " " + a.Args().String()
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// cause is the one all checked actions have: the owner at this terminal.
func (c *checker) cause() proto.Cause {
	return proto.Cause{Signal: "check", Session: "check", Origin: proto.Origin{Role: proto.RoleOwner, Channel: "cli"}, Proposer: "check"}
}

func (c *checker) facts(q question) gate.Facts {
	cause := c.cause()
	return gate.Facts{
		Now:  time.Now(),
		Said: q.said,
		Signal: proto.Signal{
			ID: cause.Signal, Session: cause.Session, Origin: cause.Origin, Kind: proto.Event, Taint: q.taint,
			Body: sexp.P(sexp.Keyword("SENSOR"), sexp.Keyword("USER-INPUT")),
		},
		World: c.worldFor(q.links),
	}
}
