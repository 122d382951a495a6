package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"passepartout/internal/org"
)

// An exportKind is a form notes can leave in.
type exportKind struct {
	ending  string
	convert func(*org.File) []byte
}

var exportKinds = map[string]exportKind{
	"org":  {".org", (*org.File).Bytes},
	"md":   {".md", func(f *org.File) []byte { return []byte(f.Convert(org.Markdown)) }},
	"html": {".html", func(f *org.File) []byte { return []byte(f.Convert(org.HTML)) }},
	"txt":  {".txt", func(f *org.File) []byte { return []byte(f.Convert(org.PlainText)) }},
}

func (a *app) exportCommand() *cobra.Command {
	var kind, to string
	c := &cobra.Command{
		Use: "export [PATH…]", Short: "Write notes as Markdown, HTML, text, JSON or Org",
		Long: `Write the notes of the memex, or those below the given paths in it, in another form:
to a folder, or as a tar on stdout. JSON goes to stdout as one list of files with their
headings. A file that is there is not replaced. Policy and plans stay where they are.`,
		Example: `  passepartout export --to ~/markdown
  passepartout export --as org > notes.tar
  passepartout export --as json projects/ | jq '.[].headlines[].title'`,
		RunE: func(_ *cobra.Command, args []string) error { return a.export(args, kind, to) },
	}
	c.Flags().StringVar(&kind, "as", "md", "md, html, txt, org or json")
	c.Flags().StringVar(&to, "to", "", "folder to write to (default: a tar on stdout)")
	return c
}

func (a *app) export(paths []string, kind, to string) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	form, known := exportKinds[kind]
	if !known && kind != "json" {
		return usageError("--as: want md, html, txt, org or json, found %q", kind)
	}
	if kind == "json" && to != "" {
		return usageError("--as json goes to stdout: want no --to")
	}
	root, err := os.OpenRoot(cfg.MemexDir)
	if err != nil {
		return fmt.Errorf("memex: %w", err)
	}
	defer root.Close()
	if len(paths) == 0 {
		paths = []string{"."}
	}
	if kind == "json" {
		dumps := []org.Dump{}
		err := notesIn(root, paths, func(name string, f *org.File, _ time.Time) error {
			dumps = append(dumps, f.Dump(name))
			return nil
		})
		return errors.Join(err, a.printJSON(dumps))
	}
	if to == "" {
		return a.exportTar(root, paths, form)
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	out, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer out.Close()
	n := 0
	err = notesIn(root, paths, func(name string, f *org.File, _ time.Time) error {
		n++
		return exportFile(out, strings.TrimSuffix(name, ".org")+form.ending, form.convert(f))
	})
	fmt.Fprintf(a.errw, "%d files written to %s\n", n, to)
	return err
}

func exportFile(out *os.Root, name string, text []byte) error {
	name = filepath.FromSlash(name)
	if err := out.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := out.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

func (a *app) exportTar(root *os.Root, paths []string, form exportKind) error {
	if isTerminal(a.out) {
		return usageError("a tar does not belong on a terminal: want --to FOLDER, or > FILE")
	}
	tw := tar.NewWriter(a.out)
	err := notesIn(root, paths, func(name string, f *org.File, at time.Time) error {
		text := form.convert(f)
		h := &tar.Header{Name: strings.TrimSuffix(name, ".org") + form.ending, Mode: 0o600, Size: int64(len(text)), ModTime: at.Truncate(time.Second), Format: tar.FormatPAX}
		if err := tw.WriteHeader(h); err != nil {
			return err
		}
		_, err := tw.Write(text)
		return err
	})
	return errors.Join(err, tw.Close())
}

// notesIn calls do for every note below paths of the memex, in order.
func notesIn(root *os.Root, paths []string, do func(name string, f *org.File, at time.Time) error) error {
	for _, p := range paths {
		p = path.Clean(filepath.ToSlash(p))
		if !fs.ValidPath(p) {
			return usageError("%s: want a path inside the memex, relative to it", p)
		}
		err := fs.WalkDir(root.FS(), p, func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (name == "system" || strings.HasPrefix(d.Name(), ".") && name != "."):
				return fs.SkipDir
			case !d.Type().IsRegular() || path.Ext(name) != ".org" || strings.HasPrefix(d.Name(), "."):
				return nil
			}
			return noteAt(root, name, do)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func noteAt(root *os.Root, name string, do func(string, *org.File, time.Time) error) error {
	f, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxOrg))
	if err != nil {
		return err
	}
	return do(name, org.Parse(raw), st.ModTime())
}
