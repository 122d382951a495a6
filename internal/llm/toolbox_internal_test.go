package llm

import (
	"encoding/json"
	"reflect"
	"sync"
	"testing"
)

func TestToolsAreWrittenAsTheyAreNow(t *testing.T) {
	one := func(doc string, required bool) []Tool {
		return []Tool{{Name: "read-file", Doc: doc, Params: []Param{{Name: "filepath", Type: "string", Required: required}}}}
	}
	var b toolbox
	want := func(tools []Tool) string {
		fresh := toolbox{}
		text, err := json.Marshal(fresh.describe(tools, chatTool))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	tools := one("Reads a file.", true)
	for step, change := range []func(){
		func() {},
		func() {}, // the same again
		func() { tools[0].Params[0].Required = false }, // in place: what is remembered must be a copy
		func() { tools[0].Doc = "Reads one file." },
		func() { tools = append(tools, Tool{Name: "another"}) },
		func() { tools = tools[:1] },
		func() { tools = one("Reads a file.", true) },
	} {
		change()
		got, err := json.Marshal(b.describe(tools, chatTool))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want(tools) {
			t.Errorf("step %d: written as %s, want %s", step, got, want(tools))
		}
	}
	if !reflect.DeepEqual(b.describe(tools, chatTool), b.describe(one("Reads a file.", true), chatTool)) {
		t.Error("equal tools are written anew")
	}
}

func TestAToolboxIsSharedByTurns(t *testing.T) {
	var b toolbox
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			tools := []Tool{{Name: string(rune('a' + i%2))}}
			text, err := json.Marshal(b.describe(tools, chatTool))
			var got []struct{ Function struct{ Name string } }
			if err == nil {
				err = json.Unmarshal(text, &got)
			}
			if err != nil || len(got) != 1 || got[0].Function.Name != tools[0].Name {
				t.Errorf("%s: %v", text, err)
			}
		})
	}
	wait.Wait()
}
