package secret

// automaton finds many words in one pass (Aho and Corasick). Words are compared without regard to ASCII case; a caller to whom case
// matters compares again.
type automaton[T any] struct {
	class  [256]uint8 // byte to column, 0 for bytes in no word
	width  int
	next   []int32 // state*width+column
	output []int32 // state to first entry in outs, -1 for none
	outs   []out[T]
}

// out is one word that ends in a state; more follow through its link.
type out[T any] struct {
	value T
	link  int32
}

// newAutomaton builds the automaton for the words that key returns.
func newAutomaton[T any](values []T, key func(T) string) *automaton[T] {
	a := &automaton[T]{width: 1}
	states := 1
	for _, v := range values {
		states += len(key(v))
		for i := range len(key(v)) {
			c := lower(key(v)[i])
			if a.class[c] == 0 {
				a.class[c] = uint8(a.width)
				a.width++
			}
		}
	}
	for c := byte('A'); c <= 'Z'; c++ {
		a.class[c] = a.class[lower(c)]
	}
	a.next = make([]int32, 0, states*a.width)
	a.output = make([]int32, 0, states)
	a.grow()
	for _, v := range values {
		state := int32(0)
		for i := range len(key(v)) {
			at := int(state)*a.width + int(a.class[key(v)[i]])
			if a.next[at] == 0 {
				a.next[at] = int32(len(a.output))
				a.grow()
			}
			state = a.next[at]
		}
		a.outs = append(a.outs, out[T]{value: v, link: a.output[state]})
		a.output[state] = int32(len(a.outs) - 1)
	}
	a.close()
	return a
}

// grow adds a state; room for all of them was made beforehand, zeroed.
func (a *automaton[T]) grow() {
	a.next = a.next[:len(a.next)+a.width]
	a.output = append(a.output, -1)
}

// close replaces missing transitions by those of the longest proper suffix, so that matching never looks back.
func (a *automaton[T]) close() {
	fail := make([]int32, len(a.output))
	queue := make([]int32, 0, len(a.output))
	for _, s := range a.next[:a.width] {
		if s != 0 {
			queue = append(queue, s)
		}
	}
	for len(queue) > 0 {
		state := queue[0]
		queue = queue[1:]
		a.inherit(state, fail[state])
		for col := range a.width {
			at := int(state)*a.width + col
			down := a.next[int(fail[state])*a.width+col]
			if child := a.next[at]; child != 0 {
				fail[child] = down
				queue = append(queue, child)
			} else {
				a.next[at] = down
			}
		}
	}
}

// inherit appends the outputs of a suffix state to a state's own.
func (a *automaton[T]) inherit(state, suffix int32) {
	if a.output[suffix] < 0 {
		return
	}
	if a.output[state] < 0 {
		a.output[state] = a.output[suffix]
		return
	}
	last := a.output[state]
	for a.outs[last].link >= 0 {
		last = a.outs[last].link
	}
	a.outs[last].link = a.output[suffix]
}

// find calls hit for every word that ends anywhere in text, with the offset of its end.
func (a *automaton[T]) find(text string, hit func(value *T, end int)) {
	state := int32(0)
	width := a.width
	next, output := a.next, a.output
	for i := 0; i < len(text); i++ {
		state = next[int(state)*width+int(a.class[text[i]])]
		for o := output[state]; o >= 0; o = a.outs[o].link {
			hit(&a.outs[o].value, i+1)
		}
	}
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
