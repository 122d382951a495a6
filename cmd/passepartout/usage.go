package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// flagError says what is wrong with a flag in the user's words, not the parser's.
func flagError(_ *cobra.Command, err error) error {
	if number := (*strconv.NumError)(nil); errors.As(err, &number) {
		text, _, _ := strings.Cut(err.Error(), ": strconv.")
		err = fmt.Errorf("%s: want a number", text)
	}
	return &exitError{exitUsage, err}
}

// noteUsage makes wrong arguments exit with the usage code, and say how the command is
// called. A group of commands wants one of them, or nothing, which shows its help.
func noteUsage(c *cobra.Command) {
	if c.HasSubCommands() && !c.Runnable() {
		c.DisableFlagsInUseLine = true
		c.Args, c.RunE = cobra.NoArgs, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	check := c.Args
	if check == nil {
		return
	}
	c.Args = func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		switch usage := (*exitError)(nil); {
		case err == nil || errors.As(err, &usage):
			return err
		case cmd.HasSubCommands() && len(args) > 0:
			return unknownCommand(cmd, args[0])
		case strings.HasPrefix(err.Error(), "unknown command"): // cobra's word for any argument
			err = fmt.Errorf("takes no argument, found %q", args[0])
		}
		return usageError("%s: %w\nUsage: %s", below(cmd), err, cmd.UseLine())
	}
}

// below is a command's name without the program's.
func below(c *cobra.Command) string { return strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ") }

// unknownCommand says which commands there are in a group.
func unknownCommand(group *cobra.Command, name string) error {
	var names []string
	for _, c := range group.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	if i := slices.IndexFunc(names, func(n string) bool { return slipped(name, n) }); i >= 0 {
		return usageError("there is no command %q in %s: did you mean %q?", name, group.CommandPath(), names[i])
	}
	if group == group.Root() {
		return usageError("there is no command %q: see %s --help", name, group.Name())
	}
	return usageError("there is no command %q in %s: want %s", name, group.CommandPath(), strings.Join(names, ", "))
}

// slippedName is the command somebody may have meant whose first word is none, "" for
// no such. A sentence in one argument is one.
func slippedName(root *cobra.Command, words []string) string {
	if len(words) == 0 || len(words) > 3 {
		return ""
	}
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() && slipped(words[0], c.Name()) {
			return c.Name()
		}
	}
	return ""
}

// slipped reports whether one letter too many, too few, or another one, or two that
// changed places, make a word of the other.
func slipped(typed, meant string) bool {
	a, b := []rune(typed), []rune(meant)
	if len(a) < 3 || typed == meant {
		return false
	}
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	a, b = a[i:], b[i:]
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return len(a) <= 1 && len(b) <= 1 || len(a) == 2 && len(b) == 2 && a[0] == b[1] && a[1] == b[0]
}
