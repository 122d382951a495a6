package tui

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	tea "charm.land/bubbletea/v2"

	"passepartout/internal/durable"
)

// maxHistory is how many entries are remembered.
const maxHistory = 1000

// A history is what was typed, oldest first. One entry is one line in its file,
// with line ends and backslashes escaped. What begins with a blank is not
// written, as in shells: people use that for what should leave no trace.
type history struct {
	entries []string
	at      int    // the entry shown; len(entries) is the draft
	draft   string // what was being typed before going back
}

func (h *history) add(text string) {
	if n := len(h.entries); n == 0 || h.entries[n-1] != text {
		h.entries = append(h.entries, text)
	}
	if len(h.entries) > maxHistory {
		h.entries = h.entries[len(h.entries)-maxHistory:]
	}
	h.at = len(h.entries)
}

// move goes n entries back (negative) or forth. It reports whether there was one.
func (h *history) move(n int, now string) (string, bool) {
	to := h.at + n
	if to < 0 || to > len(h.entries) {
		return "", false
	}
	if h.at == len(h.entries) {
		h.draft = now
	}
	if h.at = to; to == len(h.entries) {
		return h.draft, true
	}
	return h.entries[to], true
}

var (
	escaper   = strings.NewReplacer("\\", `\\`, "\n", `\n`)
	unescaper = strings.NewReplacer(`\\`, "\\", `\n`, "\n")
)

// readHistory reads the newest entries of a history file; a missing one is empty.
func readHistory(file string) ([]string, error) {
	raw, err := readIfAny(file)
	if err != nil || len(raw) == 0 {
		return nil, err
	}
	lines := strings.Split(strings.TrimRight(string(raw), "\n"), "\n")
	if len(lines) > maxHistory {
		lines = lines[len(lines)-maxHistory:]
		if len(raw) > 64*maxHistory && len(raw) > 1<<20 {
			err = writePrivate(file, []byte(strings.Join(lines, "\n")+"\n"))
		}
	}
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = clean(unescaper.Replace(l))
	}
	return out, err
}

// A savedMsg reports how writing to disk went.
type savedMsg struct{ err error }

// appendHistory writes one entry.
func appendHistory(file, text string) tea.Cmd {
	if file == "" || strings.HasPrefix(text, " ") {
		return nil
	}
	return func() tea.Msg {
		f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return savedMsg{err}
		}
		_, err = f.WriteString(escaper.Replace(text) + "\n")
		return savedMsg{errors.Join(err, f.Close())}
	}
}

func readIfAny(file string) ([]byte, error) {
	if file == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return raw, err
}

// writePrivate replaces a file in one step, readable by its owner only.
func writePrivate(file string, data []byte) error {
	return durable.Replace(file, data, 0o600)
}

// writeDraft keeps unsent input, or removes what was kept before.
func writeDraft(file, text string) error {
	if file == "" {
		return nil
	}
	if strings.TrimSpace(text) == "" {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return writePrivate(file, []byte(text))
}

// restore reads the history and the draft of the last time.
func (m *Model) restore() error {
	entries, err := readHistory(m.opt.History)
	m.hist = history{entries: entries, at: len(entries)}
	raw, derr := readIfAny(m.opt.Draft)
	if text := clean(string(bytes.TrimSpace(raw))); text != "" {
		m.in.SetValue(text)
		m.note("This was typed and not sent the last time; it is in the input again.")
	}
	return errors.Join(err, derr)
}

// An editedMsg is a text that comes back from an editor.
type editedMsg struct {
	text string
	err  error
}

// An editMsg is a file that is ready for the editor.
type editMsg struct{ file string }

// prepareEdit puts the input into a file only its owner can read.
func prepareEdit(dir, text string) tea.Cmd {
	return func() tea.Msg {
		f, err := os.CreateTemp(dir, "input-*.org")
		if err != nil {
			return editedMsg{text, fmt.Errorf("a file for the editor: %w", err)}
		}
		_, err = f.WriteString(text)
		if err = errors.Join(err, f.Close()); err != nil {
			return editedMsg{text, errors.Join(err, os.Remove(f.Name()))}
		}
		return editMsg{f.Name()}
	}
}

// collectEdit takes the text back.
func collectEdit(file string, err error) tea.Msg {
	raw, rerr := os.ReadFile(file)
	return editedMsg{clean(strings.TrimRight(string(raw), "\n")), errors.Join(err, rerr, os.Remove(file))}
}
