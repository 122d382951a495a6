package main

import (
	"fmt"
	"math"
	"strings"
)

// points are the values of a series at the curve's sizes; NaN where there is none.
func (c curve) points(s series, f figures) (out []float64, any bool) {
	for _, size := range c.sizes {
		v, ok := f[strings.Replace(s.figure, "*", size, 1)]
		if !ok {
			v = math.NaN()
		}
		any = any || ok
		out = append(out, v*s.times)
	}
	return out, any
}

// table is the curve in figures, with the picture above.
func (c curve) table(f figures) string {
	var rows strings.Builder
	for _, s := range c.series {
		vs, any := c.points(s, f)
		if !any {
			continue
		}
		fmt.Fprintf(&rows, "| %s |", s.name)
		for _, v := range vs {
			if math.IsNaN(v) {
				rows.WriteString(" – |")
			} else {
				fmt.Fprintf(&rows, " %s |", human(v, c.unit))
			}
		}
		rows.WriteString("\n")
	}
	if rows.Len() == 0 {
		return ""
	}
	head := "| " + c.along
	for _, size := range c.sizes {
		head += " | " + size
	}
	return fmt.Sprintf("\n### %s\n\n![%s](img/%s.svg)\n\n%s |\n|---|%s\n%s", c.title, c.title, c.file, head, strings.Repeat("---:|", len(c.sizes)), rows.String())
}

// The picture's measures.
const (
	width, height           = 640, 260
	left, right, top, lower = 60, 190, 28, 36
)

var colours = []string{"#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#a463f2", "#9c6b4e"}

// svg draws the curve with both axes in powers of ten. It is the same for the same
// figures, and readable on light and dark pages.
func (c curve) svg(f figures) string {
	low, high := math.Inf(1), math.Inf(-1)
	for _, s := range c.series {
		vs, _ := c.points(s, f)
		for _, v := range vs {
			if v > 0 {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	if math.IsInf(low, 0) {
		low, high = 1, 10
	}
	from, to := math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
	if from == to {
		to++
	}
	x := func(i int) float64 {
		return left + float64(width-left-right)*float64(i)/float64(max(1, len(c.sizes)-1))
	}
	y := func(v float64) float64 {
		return float64(height-lower) - float64(height-top-lower)*(math.Log10(v)-from)/(to-from)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11" fill="#808080">`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="%d" y="16" font-size="13">%s</text>`+"\n", left, c.title)
	for e := from; e <= to; e++ {
		v := math.Pow(10, e)
		fmt.Fprintf(&b, `<path d="M%d %.1fH%d" stroke="#808080" stroke-opacity=".25"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", left, y(v), width-right, left-6, y(v)+4, human(v, c.unit))
	}
	for i, size := range c.sizes {
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", x(i), height-lower+16, size)
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", (left+width-right)/2, height-4, c.along)
	for n, s := range c.series {
		b.WriteString(c.line(s, colours[n%len(colours)], n, f, x, y))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// line is one series with its name in the legend.
func (c curve) line(s series, colour string, n int, f figures, x func(int) float64, y func(float64) float64) string {
	vs, any := c.points(s, f)
	if !any {
		return ""
	}
	var b strings.Builder
	var path []string
	for i, v := range vs {
		if !(v > 0) {
			continue
		}
		path = append(path, fmt.Sprintf("%.1f %.1f", x(i), y(v)))
		fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`, x(i), y(v), colour)
	}
	row := top + 10 + n*18
	return fmt.Sprintf(`<path d="M%s" fill="none" stroke="%s" stroke-width="1.5"/>%s<path d="M%d %dh16" stroke="%s" stroke-width="3"/><text x="%d" y="%d">%s</text>`+"\n",
		strings.Join(path, "L"), colour, b.String(), width-right+14, row, colour, width-right+36, row+4, s.name)
}
