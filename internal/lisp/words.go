package lisp

import (
	"math/big"
	"strings"
)

var (
	smallNumbers = strings.Fields("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen")
	tens         = strings.Fields("_ ten twenty thirty forty fifty sixty seventy eighty ninety")
	periods      = strings.Fields("_ thousand million billion trillion quadrillion quintillion sextillion septillion octillion nonillion decillion undecillion duodecillion tredecillion quattuordecillion quindecillion sexdecillion septendecillion octodecillion novemdecillion vigintillion")
	ordinals     = map[string]string{
		"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth", "twelve": "twelfth",
	}
)

// underThousand spells 1 to 999.
func underThousand(n int) string {
	var parts []string
	if n >= 100 {
		parts = append(parts, smallNumbers[n/100]+" hundred")
		n %= 100
	}
	switch {
	case n >= 20 && n%10 != 0:
		parts = append(parts, tens[n/10]+"-"+smallNumbers[n%10])
	case n >= 20:
		parts = append(parts, tens[n/10])
	case n > 0:
		parts = append(parts, smallNumbers[n])
	}
	return strings.Join(parts, " ")
}

// cardinal spells a number in English.
func cardinal(n *big.Int) string {
	if n.Sign() == 0 {
		return "zero"
	}
	rest := new(big.Int).Abs(n)
	thousand := big.NewInt(1000)
	var parts []string
	for i := 0; rest.Sign() > 0; i++ {
		m := new(big.Int)
		rest.QuoRem(rest, thousand, m)
		if m.Sign() == 0 {
			continue
		}
		w := underThousand(int(m.Int64()))
		if i > 0 {
			w += " " + periods[i]
		}
		parts = append([]string{w}, parts...)
	}
	s := strings.Join(parts, " ")
	if n.Sign() < 0 {
		s = "negative " + s
	}
	return s
}

func ordinal(n *big.Int) string {
	s := cardinal(n)
	i := strings.LastIndexAny(s, " -") + 1
	last := s[i:]
	switch {
	case ordinals[last] != "":
		last = ordinals[last]
	case strings.HasSuffix(last, "y"):
		last = last[:len(last)-1] + "ieth"
	default:
		last += "th"
	}
	return s[:i] + last
}

// roman spells 1 to 3999; old writes IIII for IV.
func roman(n int, old bool) string {
	type numeral struct {
		n int
		s string
	}
	table := []numeral{{1000, "M"}, {900, "CM"}, {500, "D"}, {400, "CD"}, {100, "C"}, {90, "XC"}, {50, "L"}, {40, "XL"}, {10, "X"}, {9, "IX"}, {5, "V"}, {4, "IV"}, {1, "I"}}
	var b strings.Builder
	for _, r := range table {
		if old && len(r.s) == 2 {
			continue
		}
		for ; n >= r.n; n -= r.n {
			b.WriteString(r.s)
		}
	}
	return b.String()
}
