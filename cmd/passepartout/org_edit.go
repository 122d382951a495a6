package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"passepartout/internal/durable"
	"passepartout/internal/org"
)

func (a *app) orgEditCommand() *cobra.Command {
	var when string
	var dry, script bool
	cmd := &cobra.Command{
		Use:   "edit FILE TARGET OPERATION [ARG…]",
		Short: "Change one headline of an Org file and nothing else",
		Long: `Change one headline of an Org file; every other byte stays as it is.

TARGET is id:…, line:N or an outline path like Projects/Garden. Operations: ` + strings.Join(org.OpNames(), " ") + `.
With --script operations are read from standard input, one JSON object a line,
{"target":…,"op":…,"args":[…]}, and carried out all or none. --dry-run prints the
patches as JSON and writes nothing.`,
		Example: `  passepartout org edit todo.org 'Projects/Garden' todo DONE
  passepartout org edit todo.org id:4711 schedule '<2026-05-01 Fri>'`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			at := time.Now()
			if when != "" {
				var err error
				if at, err = time.Parse("2006-01-02T15:04", when); err != nil {
					return usageError("--at wants 2006-01-02T15:04, not %q", when)
				}
			}
			ops, err := a.editOps(script, args[1:])
			if err != nil {
				return err
			}
			return a.editFile(args[0], ops, at, dry)
		},
	}
	cmd.Flags().StringVar(&when, "at", "", "the moment to record, as `2006-01-02T15:04` (default now)")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print the patches as JSON, write nothing")
	cmd.Flags().BoolVar(&script, "script", false, "read operations from standard input")
	return cmd
}

func (a *app) editOps(script bool, args []string) ([]org.Op, error) {
	if !script {
		if len(args) < 2 {
			return nil, usageError("give a target and an operation, or --script")
		}
		return []org.Op{{Target: args[0], Name: args[1], Args: args[2:]}}, nil
	}
	var ops []org.Op
	dec := json.NewDecoder(bufio.NewReader(a.in))
	dec.DisallowUnknownFields()
	for {
		var op org.Op
		switch err := dec.Decode(&op); {
		case errors.Is(err, io.EOF):
			return ops, nil
		case err != nil:
			return nil, fmt.Errorf("operation %d: %w", len(ops)+1, err)
		}
		ops = append(ops, op)
	}
}

// editFile carries out the operations in memory and then writes the file once.
func (a *app) editFile(name string, ops []org.Op, at time.Time, dry bool) error {
	f, err := a.readOrg(name)
	if err != nil {
		return err
	}
	first := f.Bytes()
	var archived strings.Builder
	for i, op := range ops {
		patches, text, err := f.Edit(op, at)
		if err != nil {
			return fmt.Errorf("operation %d: %w", i+1, err)
		}
		if dry {
			if err := a.printPatches(patches); err != nil {
				return err
			}
		}
		archived.WriteString(text)
		if f, err = f.Apply(patches); err != nil {
			return fmt.Errorf("operation %d: %w", i+1, err)
		}
	}
	if dry || bytes.Equal(first, f.Bytes()) {
		return nil
	}
	if archived.Len() > 0 {
		// The archive first: if the second write fails the entry is in both
		// places, not in none.
		if err := appendArchive(name+"_archive", archived.String()); err != nil {
			return err
		}
	}
	return replaceFile(name, first, f.Bytes())
}

func (a *app) printPatches(patches []org.Patch) error {
	for _, p := range patches {
		line, err := json.Marshal(map[string]any{"start": p.Start, "end": p.End, "text": string(p.Text)})
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(a.out, string(line)); err != nil {
			return err
		}
	}
	return nil
}

// appendArchive adds subtrees at the end of the archive file, making it if need be.
func appendArchive(name, text string) error {
	old, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f := org.Parse(old)
	patches, err := f.Append(text)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	g, err := f.Apply(patches)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return replaceFile(name, old, g.Bytes())
}

// replaceFile puts text in place of old, at once or not at all: a file that
// changed since it was read is left alone.
func replaceFile(name string, old, text []byte) error {
	mode := os.FileMode(0o600)
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real
		st, err := os.Stat(name)
		if err != nil {
			return err
		}
		mode = st.Mode().Perm()
		now, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if !bytes.Equal(now, old) {
			return fmt.Errorf("%s changed while it was being edited; nothing was written", name)
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := durable.Replace(name, text, mode); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}
