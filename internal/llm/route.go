package llm

import (
	"fmt"
	"strings"
)

// A Tier is how much thought a request deserves. The zero Tier is any.
type Tier uint8

// The tiers.
const (
	TierAny   Tier = iota
	Reflexive      // rules, no model
	Cognition      // a small model
	Reasoning      // a large model
)

// A Slot is what kind of work a request is. The zero Slot is any.
type Slot uint8

// The slots.
const (
	SlotAny Slot = iota
	Chat
	Code
	Plan
	Background
)

var (
	tierNames = [...]string{"any", "reflex", "cognition", "reasoning"}
	slotNames = [...]string{"any", "chat", "code", "plan", "background"}
)

func (t Tier) String() string {
	if int(t) >= len(tierNames) {
		return tierNames[0]
	}
	return tierNames[t]
}

func (s Slot) String() string {
	if int(s) >= len(slotNames) {
		return slotNames[0]
	}
	return slotNames[s]
}

// A Route sends requests of a tier and a slot to a model.
type Route struct {
	Tier  Tier
	Slot  Slot
	Model string // "provider/model"
}

func (r Route) String() string { return fmt.Sprintf("%s/%s=%s", r.Tier, r.Slot, r.Model) }

// ParseRoute reads a route: chat=ollama/llama3.2, reasoning/code=openai/gpt-5, or
// any=groq/llama-3.1-8b-instant.
func ParseRoute(s string) (Route, error) {
	which, model, ok := strings.Cut(s, "=")
	if p, m := modelOf(model); !ok || p == "" || m == "" {
		return Route{}, fmt.Errorf("route %q: want tier/slot=provider/model", s)
	}
	r := Route{Model: model}
	for _, word := range strings.Split(which, "/") {
		if !r.name(strings.ToLower(strings.TrimSpace(word))) {
			return Route{}, fmt.Errorf("route %q: want a tier (reflex, cognition, reasoning), a slot (chat, code, plan, background) or any, found %q", s, word)
		}
	}
	return r, nil
}

func (r *Route) name(word string) bool {
	for i, n := range tierNames {
		if i > 0 && n == word && r.Tier == TierAny {
			r.Tier = Tier(i)
			return true
		}
	}
	for i, n := range slotNames {
		if i > 0 && n == word && r.Slot == SlotAny {
			r.Slot = Slot(i)
			return true
		}
	}
	return word == tierNames[0]
}

// fits reports whether the route is for that purpose, and how exactly.
func (r Route) fits(p Purpose) (exact int, ok bool) {
	if r.Tier != TierAny && r.Tier != p.Tier || r.Slot != SlotAny && r.Slot != p.Slot {
		return 0, false
	}
	if r.Slot != SlotAny {
		exact += 2
	}
	if r.Tier != TierAny {
		exact++
	}
	return exact, true
}

// routed is the model the routes name for a purpose, "" for none.
func routed(rs []Route, p Purpose) string {
	best, model := -1, ""
	for _, r := range rs {
		if n, ok := r.fits(p); ok && n > best {
			best, model = n, r.Model
		}
	}
	return model
}
