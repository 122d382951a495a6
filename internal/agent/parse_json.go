package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"passepartout/internal/llm"
	"passepartout/internal/sexp"
)

// readObjects reads JSON where a proposal may stand. With a tool's name given, the
// JSON is its arguments. What is JSON and no proposal is nothing.
func readObjects(body, tool string, alone bool) (out []sexp.Value, n int, err error) {
	raw, used, err := firstJSON(body)
	if err != nil && strings.ContainsAny(body, "“”") {
		fixed := strings.NewReplacer("“", `"`, "”", `"`).Replace(body)
		if raw, used, err = firstJSON(fixed); err == nil {
			used = unfixed(body, used)
		}
	}
	if err != nil {
		return nil, 0, err
	}
	rest := strings.TrimSpace(body[used:])
	if alone && rest != "" && strings.IndexAny(rest, "{[(") != 0 {
		rest = "" // a remark after the object, still inside the mark
	}
	v, err := llm.DecodeJSON(raw)
	if err != nil {
		return nil, 0, err
	}
	if tool != "" {
		args, ok := v.(map[string]any)
		if !ok {
			return nil, 0, fmt.Errorf("the arguments of %s are no object", tool)
		}
		d, err := callData(llm.Call{Name: tool, Args: args})
		return []sexp.Value{d}, used, err
	}
	if out, err = proposals(v, 0); err != nil {
		return nil, 0, err
	}
	if alone && rest != "" && len(out) > 0 {
		more, _, err := readObjects(body[used:], "", true)
		if err != nil {
			return nil, 0, err
		}
		return append(out, more...), len(body), nil
	}
	return out, used, nil
}

// firstJSON is the text of the first JSON value, and how far it reaches.
func firstJSON(body string) (string, int, error) {
	d := json.NewDecoder(strings.NewReader(body))
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return "", 0, errors.New("the JSON is not whole")
		}
		return "", 0, fmt.Errorf("no JSON: %w", err)
	}
	return string(raw), int(d.InputOffset()), nil
}

// Names under which models put a tool and its arguments.
var (
	toolKeys = []string{"tool", "name", "tool_name", "action"}
	argKeys  = []string{"args", "arguments", "parameters", "input", "action_input", "params"}
	// sideKeys may stand beside them and mean nothing.
	sideKeys = []string{"id", "type", "index", "call_id", "thought"}
)

// proposals are the proposals a JSON value makes.
func proposals(v any, depth int) ([]sexp.Value, error) {
	if depth > 4 {
		return nil, nil
	}
	switch v := v.(type) {
	case []any:
		var out []sexp.Value
		for _, e := range v {
			more, err := proposals(e, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
		}
		return out, nil
	case map[string]any:
		p, err := proposal(v, depth)
		return p, err
	}
	return nil, nil
}

func proposal(m map[string]any, depth int) ([]sexp.Value, error) {
	low := map[string]any{}
	for k, v := range m {
		low[strings.ToLower(k)] = v
	}
	if calls, ok := low["tool_calls"]; ok && len(low) == 1 {
		return proposals(calls, depth+1)
	}
	for _, wrap := range []string{"function_call", "functioncall", "tool_call"} {
		if call, ok := low[wrap].(map[string]any); ok && len(low) == 1 {
			return proposal(call, depth+1)
		}
	}
	if f, ok := low["function"].(map[string]any); ok {
		for k := range low {
			if k != "function" && !slices.Contains(sideKeys, k) {
				return nil, fmt.Errorf("a call with the unknown key %q", k)
			}
		}
		return proposal(f, depth+1)
	}
	if _, ok := low["payload"]; ok || low["target"] != nil {
		d, err := object(m, 0)
		if err != nil {
			return nil, err
		}
		return []sexp.Value{enveloped(d)}, nil
	}
	c, ok, err := callOf(low)
	if err != nil || !ok {
		return nil, err
	}
	d, err := callData(c)
	return []sexp.Value{d}, err
}

// callOf reads the object as a call, if it has a tool and arguments. A key that
// belongs to neither is an error, because it may be meant to change the call.
func callOf(low map[string]any) (c llm.Call, ok bool, err error) {
	toolKey, argKey := firstOf(low, toolKeys), firstOf(low, argKeys)
	name, isText := low[toolKey].(string)
	if !isText || argKey == "" && low["explanation"] == nil {
		return llm.Call{}, false, nil
	}
	args, err := argsOf(low[argKey])
	if err != nil {
		return llm.Call{}, false, fmt.Errorf("the arguments of %s: %w", name, err)
	}
	for k, v := range low {
		switch {
		case k == toolKey, k == argKey, slices.Contains(sideKeys, k):
		case k == "explanation":
			if _, twice := args["explanation"]; twice {
				return llm.Call{}, false, errors.New("two explanations")
			}
			args["explanation"] = v
		default:
			return llm.Call{}, false, fmt.Errorf("a call with the unknown key %q", k)
		}
	}
	return llm.Call{Name: name, Args: args}, true, nil
}

func firstOf(m map[string]any, keys []string) string {
	for _, k := range keys {
		if m[k] != nil {
			return k
		}
	}
	return ""
}

// argsOf reads arguments, which some models write as a string of JSON.
func argsOf(v any) (map[string]any, error) {
	if s, ok := v.(string); ok {
		inner, err := llm.DecodeJSON(s)
		if err != nil {
			return nil, err
		}
		v = inner
	}
	switch v := v.(type) {
	case nil:
		return map[string]any{}, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[strings.ToLower(k)] = x
		}
		return out, nil
	}
	return nil, fmt.Errorf("found %T, want an object", v)
}
