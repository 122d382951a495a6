package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxNesting bounds the depth of JSON a model may write.
const maxNesting = 32

// DecodeJSON reads exactly one JSON value the way arguments must be read: a key
// given twice is an error, because two readers could take different ones; nulls in
// objects are left out; whole numbers are int64; a list of strings is []string.
func DecodeJSON(src string) (any, error) {
	if !json.Valid([]byte(src)) {
		var v any
		err := json.Unmarshal([]byte(src), &v)
		return nil, fmt.Errorf("no JSON: %w", err)
	}
	d := json.NewDecoder(strings.NewReader(src))
	d.UseNumber()
	v, err := readJSON(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return v, nil
}

func readJSON(d *json.Decoder, depth int) (any, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("JSON nested deeper than %d", maxNesting)
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Delim:
		if t == '{' {
			return readObject(d, depth)
		}
		return readArray(d, depth)
	case json.Number:
		if n, err := t.Int64(); err == nil {
			return n, nil
		}
		f, err := t.Float64()
		if err != nil {
			return nil, fmt.Errorf("the number %s: %w", t, err)
		}
		if n := int64(f); float64(n) == f && f > -1<<53 && f < 1<<53 {
			return n, nil
		}
		return f, nil
	default:
		return t, nil // string, bool, nil
	}
}

func readObject(d *json.Decoder, depth int) (any, error) {
	m := map[string]any{}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		key, _ := t.(string)
		fold := strings.ToLower(key)
		if seen[fold] {
			return nil, fmt.Errorf("the key %q is given twice", key)
		}
		seen[fold] = true
		v, err := readJSON(d, depth+1)
		if err != nil {
			return nil, err
		}
		if v != nil {
			m[key] = v
		}
	}
	_, err := d.Token()
	return m, err
}

func readArray(d *json.Decoder, depth int) (any, error) {
	var items []any
	texts := []string{}
	for d.More() {
		v, err := readJSON(d, depth+1)
		if err != nil {
			return nil, err
		}
		items = append(items, v)
		if s, ok := v.(string); ok {
			texts = append(texts, s)
		}
	}
	_, err := d.Token()
	if len(texts) == len(items) {
		return texts, err
	}
	return items, err
}
