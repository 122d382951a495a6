package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"passepartout/internal/org"
)

// orgCommand groups what works on Org files alone, without daemon or memex.
func (a *app) orgCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "org",
		Short: "Read, check, edit and convert Org files",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(a.orgDumpCommand(), a.orgLintCommand(), a.orgConvertCommand(), a.orgEditCommand())
	return cmd
}

// readOrg parses a file; "-" is standard input. Its #+SETUPFILE lines are read
// from disk, relative to it.
func (a *app) readOrg(name string) (*org.File, error) {
	if name == "-" {
		src, err := io.ReadAll(a.in)
		if err != nil {
			return nil, fmt.Errorf("reading standard input: %w", err)
		}
		return org.Parse(src), nil
	}
	src, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return org.ParseWith(src, org.Options{Setup: setupReader(filepath.Dir(name))}), nil
}

// setupReader reads setup files named relative to dir. A home directory is not
// expanded: what a file means must not depend on who reads it.
func setupReader(dir string) func(string) ([]byte, bool) {
	return func(name string) ([]byte, bool) {
		if strings.HasPrefix(name, "~") {
			return nil, false
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		src, err := os.ReadFile(name)
		return src, err == nil
	}
}

func (a *app) orgDumpCommand() *cobra.Command {
	var lines, roundtrip bool
	cmd := &cobra.Command{
		Use:   "dump [--json FILE… | --jsonl < PATHS]",
		Short: "Print what Org files hold, field for field as Emacs reads them",
		Long: `Print what Org files hold, field for field as Emacs's org-element reads them.

Files named are printed as one JSON array. With --jsonl paths are read from standard
input, one a line, and one object a line is printed. --roundtrip prints instead
whether parsing and printing gives back the same bytes.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			if lines == (len(args) > 0) {
				return usageError("give files to dump, or --jsonl with paths on standard input")
			}
			d := dumper{out: bufio.NewWriterSize(a.out, 1<<16), roundtrip: roundtrip}
			err := d.all(lines, a.in, args)
			if ferr := d.out.Flush(); err == nil {
				err = ferr
			}
			if err == nil && d.failed > 0 {
				err = fmt.Errorf("%d of %d files could not be read", d.failed, d.total)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&lines, "jsonl", false, "read paths from standard input, print one JSON object a line")
	cmd.Flags().BoolVar(&roundtrip, "roundtrip", false, "print only whether the file survives parsing and printing")
	return cmd
}

// dumper writes one JSON value per file. A file that cannot be read is reported
// in its place and the run goes on.
type dumper struct {
	out           *bufio.Writer
	roundtrip     bool
	total, failed int
}

func (d *dumper) all(lines bool, paths io.Reader, names []string) error {
	if !lines {
		return d.array(names)
	}
	sc := bufio.NewScanner(paths)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		if name := sc.Text(); name != "" {
			if err := d.file(name); err != nil {
				return err
			}
		}
	}
	return sc.Err()
}

func (d *dumper) array(names []string) error {
	sep := "["
	for _, name := range names {
		if _, err := d.out.WriteString(sep); err != nil {
			return err
		}
		if err := d.file(name); err != nil {
			return err
		}
		sep = ","
	}
	_, err := d.out.WriteString("]\n")
	return err
}

// file writes the value for one file, followed by a line end.
func (d *dumper) file(name string) error {
	d.total++
	enc := json.NewEncoder(d.out)
	enc.SetEscapeHTML(false)
	src, err := os.ReadFile(name)
	if err != nil {
		d.failed++
		return enc.Encode(map[string]any{"file": name, "ok": false, "error": err.Error()})
	}
	f := org.ParseWith(bytes.Clone(src), org.Options{Setup: setupReader(filepath.Dir(name))})
	if d.roundtrip {
		return enc.Encode(map[string]any{"file": name, "identical": bytes.Equal(f.Bytes(), src) && covers(f)})
	}
	return enc.Encode(f.Dump(name))
}

// covers checks that preamble and sections, put one after another, are the whole
// file: the parse accounts for every byte, once.
func covers(f *org.File) bool {
	at := f.Preamble().End
	for h := range f.Headlines() {
		if s := h.SectionSpan(); s.Start != at || h.BodySpan().End != s.End {
			return false
		}
		at = h.SectionSpan().End
	}
	return at == len(f.Bytes())
}

func (a *app) orgLintCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "lint FILE…",
		Short: "Report what in Org files probably does not mean what it says",
		Long: `Report mistakes as FILE:LINE: code: message: properties in the wrong place, blocks
that nothing closes, dates of no calendar, ids used twice. Exits 1 if there are any.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			found, err := a.lint(args)
			if err != nil {
				return err
			}
			if a.json {
				if err := a.printJSON(found); err != nil {
					return err
				}
			}
			if len(found) > 0 {
				return fmt.Errorf("%d findings", len(found))
			}
			return nil
		},
	}
}

// lintFinding is one line of the lint command's output.
type lintFinding struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (a *app) lint(names []string) ([]lintFinding, error) {
	found := []lintFinding{}
	for _, name := range names {
		f, err := a.readOrg(name)
		if err != nil {
			return nil, err
		}
		lines := f.Lines()
		for _, x := range f.Lint() {
			l := lintFinding{name, lines.At(x.Pos), x.Code, x.Message}
			found = append(found, l)
			if a.json {
				continue
			}
			if _, err := fmt.Fprintf(a.out, "%s:%d: %s: %s\n", l.File, l.Line, l.Code, l.Message); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

func (a *app) orgConvertCommand() *cobra.Command {
	var to, target string
	cmd := &cobra.Command{
		Use:   "convert --to html|markdown|text|org FILE",
		Short: "Convert Org to HTML, Markdown or text, or Markdown to Org",
		Long: `Convert an Org file (or with --headline one subtree) to safe HTML, Markdown or plain
text on standard output. With --to org the file is Markdown. "-" reads standard input.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := a.readOrg(args[0])
			if err != nil {
				return err
			}
			if to == "org" {
				_, err = a.out.Write(org.FromMarkdown(f.Bytes()))
				return err
			}
			format, ok := map[string]org.Format{"html": org.HTML, "markdown": org.Markdown, "md": org.Markdown, "text": org.PlainText}[to]
			if !ok {
				return usageError("--to wants html, markdown, text or org, not %q", to)
			}
			text := ""
			if target == "" {
				text = f.Convert(format)
			} else {
				h, err := f.Resolve(target)
				if err != nil {
					return err
				}
				text = h.Convert(format)
			}
			_, err = io.WriteString(a.out, text)
			return err
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "what to write: html, markdown, text or org")
	cmd.Flags().StringVar(&target, "headline", "", "convert only the subtree at `TARGET` (id:…, line:N or a path)")
	return cmd
}
