package gate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"passepartout/internal/org"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// ParseRules reads rules out of an Org file. A heading with a :DECISION: property
// is a rule; everything else is prose for people:
//
//   - Let the tests run
//     :PROPERTIES:
//     :DECISION: allow
//     :VERB:     shell.run
//     :WHEN-CMD: go test ...
//     :LIFTS:    permissions.ask
//     :END:
//     Why this is fine.
//   - match :: =go test ./...=
//   - no-match :: =go test -exec ./payload ./...=
//
// Every key, verb, argument and code must be known, and every example must hold;
// errors name file and line.
func ParseRules(file string, src []byte, v *proto.Vocabulary) ([]Rule, error) {
	f := org.Parse(src)
	lines := f.Lines()
	var out []Rule
	for h := range f.Headlines() {
		if _, ok := h.Property("DECISION"); !ok || commentedOut(h) {
			continue
		}
		r := Rule{Name: h.Title(), Where: fmt.Sprintf("%s:%d", file, lines.At(h.Span().Start))}
		if err := r.read(h, v); err != nil {
			return nil, fmt.Errorf("%s: rule %q: %w", r.Where, r.Name, err)
		}
		if err := r.check(); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(out, func(o Rule) bool { return o.Name == r.Name }) {
			return nil, fmt.Errorf("%s: rule %q is given twice", r.Where, r.Name)
		}
		out = append(out, r)
	}
	return out, nil
}

// commentedOut reports a heading that is a comment, or stands below one.
func commentedOut(h org.Headline) bool {
	for ok := true; ok; h, ok = h.Parent() {
		if h.Commented() {
			return true
		}
	}
	return false
}

// whenPrefix begins the property that holds the condition for an argument.
const whenPrefix = "WHEN-"

func (r *Rule) read(h org.Headline, v *proto.Vocabulary) error {
	var verb string
	for _, p := range h.Properties() {
		value := strings.TrimSpace(p.Value)
		switch key := strings.ToUpper(p.Key); {
		case key == "DECISION":
			d, ok := ParseDecision(strings.ToLower(value))
			if !ok {
				return fmt.Errorf("decision %q: want allow, ask or deny", value)
			}
			r.Decision = d
		case key == "VERB":
			verb = strings.ToLower(value)
		case key == "ROLE":
			if r.Role = proto.ParseRole(strings.ToLower(value)); r.Role == proto.RoleNone {
				return fmt.Errorf("role %q: want owner, guest, job or peer", value)
			}
		case key == "LIFTS":
			r.Lifts = strings.Fields(value)
		case key == "SHADOW":
			if value != "t" && value != "nil" {
				return fmt.Errorf("shadow %q: want t for a rule on trial, or nil", value)
			}
			r.Shadow = value == "t"
		case strings.HasPrefix(key, whenPrefix):
			r.When = append(r.When, Condition{sexp.Keyword(key[len(whenPrefix):]), value})
		case key == "EXPIRES":
			at, err := expiry(value)
			if err != nil {
				return err
			}
			r.Expires = at
		case key == "AUTHOR" || key == "LEARNT" || key == "HITS":
		case key == "ID" || key == "CREATED" || key == "ORIGIN" || key == "CUSTOM_ID":
		default:
			return unknownProperty(p.Key)
		}
	}
	r.Verb = verb
	if err := r.fitsVerb(v); err != nil {
		return err
	}
	r.examples(h)
	return nil
}

// expiry reads the day, or the moment, from which a rule no longer counts.
func expiry(text string) (time.Time, error) {
	text = strings.Trim(text, "[]<>")
	for _, layout := range [...]string{time.DateOnly, "2006-01-02 Mon", time.RFC3339} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("expires %q: want a day like 2026-11-30", text)
}

func unknownProperty(key string) error {
	known := []string{"DECISION", "VERB", "ROLE", "LIFTS", "SHADOW", "EXPIRES", "AUTHOR", "LEARNT", "HITS", "ID"}
	if near, ok := sexp.Nearest(strings.ToUpper(key), known); ok {
		return fmt.Errorf("unknown property %q: did you mean %q?", key, near)
	}
	return fmt.Errorf("unknown property %q: want %s or %sARGUMENT", key, strings.Join(known, ", "), whenPrefix)
}

// fitsVerb sees that the verb exists and takes the arguments the rule is about.
func (r *Rule) fitsVerb(v *proto.Vocabulary) error {
	spec, ok := findVerb(v, r.Verb)
	if !ok {
		if near, ok := sexp.Nearest(r.Verb, permissionNames(v)); ok {
			return fmt.Errorf("unknown verb %q: did you mean %q?", r.Verb, near)
		}
		return fmt.Errorf("unknown verb %q", r.Verb)
	}
	for _, c := range r.When {
		if _, ok := spec.Param(c.Arg); !ok {
			return fmt.Errorf("%s takes no argument %s", spec, c.Arg)
		}
		if c.Pattern == "" {
			return fmt.Errorf("the pattern for %s is empty", c.Arg)
		}
	}
	return nil
}

// examples reads the description list under the heading.
func (r *Rule) examples(h org.Headline) {
	f := h.File()
	for _, item := range h.Contents().Items {
		term := strings.ToLower(strings.TrimSpace(f.Text(item.Tag)))
		if term != "match" && term != "no-match" {
			continue
		}
		_, text, _ := strings.Cut(f.Text(item.Span), "::")
		text = strings.TrimSpace(text)
		if n := len(text); n > 1 && (text[0] == '=' || text[0] == '~') && text[n-1] == text[0] {
			text = text[1 : n-1]
		}
		if term == "match" {
			r.Match = append(r.Match, text)
		} else {
			r.NoMatch = append(r.NoMatch, text)
		}
	}
}
