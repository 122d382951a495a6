package org

import (
	"slices"
	"strings"
)

// HeaderArgs are the header arguments in force for a source block of the file,
// as Babel merges them: #+PROPERTY lines, then properties of the enclosing
// headlines outermost first, each general before language specific, then
// #+HEADER lines, then the block's own. Later values replace earlier ones; keys
// keep the place where they first came.
func (f *File) HeaderArgs(b Block) []Property {
	var args []Property
	names := []string{"header-args", "header-args:" + b.Language}
	h, inside := f.At(b.Span.Start)
	for _, name := range names {
		v, _ := f.Property(name)
		if inside {
			v, _ = h.Inherited(name)
		}
		args = mergeArgs(args, v)
	}
	for line := range strings.Lines(f.Text(b.Caption)) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if ok && (strings.EqualFold(key, "#+HEADER") || strings.EqualFold(key, "#+HEADERS")) {
			args = mergeArgs(args, value)
		}
	}
	return mergeArgs(args, b.Params)
}

func mergeArgs(args []Property, params string) []Property {
	for _, p := range splitArgs(params) {
		p.Value = unquote(p.Value)
		i := slices.IndexFunc(args, func(a Property) bool { return a.Key == p.Key })
		if i < 0 {
			args = append(args, p)
		} else {
			args[i].Value = p.Value
		}
	}
	return args
}

// headerArg is the value of one header argument in a parameter string; a key
// without a value is as good as none.
func headerArg(params, key string) (string, bool) {
	for _, p := range splitArgs(params) {
		if p.Key == key {
			return unquote(p.Value), p.Value != ""
		}
	}
	return "", false
}

// unquote takes off the double quotes around a value.
func unquote(v string) string {
	if len(v) >= 2 && v[0] == '"' && v[len(v)-1] == '"' {
		return v[1 : len(v)-1]
	}
	return v
}

// splitArgs splits ":key value :key value", values as written. A colon starts a key after white
// space and before none; it does not inside a double-quoted string or brackets.
func splitArgs(s string) []Property {
	var starts []int
	quoted, depth := false, 0
	for i := range len(s) {
		switch s[i] {
		case '"':
			quoted = !quoted || i > 0 && s[i-1] == '\\'
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth = max(0, depth-1)
		case ':':
			if !quoted && depth == 0 && (i == 0 || blank(s[i-1])) && i+1 < len(s) && !blank(s[i+1]) {
				starts = append(starts, i)
			}
		}
	}
	var out []Property
	for n, i := range starts {
		end := len(s)
		if n+1 < len(starts) {
			end = starts[n+1]
		}
		k := i + 1
		for k < end && !blank(s[k]) {
			k++
		}
		out = append(out, Property{s[i+1 : k], strings.TrimSpace(s[k:end])})
	}
	return out
}
