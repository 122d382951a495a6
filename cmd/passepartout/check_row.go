package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strings"
	"unicode/utf8"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// A question is a row in the terms of the gates: proposed data, and the session
// it comes out of.
type question struct {
	data  sexp.Value
	said  []string
	taint proto.Taint
	links map[string]string // symbolic links the row says exist
	scan  bool              // only whether a credential is found counts
}

// checkWhy is the explanation of every checked action.
const checkWhy = "checked on the command line"

// question turns a row into one. Exactly one of its forms must be there.
func (c *checker) question(r row) (question, error) {
	forms := 0
	for _, given := range [...]bool{r.Cmd != nil, r.Kind != "" || r.Payload != nil, r.Text != nil, r.Propose != nil} {
		if given {
			forms++
		}
	}
	if forms != 1 {
		return question{}, fmt.Errorf("row has %d of cmd, kind, text and propose: want one", forms)
	}
	switch {
	case r.Cmd != nil:
		return question{data: payload("SHELL", "RUN", sexp.P(sexp.Keyword("CMD"), *r.Cmd))}, nil
	case r.Text != nil:
		return question{data: payload("CLI", "MESSAGE", sexp.P(sexp.Keyword("TEXT"), *r.Text)), scan: true}, nil
	case r.Propose != nil:
		return c.proposed(r)
	case r.Payload == nil:
		return question{}, errors.New("row has a kind and no payload")
	}
	return c.kind(r.Kind, *r.Payload)
}

func (c *checker) kind(kind, text string) (question, error) {
	switch kind {
	case "file_read", "file_write":
		q := question{}
		if from, to, ok := strings.Cut(text, " -> "); ok {
			text = from
			q.links = map[string]string{c.policy.Cwd + "/" + from: to, from: to}
		}
		tool := "READ-FILE"
		if kind == "file_write" {
			tool = "WRITE-FILE"
		}
		q.data = payload("TOOL", tool, sexp.P(sexp.Keyword("FILEPATH"), text))
		return q, nil
	case "net":
		return question{data: payload("TOOL", "WEB-FETCH", sexp.P(sexp.Keyword("URL"), text))}, nil
	case "message":
		return question{data: payload("CLI", "MESSAGE", sexp.P(sexp.Keyword("TEXT"), text))}, nil
	case "tool":
		var p proposal
		if err := unmarshal([]byte(text), &p); err != nil {
			return question{}, fmt.Errorf("tool call: %w", err)
		}
		data, err := c.call(p)
		return question{data: data}, err
	}
	return question{}, fmt.Errorf("row of kind %q: want file_read, file_write, net, message or tool", kind)
}

// proposed is a proposal at the end of a session. What the user wrote is the
// requester's own words; what a tool returned came from outside.
func (c *checker) proposed(r row) (question, error) {
	var q question
	for i, t := range r.Session {
		switch {
		case t.User != nil && t.Output == nil:
			q.said = append(q.said, *t.User)
		case t.User == nil && t.Output != nil:
			q.taint.Untrusted = true
		default:
			return question{}, fmt.Errorf("turn %d of the session: want a user's text or a tool's output", i+1)
		}
	}
	var err error
	q.data, err = c.call(*r.Propose)
	return q, err
}

// call is a tool call as data. A tool is known by its exact name only.
func (c *checker) call(p proposal) (sexp.Value, error) {
	args := sexp.Plist{}
	if len(p.Args) > 0 {
		v, err := fromJSON(p.Args)
		if err != nil {
			return nil, fmt.Errorf("arguments of %q: %w", p.Tool, err)
		}
		l, ok := v.(sexp.List)
		if !ok {
			return nil, fmt.Errorf("arguments of %q: want an object", p.Tool)
		}
		if args, err = sexp.AsPlist(l); err != nil {
			return nil, fmt.Errorf("arguments of %q: %w", p.Tool, err)
		}
	}
	if t, ok := c.foreign[p.Tool]; ok {
		return payload("TOOL", strings.ToUpper(t.name), t.arrange(args)), nil
	}
	if p.Tool != strings.ToLower(p.Tool) {
		return nil, fmt.Errorf("unknown tool %q", p.Tool)
	}
	folded := make([]sexp.Pair, 0, args.Len())
	for _, e := range args.Pairs() {
		folded = append(folded, sexp.Pair{Key: sexp.Keyword(strings.ToUpper(string(e.Key))), Value: e.Value})
	}
	args, err := sexp.NewPlist(folded...)
	if err != nil {
		return nil, fmt.Errorf("arguments of %q: %w", p.Tool, err)
	}
	return sexp.P(
		sexp.Keyword("TARGET"), sexp.Keyword("TOOL"),
		sexp.Keyword("PAYLOAD"), sexp.P(sexp.Keyword("TOOL"), p.Tool, sexp.Keyword("ARGS"), args, sexp.Keyword("EXPLANATION"), checkWhy)).List(), nil
}

// payload is an action as data.
func payload(target, action string, args sexp.Plist) sexp.Value {
	body := args.With("ACTION", sexp.Keyword(action)).With("EXPLANATION", sexp.String(checkWhy))
	return sexp.P(sexp.Keyword("TARGET"), sexp.Keyword(target), sexp.Keyword("PAYLOAD"), body).List()
}

// unmarshal reads one JSON object strictly: no unknown keys, no key twice, no
// text behind it, valid UTF-8.
func unmarshal(data []byte, into any) error {
	if !utf8.Valid(data) {
		return errors.New("row is not valid UTF-8")
	}
	if _, err := fromJSON(data); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

// fromJSON reads one JSON value as data: objects become property lists with the
// keys as written. A key given twice is an error, since two readers would choose
// differently.
func fromJSON(data []byte) (sexp.Value, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	v, err := jsonValue(dec, 0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one JSON value")
	}
	return v, nil
}

func jsonValue(dec *json.Decoder, depth int) (sexp.Value, error) {
	const deepest = 64
	if depth > deepest {
		return nil, fmt.Errorf("JSON nested more than %d deep", deepest)
	}
	tok, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch tok := tok.(type) {
	case json.Delim:
		if tok == '{' {
			return jsonObject(dec, depth)
		}
		return jsonArray(dec, depth)
	case string:
		return sexp.String(tok), nil
	case bool:
		return sexp.Bool(tok), nil
	case json.Number:
		if n, ok := new(big.Int).SetString(tok.String(), 10); ok {
			return sexp.NewBigInt(n), nil
		}
		f, err := tok.Float64()
		return sexp.Float(f), err
	}
	return sexp.Nil, nil
}

func jsonObject(dec *json.Decoder, depth int) (sexp.Value, error) {
	var pairs []sexp.Pair
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		v, err := jsonValue(dec, depth+1)
		if err != nil {
			return nil, err
		}
		name, _ := key.(string)
		pairs = append(pairs, sexp.Pair{Key: sexp.Keyword(name), Value: v})
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	p, err := sexp.NewPlist(pairs...)
	return p.List(), err
}

func jsonArray(dec *json.Decoder, depth int) (sexp.Value, error) {
	var items []sexp.Value
	for dec.More() {
		v, err := jsonValue(dec, depth+1)
		if err != nil {
			return nil, err
		}
		items = append(items, v)
	}
	_, err := dec.Token()
	return sexp.NewList(items...), err
}

// eachLine calls fn with every line, the last one also without its newline.
func eachLine(in io.Reader, fn func([]byte) error) error {
	s := bufio.NewScanner(in)
	s.Buffer(nil, maxRow)
	for s.Scan() {
		if err := fn(s.Bytes()); err != nil {
			return err
		}
	}
	return s.Err()
}
