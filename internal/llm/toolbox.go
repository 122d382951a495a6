package llm

import (
	"encoding/json"
	"slices"
	"sync"
)

// A toolbox keeps how the tools of the last request are written. They are the same from
// turn to turn, and half of a request.
type toolbox struct {
	mu    sync.Mutex // guards the rest
	tools []Tool
	text  json.RawMessage
}

// describe writes tools as one provider wants each of them. A provider always wants them
// the same way.
func (b *toolbox) describe(tools []Tool, one func(Tool) any) any {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.text != nil && slices.EqualFunc(tools, b.tools, sameTool) {
		return b.text
	}
	list := make([]any, len(tools))
	for i, t := range tools {
		list[i] = one(t)
	}
	text, err := json.Marshal(list)
	if err != nil {
		return list // whoever sends it meets the error again
	}
	b.text = text
	b.tools = slices.Clone(tools)
	for i := range b.tools {
		b.tools[i].Params = slices.Clone(b.tools[i].Params)
	}
	return b.text
}

func sameTool(a, b Tool) bool {
	return a.Name == b.Name && a.Doc == b.Doc && a.Forbidden == b.Forbidden && slices.Equal(a.Params, b.Params)
}
