package agent

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// showableOf is how much may be shown, found out anew from the whole text: what the
// stream works out piece by piece must be the same.
func showableOf(text string) int {
	limit := len(text) - heldBack
	for at := 0; at < limit; {
		line := text[at:]
		if i := strings.IndexByte(line, '\n'); i >= 0 {
			line = line[:i+1]
		}
		if mayPropose(line) {
			limit = at
			break
		}
		at += len(line)
	}
	for i := limit - 1; i > 0; i-- {
		if text[i] == '\n' || text[i] == ' ' && strings.IndexByte(".!?:", text[i-1]) >= 0 {
			return i + 1
		}
	}
	return 0
}

// TestWhatIsShownOfAGrowingAnswerWasJudgedAndIsProse feeds answers in pieces and
// compares what is shown with what the whole text allows at that moment.
func TestWhatIsShownOfAGrowingAnswerWasJudgedAndIsProse(t *testing.T) {
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{"A sentence of prose. ", "word ", "Is it? ", "\n", "\n\n", "(", "{", "```\n", "Action: ", " Action: x\n", "<tag>", "secret", "é", "- item\n", "end.\n(:TARGET :SHELL)\n"}),
		rapid.Map(rapid.IntRange(1, 60), func(n int) string { return strings.Repeat("more words. ", n) }),
	)
	rapid.Check(t, func(rt *rapid.T) {
		judged, shown := "", ""
		s := &stream{
			allow: func(text string) bool { judged = text; return !strings.Contains(text, "secret") },
			show: func(text string) {
				if want := showableOf(judged); len(shown)+len(text) != want {
					rt.Errorf("shown up to %d of %d bytes, want %d", len(shown)+len(text), len(judged), want)
				}
				shown += text
			},
		}
		whole := ""
		for _, p := range rapid.SliceOfN(piece, 1, 60).Draw(rt, "pieces") {
			whole += p
			s.delta(p)
		}
		if got := s.close(); got != shown || !strings.HasPrefix(whole, shown) || strings.Contains(shown, "secret") || len(shown) > max(0, len(whole)-heldBack) {
			rt.Errorf("shown %q of %q", shown, whole)
		}
	})
}

// TestJudgingALongAnswerTakesABoundedPartOfTheTime: with gates so slow that each byte
// costs a microsecond, 100 KB are still shown to their end, and judging takes no more
// than its part.
func TestJudgingALongAnswerTakesABoundedPartOfTheTime(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	begin, updates, shown := now, 0, 0
	var spent time.Duration
	s := &stream{
		now: func() time.Time { return now },
		allow: func(text string) bool {
			cost := time.Duration(len(text)) * time.Microsecond
			now, spent = now.Add(cost), spent+cost
			return true
		},
		show: func(text string) { updates++; shown += len(text) },
	}
	for i := range 20_000 { // 1,000 tokens a second
		now = now.Add(time.Millisecond)
		if i%12 == 0 {
			s.delta("end. ")
		} else {
			s.delta("some ")
		}
	}
	part := float64(spent-judgingAhead) / float64(now.Sub(begin))
	if part > judgingPart+0.02 || updates < 100 || shown < 95_000 {
		t.Errorf("judging took %.0f %% of the time for %d updates and %d bytes", 100*part, updates, shown)
	}
}
