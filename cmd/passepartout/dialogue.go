package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// A dialogue asks one question after the other, on stderr and from the input.
type dialogue struct {
	in   *bufio.Reader
	out  io.Writer
	file *os.File // the terminal, for what must not be shown; nil: none
}

func (a *app) dialogue() *dialogue {
	d := &dialogue{in: bufio.NewReader(a.in), out: a.errw}
	if f, ok := a.in.(*os.File); ok && isTerminal(f) {
		d.file = f
	}
	return d
}

// line asks for a line; an empty one is the default.
func (d *dialogue) line(question, fallback string) (string, error) {
	if fallback != "" {
		question += " [" + fallback + "]"
	}
	fmt.Fprint(d.out, question+": ")
	text, err := d.in.ReadString('\n')
	if errors.Is(err, io.EOF) && text != "" {
		err = nil
	}
	if err != nil {
		fmt.Fprintln(d.out)
		if errors.Is(err, io.EOF) {
			err = errors.New("the input ended before every question was answered; nothing was changed")
		}
		return "", err
	}
	if text = strings.TrimSpace(text); text == "" {
		text = fallback
	}
	return text, nil
}

// yes asks a question to be answered by yes or no.
func (d *dialogue) yes(question string, fallback bool) (bool, error) {
	hint := "y/N"
	if fallback {
		hint = "Y/n"
	}
	for range 3 {
		text, err := d.line(question+" ("+hint+")", "")
		if err != nil {
			return false, err
		}
		switch strings.ToLower(text) {
		case "":
			return fallback, nil
		case "y", "yes":
			return true, nil
		case "n", "no":
			return false, nil
		}
		fmt.Fprintln(d.out, "Please answer yes or no.")
	}
	return false, errors.New("that was no answer, three times; nothing was changed")
}

// secret asks for something that must not be shown; an empty answer is none.
func (d *dialogue) secret(question string) (string, error) {
	if d.file != nil && d.in.Buffered() == 0 {
		return hidden(d.file, d.out, question+": ")
	}
	return d.line(question, "")
}
