package llm

import (
	"strings"
	"time"

	"passepartout/internal/pattern"
)

// day is the form dates take in proposals.
const day = "2006-01-02"

var (
	datePattern = pattern.New(`(?i)^(.*?)\s+(?:by|until|due|before|on|for|till)\s+(today|tonight|tomorrow|the day after tomorrow|(?:next |this )?(?:mon|tues|wednes|thurs|fri|satur|sun)day|next week|\d{4}-\d{2}-\d{2})\s*$`)
	bareDay     = pattern.New(`(?i)^(.*?)\s+(today|tonight|tomorrow|next week)\s*$`)
)

// when splits "call Ana by friday" into the task and the date it names, "" when
// it names none. A weekday is the next one of that name, not today.
func when(text string, now time.Time) (task, date string) {
	text = unquote(text)
	m := datePattern.FindStringSubmatch(text)
	if m == nil {
		m = bareDay.FindStringSubmatch(text)
	}
	if m == nil || strings.TrimSpace(m[1]) == "" {
		return text, ""
	}
	d, ok := dateOf(strings.ToLower(m[2]), now)
	if !ok {
		return text, ""
	}
	return strings.TrimSpace(m[1]), d.Format(day)
}

func dateOf(word string, now time.Time) (time.Time, bool) {
	switch word {
	case "today", "tonight":
		return now, true
	case "tomorrow":
		return now.AddDate(0, 0, 1), true
	case "the day after tomorrow":
		return now.AddDate(0, 0, 2), true
	case "next week":
		return now.AddDate(0, 0, 7), true
	}
	if d, err := time.ParseInLocation(day, word, now.Location()); err == nil {
		return d, true
	}
	word = strings.TrimPrefix(strings.TrimPrefix(word, "next "), "this ")
	for i := 1; i <= 7; i++ {
		if d := now.AddDate(0, 0, i); strings.ToLower(d.Weekday().String()) == word {
			return d, true
		}
	}
	return time.Time{}, false
}
