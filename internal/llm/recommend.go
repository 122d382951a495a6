package llm

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"passepartout/internal/pattern"
)

// notForTalk are parts of the names of models that do not converse.
var notForTalk = []string{"embed", "whisper", "tts", "audio", "image", "dall-e", "moderation", "rerank", "guard", "realtime", "transcribe", "ocr", "imagen", "veo", "bge-", "minilm"}

// leastWindow is the least a prompt of ours needs.
const leastWindow = 8192

// Recommend picks from what is offered the model for a purpose, and says why. Small
// work goes to what runs on this machine, which is free and keeps what it reads, and
// else to the least dear; large work to a provider's large model, and where there is
// none to the largest. A model in the cloud whose price nobody knows is not
// recommended.
func Recommend(offers []ModelInfo, p Purpose) (best ModelInfo, why string, ok bool) {
	fit := slices.DeleteFunc(slices.Clone(offers), func(m ModelInfo) bool {
		low := strings.ToLower(m.ID)
		return !m.Priced || m.Window > 0 && m.Window < leastWindow ||
			slices.ContainsFunc(notForTalk, func(s string) bool { return strings.Contains(low, s) })
	})
	if len(fit) == 0 {
		return ModelInfo{}, "", false
	}
	order, why := cheapest, "the least dear"
	if p.Tier == Reasoning {
		order, why = ablest(p.Slot), "large"
	}
	best = slices.MinFunc(fit, func(a, b ModelInfo) int {
		return cmp.Or(order(a, b), cmp.Compare(vendorIndex(a.Provider), vendorIndex(b.Provider)), cmp.Compare(a.ID, b.ID))
	})
	if best.Local {
		why = "on this machine: free, and what it reads stays here"
	}
	return best, why, true
}

// cheapest prefers this machine, there the larger one, and else the lower price.
func cheapest(a, b ModelInfo) int {
	return cmp.Or(first(a.Local, b.Local), cmp.Compare(usualCost(a), usualCost(b)), cmp.Compare(billions(b), billions(a)))
}

// usualCost weighs prices as conversations use them: far more is read than written.
func usualCost(m ModelInfo) float64 { return 4*m.Price.In + m.Price.Out }

// ablest prefers a provider's large model, then what is made for the work, then size.
func ablest(s Slot) func(a, b ModelInfo) int {
	return func(a, b ModelInfo) int {
		return cmp.Or(
			first(isLarge(a), isLarge(b)), first(s == Code && forCode(a), s == Code && forCode(b)),
			cmp.Compare(billions(b), billions(a)), cmp.Compare(usualCost(a), usualCost(b)))
	}
}

func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func isLarge(m ModelInfo) bool {
	v, _ := vendorOf(m.Provider)
	return v.large != "" && v.large != v.small && (m.ID == v.large || strings.HasPrefix(m.ID, v.large+"-20"))
}

func forCode(m ModelInfo) bool { return strings.Contains(strings.ToLower(m.ID), "code") }

var sizeName = pattern.New(`(?i)[:_-](\d+(?:\.\d+)?)b\b`)

// billions reads a model's size from its name, 0 when it does not say.
func billions(m ModelInfo) float64 {
	s := sizeName.FindStringSubmatch(m.ID)
	if s == nil {
		return 0
	}
	n, err := strconv.ParseFloat(s[1], 64)
	if err != nil {
		return 0
	}
	return n
}
