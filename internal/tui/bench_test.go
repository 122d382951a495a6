package tui_test

import (
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// A hundred thousand lines: 2,000 answers of 50.
func longScreen(b *testing.B) *screen {
	s := newScreen(b, 140, 50)
	s.Fill(2000, strings.Repeat("A line of an answer with **bold** words and `code` in it.\n", 50))
	return s
}

// One frame of the screen at 100,000 lines while scrolling through them.
func BenchmarkFrameAt100kLines(b *testing.B) {
	s := longScreen(b)
	for b.Loop() {
		s.Update(tea.MouseWheelMsg{Button: tea.MouseWheelUp})
		_ = s.View()
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "frames/s")
}

// The first frame after the width has changed.
func BenchmarkResizeAt100kLines(b *testing.B) {
	s := longScreen(b)
	w := 100
	for b.Loop() {
		w = 100 + (w+1)%40
		s.Update(tea.WindowSizeMsg{Width: w, Height: 50})
		_ = s.View()
	}
}

// A search through 100,000 lines for a word in one of them.
func BenchmarkSearchAt100kLines(b *testing.B) {
	s := longScreen(b)
	s.Fill(1, "a needle\n")
	for b.Loop() {
		s.say("/search needle")
		s.press("esc")
	}
}

// One second of a fast model: 1,000 chunks, with a frame after every 16.
func BenchmarkThousandChunks(b *testing.B) {
	s := newScreen(b, 140, 50)
	n := 0
	for b.Loop() {
		turn := fmt.Sprint("t", n)
		n++
		for i := range 1000 {
			s.Feed(chunk(turn, "token and "))
			if i%40 == 39 {
				s.Feed(chunk(turn, "\n"))
			}
			if i%16 == 15 {
				_ = s.View()
			}
		}
		s.Feed(reply(turn, "DONE", ""))
	}
	b.ReportMetric(float64(b.N)*1000/16/b.Elapsed().Seconds(), "frames/s")
}

// Laying out one answer of 100,000 lines.
func BenchmarkLayout100kLines(b *testing.B) {
	text := strings.Repeat("A line of an answer with **bold** words and `code` in it.\n", 100_000)
	for b.Loop() {
		s := newScreen(b, 140, 50)
		s.Fill(1, text)
		_ = s.View()
	}
}

// A megabyte of text made to be slow, a line or a word at a time.
func BenchmarkHostileMegabyte(b *testing.B) {
	for name, piece := range map[string]string{
		"brackets": "[", "links": "[[x", "stars": "*a ", "cells": "|abcd", "rows": "|a|b|c|\n", "word": "x", "wide": "日", "marks": "e\u0301\u0302\u0303", "fences": "```\n", "lines": "\n",
	} {
		b.Run(name, func(b *testing.B) {
			text := strings.Repeat(piece, 1<<20/len(piece))
			for b.Loop() {
				s := newScreen(b, 140, 50)
				s.Fill(1, text)
				_ = s.View()
			}
		})
	}
}
