package host

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// toASCII lower-cases a name, maps the characters that stand for ASCII ones, and encodes what is left in punycode. Characters that
// browsers fold into ASCII by compatibility rules (circled, mathematical, superscript letters) are refused: no honest name needs them.
func toASCII(name string) (string, error) {
	ascii := true
	for i := 0; i < len(name); i++ {
		if name[i] >= utf8.RuneSelf {
			ascii = false
			break
		}
	}
	if ascii {
		return strings.ToLower(name), nil
	}
	name = strings.Map(func(r rune) rune {
		switch {
		case r == 0x3002, r == 0xFF0E, r == 0xFF61:
			return '.'
		case r >= 0xFF01 && r <= 0xFF5E:
			return r - 0xFF01 + '!'
		}
		return r
	}, name)
	// Before letters are made small: İ and the sign for kelvin become plain ASCII by that here, and something else elsewhere.
	if i := strings.IndexFunc(name, folded); i >= 0 {
		r, _ := utf8.DecodeRuneInString(name[i:])
		return "", fmt.Errorf("name contains %q, which clients replace in different ways", r)
	}
	name = strings.ToLower(name)
	labels := strings.Split(name, ".")
	for i, label := range labels {
		enc, err := encodeLabel(label)
		if err != nil {
			return "", err
		}
		labels[i] = enc
	}
	return strings.Join(labels, "."), nil
}

func encodeLabel(label string) (string, error) {
	ascii := true
	for _, r := range label {
		if r < utf8.RuneSelf {
			continue
		}
		ascii = false
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) {
			return "", fmt.Errorf("name contains %q, which is not a letter of any script's own", r)
		}
	}
	if ascii {
		return label, nil
	}
	return "xn--" + punycode([]rune(label)), nil
}

// folded reports characters that are other characters in disguise: a client that normalises a name talks to another host than one that does not.
func folded(r rune) bool {
	if r < 0xAA {
		return false
	}
	for _, d := range disguises {
		if r >= d[0] && r <= d[1] {
			return true
		}
	}
	return false
}

// disguises are ranges of letters, digits and marks that compatibility rules replace by others.
var disguises = [...][2]rune{
	{0xAA, 0xAA},
	{0xB2, 0xB3},
	{0xB9, 0xBA},
	{0x0130, 0x0130},
	{0x0132, 0x0133},
	{0x013F, 0x0140},
	{0x0149, 0x0149},
	{0x017F, 0x017F},
	{0x01C4, 0x01CC},
	{0x01F1, 0x01F3},
	{0x02B0, 0x02B8},
	{0x02E0, 0x02E4},
	{0x0300, 0x036F},
	{0x0675, 0x0678},
	{0x1D2C, 0x1D6A},
	{0x1D78, 0x1D78},
	{0x1D9B, 0x1DBF},
	{0x1E9A, 0x1E9B},
	{0x2070, 0x209F},
	{0x2100, 0x218F},
	{0x2460, 0x24FF},
	{0x2C7C, 0x2C7D},
	{0x3131, 0x318E},
	{0xA69C, 0xA69D},
	{0xA770, 0xA770},
	{0xA7F2, 0xA7F9},
	{0xAB5C, 0xAB69},
	{0xF900, 0xFAFF},
	{0xFB00, 0xFDFF},
	{0xFE70, 0xFEFF},
	{0xFF00, 0xFFEF},
	{0x10780, 0x107BA},
	{0x1D400, 0x1D7FF},
	{0x1E030, 0x1E06D},
	{0x1EE00, 0x1EEFF},
	{0x1F100, 0x1F1FF},
	{0x2F800, 0x2FA1F},
}

// punycode encodes a label as in RFC 3492, section 6.3.
func punycode(label []rune) string {
	const base, tmin, tmax, skew, damp = 36, 1, 26, 38, 700
	var out []byte
	for _, r := range label {
		if r < utf8.RuneSelf {
			out = append(out, byte(r))
		}
	}
	basic := len(out)
	handled := basic
	if basic > 0 {
		out = append(out, '-')
	}
	adapt := func(delta, points int, first bool) int {
		if first {
			delta /= damp
		} else {
			delta /= 2
		}
		delta += delta / points
		k := 0
		for delta > (base-tmin)*tmax/2 {
			delta /= base - tmin
			k += base
		}
		return k + (base-tmin+1)*delta/(delta+skew)
	}
	n, delta, bias := rune(utf8.RuneSelf), 0, 72
	for handled < len(label) {
		next := rune(unicode.MaxRune)
		for _, r := range label {
			if r >= n && r < next {
				next = r
			}
		}
		delta += int(next-n) * (handled + 1)
		n = next
		for _, r := range label {
			if r < n {
				delta++
			}
			if r != n {
				continue
			}
			q := delta
			for k := base; ; k += base {
				t := min(max(k-bias, tmin), tmax)
				if q < t {
					break
				}
				out = append(out, punyDigit(t+(q-t)%(base-t)))
				q = (q - t) / (base - t)
			}
			out = append(out, punyDigit(q))
			bias = adapt(delta, handled+1, handled == basic)
			delta = 0
			handled++
		}
		delta++
		n++
	}
	return string(out)
}

func punyDigit(d int) byte {
	if d < 26 {
		return byte('a' + d)
	}
	return byte('0' + d - 26)
}
