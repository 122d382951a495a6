package llm

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestARequestIsWrittenAsJSONMarshalWritesIt(t *testing.T) {
	var box toolbox
	tools := []Tool{{Name: "read-file", Doc: "Reads <one> file & says \"what\".", Params: []Param{{Name: "filepath", Type: "string", Doc: "é\u2028\x00", Required: true}}}}
	text := "a <b> & \"c\"\n\u2028é\xff"
	for name, body := range map[string]any{
		"nothing":     map[string]any{},
		"no tools":    map[string]any{"model": "m", "stream": true, "messages": []chatMessage{{Role: "user", Content: &text}}},
		"tools":       map[string]any{"model": text, "tools": box.describe(tools, chatTool), "max_tokens": 7, "options": map[string]any{"b": 1, "a": nil}},
		"tools again": map[string]any{"tools": box.describe(tools, chatTool)},
		"a struct":    struct{ Input []string }{[]string{text}},
	} {
		got, err := encode(body)
		want, werr := json.Marshal(body)
		if err != nil || werr != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %s, %v\nwant %s, %v", name, got, err, want, werr)
		}
	}
	if _, err := encode(map[string]any{"f": func() {}}); err == nil {
		t.Error("a value that JSON has no form for was written")
	}
}
