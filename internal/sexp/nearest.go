package sexp

// Nearest returns the known word that word was probably meant to be, for "did
// you mean": the one that takes the fewest insertions, deletions, changes and
// swaps of neighbours, if that is no more than a third of its length. Case
// does not count, nor does - against _. Of equally near words the first wins.
//
// It lives here because both the settings and the protocol correct names, and
// this is what lies below both.
func Nearest(word string, known []string) (string, bool) {
	const longest = 64 // nobody mistypes more; the work is quadratic
	w := spellingRunes(word)
	if len(w) == 0 || len(w) > longest {
		return "", false
	}
	best, least := "", -1
	for _, k := range known {
		c := spellingRunes(k)
		if len(c) > longest {
			continue
		}
		d := editDistance(w, c)
		if d <= max(1, max(len(w), len(c))/3) && d < max(len(w), len(c)) && (least < 0 || d < least) {
			best, least = k, d
		}
	}
	return best, least >= 0
}

func spellingRunes(s string) []rune {
	out := []rune(fold(s))
	for i, c := range out {
		if c == '_' {
			out[i] = '-'
		}
	}
	return out
}

// editDistance counts edits where no part of the text is edited twice.
func editDistance(a, b []rune) int {
	before, prev, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := range a {
		row[0] = i + 1
		for j := range b {
			change := prev[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, prev[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, prev, row = prev, row, before
	}
	return prev[len(b)]
}
