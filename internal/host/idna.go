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
		if folded(r) || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) {
			return "", fmt.Errorf("name contains %q, which is not a letter of any script's own", r)
		}
	}
	if ascii {
		return label, nil
	}
	return "xn--" + punycode([]rune(label)), nil
}

// folded reports the blocks whose characters are other characters in disguise.
func folded(r rune) bool {
	switch {
	case r == 0xAA, r == 0xBA, r == 0xB2, r == 0xB3, r == 0xB9, r == 0x212A, r == 0x017F:
		return true
	case r >= 0x2070 && r <= 0x209F, r >= 0x2100 && r <= 0x218F, r >= 0x2460 && r <= 0x24FF:
		return true
	case r >= 0xFB00 && r <= 0xFB06, r >= 0xFF00 && r <= 0xFFEF, r >= 0x1D400 && r <= 0x1D7FF, r >= 0x1F100 && r <= 0x1F1FF, r >= 0x1D2C && r <= 0x1D6A, r >= 0x02B0 && r <= 0x02B8:
		return true
	}
	return false
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
