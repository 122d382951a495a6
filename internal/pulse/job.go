package pulse

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"passepartout/internal/sexp"
)

// A Tier says what a job may think with.
type Tier string

// The tiers, by cost. A reflex is never thought about by a model.
const (
	Reflex    Tier = "reflex"
	Cognition Tier = "cognition"
	Reasoning Tier = "reasoning"
)

// What an order asks for.
const (
	DoPrompt = "prompt" // words for the agent
	DoTool   = "tool"   // an action, proposed to the gates
	DoSkill  = "skill"  // a function of a skill
	DoCall   = "call"   // something compiled in
	DoRemind = "remind" // tell whoever is there
)

// A CatchUp says what becomes of due times that passed while nobody looked.
type CatchUp struct {
	Policy string        // "all", "last" or "none"
	Window time.Duration // older ones are missed; 0 for no limit
}

// An Overlap says what becomes of a due time while the job still runs.
type Overlap string

// The kinds of overlap.
const (
	OverlapSkip     Overlap = "skip"
	OverlapQueue    Overlap = "queue"
	OverlapParallel Overlap = "parallel"
)

// A Job is a standing order with a time.
type Job struct {
	ID, Name string
	File     string // where it stands, relative to the memex
	Line     int
	Schedule string // as written: a cron expression or a timestamp

	Do    string // one of the Do constants
	What  string // which tool, function or call
	Text  string // words, or a tool's arguments
	Tier  Tier
	When  Predicate
	Quiet bool // its outcome is recorded and not told

	CatchUp  CatchUp
	Overlap  Overlap
	Jitter   time.Duration
	Timeout  time.Duration
	Retries  int
	Backoff  time.Duration
	Paused   bool   // by its own property
	Digest   string // of the whole order; what a person allows
	NeedsYes bool   // it counts only once a person has allowed it
	timing   string // of the schedule alone
	from     func(done time.Time) func(after time.Time) (time.Time, bool)
}

// Next is the first due time after a moment. A job that counts from when it was
// last done is told when that was.
func (j *Job) Next(after, done time.Time) (time.Time, bool) { return j.from(done)(after) }

// Limits of what a job may ask for.
const (
	defaultTimeout = 10 * time.Minute
	maxTimeout     = 24 * time.Hour
	maxRetries     = 10
	maxJitter      = 24 * time.Hour
	defaultBackoff = time.Minute
	remindRetries  = 3 // of a reminder: told twice is better than not at all
)

// settings reads the properties both kinds of orders have.
func (j *Job) settings(get func(string) string) error {
	j.Timeout, j.Backoff, j.Overlap = defaultTimeout, defaultBackoff, OverlapSkip
	var errs []error
	note := func(key string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf(":%s: %w", key, err))
		}
	}
	span := func(key string, to *time.Duration, most time.Duration) {
		if v := get(key); v != "" {
			d, err := ParseSpan(v)
			if err == nil && d > most {
				err = fmt.Errorf("%s: want at most %s", v, most)
			}
			note(key, err)
			*to = d
		}
	}
	span("TIMEOUT", &j.Timeout, maxTimeout)
	span("JITTER", &j.Jitter, maxJitter)
	span("BACKOFF", &j.Backoff, maxTimeout)
	if v := get("RETRIES"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 || n > maxRetries {
			note("RETRIES", fmt.Errorf("%q: want 0 to %d", v, maxRetries))
		}
		j.Retries = n
	}
	if v := strings.ToLower(get("OVERLAP")); v != "" {
		j.Overlap = Overlap(v)
		if !slices.Contains([]Overlap{OverlapSkip, OverlapQueue, OverlapParallel}, j.Overlap) {
			note("OVERLAP", fmt.Errorf("%q: want skip, queue or parallel", v))
		}
	}
	j.Paused = isYes(get("PAUSED"))
	j.Quiet = isYes(get("QUIET"))
	var err error
	j.When, err = ParsePredicate(get("WHEN"))
	note("WHEN", err)
	note("DO", j.order(get("DO"), get("TIER")))
	if j.Do == DoRemind && get("RETRIES") == "" {
		j.Retries = remindRetries
	}
	return errors.Join(errs...)
}

// order reads what is to be done, and by whom it may be thought about.
func (j *Job) order(do, tier string) error {
	kind, what, _ := strings.Cut(strings.TrimSpace(do), " ")
	j.Do, j.What, j.Tier = strings.ToLower(kind), strings.TrimSpace(what), Tier(strings.Trim(strings.ToLower(tier), ":"))
	if j.Do == "" {
		j.Do = DoPrompt
		if strings.TrimSpace(j.Text) == "" {
			j.Do = DoRemind
		}
	}
	switch j.Do {
	case DoPrompt:
		if j.Tier == "" {
			j.Tier = Cognition
		}
		if j.Tier != Cognition && j.Tier != Reasoning {
			return fmt.Errorf("a prompt in tier %q: want cognition or reasoning", j.Tier)
		}
		if strings.TrimSpace(j.Text) == "" {
			return errors.New("a prompt without words: write them below the heading")
		}
		return nil
	case DoTool, DoSkill, DoCall:
		if j.What == "" {
			return fmt.Errorf("%s: want a name after it", j.Do)
		}
	case DoRemind:
	default:
		return fmt.Errorf("%q: want prompt, tool NAME, skill NAME FUNCTION, call NAME or remind", do)
	}
	if j.Tier != "" && j.Tier != Reflex {
		return fmt.Errorf("%s in tier %q: only a prompt is thought about", j.Do, j.Tier)
	}
	j.Tier = Reflex
	if j.Do == DoTool && strings.TrimSpace(j.Text) != "" {
		if _, err := sexp.ReadPlist([]byte(j.Text), sexp.Limits{}); err != nil {
			return fmt.Errorf("arguments of %s: %w", j.What, err)
		}
	}
	return nil
}

func isYes(v string) bool {
	switch strings.ToLower(v) {
	case "t", "yes", "true":
		return true
	}
	return false
}

// ParseCatchUp reads "all", "last", "none" with or without a window ("last 6h"), or
// a window alone, which means the last one within it.
func ParseCatchUp(text string) (CatchUp, error) {
	words := strings.Fields(strings.ToLower(text))
	c := CatchUp{Policy: "last"}
	if len(words) > 0 && slices.Contains([]string{"all", "last", "none"}, words[0]) {
		c.Policy, words = words[0], words[1:]
	}
	if len(words) == 0 {
		return c, nil
	}
	d, err := ParseSpan(words[0])
	if err != nil || len(words) > 1 {
		return c, fmt.Errorf("catch-up %q: want all, last or none, and how far back", text)
	}
	c.Window = d
	return c, nil
}

// ParseSpan reads a positive length of time: 90s, 10m, 2h, and also 3d or 1w.
func ParseSpan(text string) (time.Duration, error) {
	unit := map[byte]time.Duration{'d': 24 * time.Hour, 'w': 7 * 24 * time.Hour}
	if n := len(text); n > 1 && unit[text[n-1]] > 0 {
		if k, err := strconv.Atoi(text[:n-1]); err == nil && k > 0 && k < 10000 {
			return time.Duration(k) * unit[text[n-1]], nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q: want a length of time such as 90s, 10m, 2h or 3d", text)
	}
	return d, nil
}
