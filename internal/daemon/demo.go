package daemon

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"passepartout/internal/pattern"
)

//go:embed demo
var demoFiles embed.FS

// Where the table of tools and the rules stand in the memex.
const (
	permissionsFile = "system/permissions.org"
	rulesFile       = "system/rules.org"
)

// demoDay is a date in the demo's files, as days from today: @{+2}.
var demoDay = pattern.New(`@\{([+-]\d+)\}`)

// WriteDemo fills an empty directory with a small memex whose deadlines lie
// around now. It refuses a directory that holds anything.
func WriteDemo(dir string, now time.Time) error {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty: the demo memex needs a place of its own", dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fs.WalkDir(demoFiles, "demo", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel("demo", name)
		if err != nil {
			return err
		}
		if rel == filepath.Join("daily", "today.org") {
			rel = filepath.Join("daily", now.Format(time.DateOnly)+".org")
		}
		to := filepath.Join(dir, rel)
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		text, err := demoFiles.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(to, dated(text, now), 0o644)
	})
}

// dated replaces the demo's relative dates by Org dates.
func dated(text []byte, now time.Time) []byte {
	return demoDay.Regexp().ReplaceAllFunc(text, func(m []byte) []byte {
		n, err := strconv.Atoi(string(demoDay.Regexp().FindSubmatch(m)[1]))
		if err != nil {
			return m
		}
		return []byte(now.AddDate(0, 0, n).Format("2006-01-02 Mon"))
	})
}
