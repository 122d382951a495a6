package shell

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Bytes with a meaning inside an expanded word. The input may not hold them, so they cannot be forged.
const (
	hole     = 0x00 // any text at all
	anything = "\x00"
	star     = 0x01 // an active glob *
	quest    = 0x02 // an active glob ?
	bracket  = 0x03 // an active glob [
	holeName = "__UNKNOWN__"
)

// maxFields bounds what one word may expand to; more is a hole.
const maxFields = 512

// maxWords bounds the words of one command.
const maxWords = 1024

func known(w string) bool { return strings.IndexByte(w, hole) < 0 }

func globbed(w string) bool { return strings.ContainsAny(w, "\x01\x02\x03") }

// plain shows a word as a person would write it.
func plain(w string) string {
	if !strings.ContainsAny(w, "\x00\x01\x02\x03") {
		return w
	}
	return strings.NewReplacer("\x00", "…", "\x01", "*", "\x02", "?", "\x03", "[").Replace(w)
}

// unglob returns the word with active glob characters taken literally, as most programs do with an argument that matched nothing.
func unglob(w string) string {
	if !globbed(w) {
		return w
	}
	return strings.NewReplacer("\x01", "*", "\x02", "?", "\x03", "[").Replace(w)
}

// builder collects the fields of one word.
type builder struct {
	out    []string
	cur    strings.Builder
	open   bool // cur is a field even if empty
	quoted bool
	ifs    string // what unquoted expansions are cut at
}

func (b *builder) text(s string) {
	b.open = true
	if b.full(len(s)) {
		return
	}
	b.cur.WriteString(s)
}

// full reports that a field would become longer than any real one, and makes it a hole: values that double must not fill the memory.
func (b *builder) full(n int) bool {
	if b.cur.Len()+n <= MaxBytes {
		return false
	}
	b.cur.Reset()
	b.cur.WriteByte(hole)
	return true
}

// split adds the value of an unquoted expansion, which the shell cuts at the characters of IFS.
func (b *builder) split(s string) {
	if b.full(len(s)) {
		b.open = true
		return
	}
	for i := 0; i < len(s); i++ {
		if strings.IndexByte(b.ifs, s[i]) >= 0 {
			b.flush()
			continue
		}
		switch s[i] {
		case '*':
			b.cur.WriteByte(star)
			b.open = true
		case '?':
			b.cur.WriteByte(quest)
			b.open = true
		default:
			b.cur.WriteByte(s[i])
			b.open = true
		}
	}
}

func (b *builder) flush() {
	if b.open {
		b.out = append(b.out, b.cur.String())
		b.cur.Reset()
		b.open = false
	}
}

// fields expands the words of a command.
func (j *judge) fields(words []*syntax.Word) []string {
	out := make([]string, 0, len(words)+2)
	for _, w := range words {
		if len(out) > maxWords {
			j.limit("shell.too-many", "a command has more than 1024 words")
			return out[:1]
		}
		if lit := w.Lit(); lit != "" && plainLit(lit) {
			out = append(out, lit)
			continue
		}
		for _, v := range j.braces(w) {
			b := builder{ifs: j.separators()}
			j.parts(&b, v.Parts, true)
			b.flush()
			out = append(out, b.out...)
		}
	}
	return out
}

// separators is the value of IFS; an unknown one is taken as the usual.
func (j *judge) separators() string {
	if v, ok := j.vars["IFS"]; ok && known(v) {
		return v
	}
	return " \t\n"
}

// plainLit reports that a literal expands to itself.
func plainLit(s string) bool {
	return !strings.ContainsAny(s, "\\*?[{~")
}

// single expands a word that the shell does not split: an assignment value, a redirection target, a here-document.
func (j *judge) single(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	b := builder{quoted: true}
	j.parts(&b, w.Parts, true)
	b.flush()
	return strings.Join(b.out, " ")
}

// braces returns the words a word's brace expression stands for.
func (j *judge) braces(w *syntax.Word) []*syntax.Word {
	has := false
	for _, p := range w.Parts {
		if l, ok := p.(*syntax.Lit); ok && strings.IndexByte(l.Value, '{') >= 0 {
			has = true
		}
	}
	if !has {
		return []*syntax.Word{w}
	}
	cp := &syntax.Word{Parts: append([]syntax.WordPart(nil), w.Parts...)}
	syntax.SplitBraces(cp)
	out := spread(cp.Parts)
	if len(out) > maxFields {
		j.limit("shell.too-many", "the braces stand for more than 512 words")
		return []*syntax.Word{{Parts: []syntax.WordPart{unknownPart()}}}
	}
	words := make([]*syntax.Word, len(out))
	for i, parts := range out {
		words[i] = &syntax.Word{Parts: parts}
	}
	return words
}

func unknownPart() syntax.WordPart {
	return &syntax.ParamExp{Short: true, Param: &syntax.Lit{Value: holeName}}
}

// spread is the cross product of all brace expressions in a list of parts.
func spread(parts []syntax.WordPart) [][]syntax.WordPart {
	out := [][]syntax.WordPart{nil}
	for _, p := range parts {
		alts := [][]syntax.WordPart{{p}}
		if be, ok := p.(*syntax.BraceExp); ok {
			alts = nil
			if be.Sequence {
				for _, s := range sequence(be) {
					alts = append(alts, []syntax.WordPart{&syntax.SglQuoted{Value: s}})
				}
				if alts == nil {
					alts = [][]syntax.WordPart{{unknownPart()}}
				}
			} else {
				for _, e := range be.Elems {
					alts = append(alts, spread(e.Parts)...)
				}
			}
		}
		if len(out)*len(alts) > maxFields {
			return append(out, make([][]syntax.WordPart, maxFields)...)
		}
		next := make([][]syntax.WordPart, 0, len(out)*len(alts))
		for _, o := range out {
			for _, a := range alts {
				next = append(next, append(append([]syntax.WordPart(nil), o...), a...))
			}
		}
		out = next
	}
	return out
}

// sequence lists the values of {1..9} or {a..f}; nil when it is neither or too long.
func sequence(be *syntax.BraceExp) []string {
	if len(be.Elems) < 2 {
		return nil
	}
	from, to, step := be.Elems[0].Lit(), be.Elems[1].Lit(), 1
	if len(be.Elems) > 2 {
		if n, err := strconv.Atoi(be.Elems[2].Lit()); err == nil && n != 0 {
			step = max(n, -n)
		}
	}
	a, err1 := strconv.Atoi(from)
	b, err2 := strconv.Atoi(to)
	letters := err1 != nil && err2 != nil && len(from) == 1 && len(to) == 1
	if letters {
		a, b = int(from[0]), int(to[0])
	} else if err1 != nil || err2 != nil {
		return nil
	}
	if n := max(b-a, a-b) / step; n < 0 || n >= maxFields {
		return nil
	}
	var out []string
	for i := a; ; {
		if letters {
			out = append(out, string(rune(i)))
		} else {
			out = append(out, strconv.Itoa(i))
		}
		if a <= b {
			i += step
		} else {
			i -= step
		}
		if a <= b && i > b || a > b && i < b {
			return out
		}
	}
}

// parts expands word parts into b; top is false inside double quotes.
func (j *judge) parts(b *builder, parts []syntax.WordPart, top bool) {
	for i, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			s := p.Value
			if top && i == 0 && strings.HasPrefix(s, "~") && !b.open {
				s = j.tilde(b, s)
			}
			litText(b, s, !top)
		case *syntax.SglQuoted:
			if p.Dollar {
				b.text(ansiC(p.Value))
			} else {
				b.text(p.Value)
			}
		case *syntax.DblQuoted:
			b.open = true
			j.parts(b, p.Parts, false)
		case *syntax.ParamExp:
			j.param(b, p, top && !b.quoted)
		case *syntax.CmdSubst:
			out := j.substitute(p.Stmts)
			if top && !b.quoted {
				b.split(out)
			} else {
				b.text(out)
			}
		case *syntax.ArithmExp:
			j.arithm(p.X)
			b.text(anything)
		case *syntax.ProcSubst:
			f := j.subshell(func() flow { return j.stmtsFlow(p.Stmts) })
			j.procFlow(f)
			b.text(procPath)
		case *syntax.ExtGlob:
			b.text("\x01")
		default:
			b.text(anything)
		}
	}
}

// procPath is the name under which a process substitution's output is opened.
const procPath = "/dev/fd/63"

func (j *judge) procFlow(f flow) {
	if j.files == nil {
		j.files = make(map[string]flow, 2)
	}
	j.files[procPath] = f
}

// litText adds a literal, removing backslashes and marking active glob characters.
func litText(b *builder, s string, quoted bool) {
	b.open = true
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '\\' && i+1 < len(s):
			i++
			switch {
			case s[i] == '\n':
			case quoted && strings.IndexByte("$`\"\\", s[i]) < 0:
				b.cur.WriteByte('\\')
				b.cur.WriteByte(s[i])
			default:
				b.cur.WriteByte(s[i])
			}
		case quoted:
			b.cur.WriteByte(c)
		case c == '*':
			b.cur.WriteByte(star)
		case c == '?':
			b.cur.WriteByte(quest)
		case c == '[' && strings.IndexByte(s[i:], ']') > 0:
			b.cur.WriteByte(bracket)
		default:
			b.cur.WriteByte(c)
		}
	}
}

// tilde expands a leading ~ or ~user and returns the rest.
func (j *judge) tilde(b *builder, s string) string {
	end := strings.IndexByte(s, '/')
	if end < 0 {
		end = len(s)
	}
	user, rest := s[1:end], s[end:]
	switch {
	case user == "" || user == j.env.Places.User:
		b.text(j.home())
	case user == "+":
		b.text(j.cwd)
	case user == "-":
		b.text(anything)
	case user == "root":
		b.text("/root")
	case strings.ContainsAny(user, "\\'\"$*?["):
		return s
	default:
		b.text("/home/" + user)
	}
	return rest
}

func (j *judge) home() string {
	if v, ok := j.lookup("HOME"); ok {
		return v
	}
	return anything
}

// lookup returns a variable's value; false when it is not known to be set.
func (j *judge) lookup(name string) (string, bool) {
	if v, ok := j.vars[name]; ok {
		return v, true
	}
	switch name {
	case "PWD":
		return j.cwd, true
	case "IFS":
		return " \t\n", true
	case "HOME":
		return j.env.Places.Home, j.env.Places.Home != ""
	case "USER", "LOGNAME":
		return j.env.Places.User, j.env.Places.User != ""
	}
	return "", false
}

// ansiC decodes the inside of $'…'.
func ansiC(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if k := strings.IndexByte("abefnrtv\\'\"?E", s[i]); k >= 0 {
			b.WriteByte("\a\b\x1b\f\n\r\t\v\\'\"?\x1b"[k])
			continue
		}
		n, width := escapeNumber(s[i:])
		if width == 0 {
			b.WriteByte('\\')
			b.WriteByte(s[i])
			continue
		}
		i += width - 1
		writeCode(&b, n, s[i-width+1])
	}
	return b.String()
}

// escapeNumber reads the number of an octal, \x, \u, \U or \c escape and how many bytes it took.
func escapeNumber(s string) (n, width int) {
	base, limit, i := 16, 2, 1
	switch s[0] {
	case 'x':
	case 'u':
		limit = 4
	case 'U':
		limit = 8
	case 'c':
		if len(s) > 1 {
			return int(s[1]) & 0x1f, 2
		}
		return 0, 0
	default:
		base, limit, i = 8, 3, 0
	}
	start := i
	for i < len(s) && i-start < limit {
		d := strings.IndexByte("0123456789abcdef", s[i]|0x20)
		if s[i] <= '9' {
			d = int(s[i]) - '0'
		}
		if d < 0 || d >= base {
			break
		}
		n = n*base + d
		i++
	}
	if i == start {
		return 0, 0
	}
	return n, i
}

// writeCode writes a decoded character; the ones that mean something inside a word become a hole.
func writeCode(b *strings.Builder, n int, form byte) {
	switch {
	case n <= bracket:
		b.WriteByte(hole)
	case (form == 'u' || form == 'U') && n <= utf8.MaxRune:
		b.WriteRune(rune(n))
	default:
		b.WriteByte(byte(n))
	}
}

// param expands $x and ${x…}.
func (j *judge) param(b *builder, p *syntax.ParamExp, split bool) {
	name := ""
	if p.Param != nil {
		name = p.Param.Value
	}
	if p.Index != nil {
		j.arithm(p.Index)
	}
	add := func(v string) {
		if split {
			b.split(v)
		} else {
			b.text(v)
		}
	}
	if name == "@" || name == "*" {
		j.positional(b, name, split)
		return
	}
	value, ok := j.paramValue(name)
	if !ok && credentialName(name) {
		j.ask("shell.environment", "uses a variable that looks like a credential: "+name)
	}
	switch {
	case p.Excl, p.Names != 0:
		j.ask("shell.indirect", "a variable is named by another variable, so what is used is not known")
		value, ok = "", false
	case p.Length:
		value, ok = "", false
	case p.Index != nil:
		value, ok = "", false
	}
	if p.Slice != nil {
		j.arithm(p.Slice.Offset)
		j.arithm(p.Slice.Length)
		value, ok = slice(value, ok, p.Slice)
	}
	if p.Repl != nil {
		orig, with := j.single(p.Repl.Orig), j.single(p.Repl.With)
		if ok && known(orig) && !globbed(orig) && orig != "" {
			n := 1
			if p.Repl.All {
				n = -1
			}
			value = strings.Replace(value, orig, with, n)
		} else {
			value, ok = "", false
		}
	}
	if p.Exp != nil {
		value, ok = j.expansion(name, value, ok, p.Exp)
	}
	if !ok {
		value = anything
	}
	add(value)
}

func slice(value string, ok bool, s *syntax.Slice) (string, bool) {
	from, err := strconv.Atoi(arithLit(s.Offset))
	if !ok || err != nil || !known(value) || from < 0 || from > len(value) {
		return "", false
	}
	if s.Length == nil {
		return value[from:], true
	}
	n, err := strconv.Atoi(arithLit(s.Length))
	if err != nil || n < 0 {
		return "", false
	}
	return value[from:min(from+n, len(value))], true
}

func arithLit(x syntax.ArithmExpr) string {
	if w, ok := x.(*syntax.Word); ok {
		return w.Lit()
	}
	return ""
}

func (j *judge) paramValue(name string) (string, bool) {
	switch name {
	case holeName, "?", "$", "!", "-", "_":
		return "", false
	case "#":
		return strconv.Itoa(len(j.args)), true
	case "0":
		return j.script, j.script != ""
	}
	if isDigits(name) {
		if n, err := strconv.Atoi(name); err == nil && n >= 1 && n <= len(j.args) {
			return j.args[n-1], true
		}
		return "", false
	}
	return j.lookup(name)
}

// positional expands $@ and $*.
func (j *judge) positional(b *builder, name string, split bool) {
	if split && j.args == nil && j.inner == 0 {
		j.ask("shell.dynamic", "what $"+name+" stands for, options included, is not known before it runs")
		b.text(anything)
		return
	}
	for i, a := range j.args {
		if i > 0 {
			if name == "*" && !split {
				b.text(" ")
			} else {
				b.flush()
			}
		}
		if split {
			b.split(a)
		} else {
			b.text(a)
		}
	}
	if len(j.args) == 0 && !split && b.cur.Len() == 0 {
		b.open = false // "$@" without arguments is no word at all
	}
}

// expansion applies ${x:-y}, ${x#y}, ${x@P} and their like.
func (j *judge) expansion(name, value string, ok bool, e *syntax.Expansion) (string, bool) {
	if e.Op == syntax.OtherParamOps {
		if e.Word != nil && e.Word.Lit() == "P" {
			if ok && known(value) && strings.ContainsAny(value, "$`\\") {
				j.deny("shell.prompt-expansion", "${x@P} runs the commands inside the variable's value")
			} else {
				j.ask("shell.prompt-expansion", "${x@P} runs whatever commands the variable's value holds")
			}
		}
		return "", false
	}
	arg := j.single(e.Word)
	switch e.Op {
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		if ok && known(value) && value != "" {
			return arg, true
		}
		return "", false
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull:
		if ok && value != "" {
			return value, true
		}
		return "", false
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if ok && value != "" {
			return value, true
		}
		j.setVar(name, arg)
		return arg, true
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		return value, ok
	case syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		if ok && known(value) && known(arg) && !globbed(arg) {
			return strings.TrimSuffix(value, arg), true
		}
	case syntax.RemSmallPrefix, syntax.RemLargePrefix:
		if ok && known(value) && known(arg) && !globbed(arg) {
			return strings.TrimPrefix(value, arg), true
		}
	case syntax.UpperAll:
		if ok && arg == "" {
			return strings.ToUpper(value), true
		}
	case syntax.LowerAll:
		if ok && arg == "" {
			return strings.ToLower(value), true
		}
	default:
	}
	return "", false
}

// substitute judges $(…) and returns its output, which is a hole unless it is simple enough to know.
func (j *judge) substitute(stmts []*syntax.Stmt) string {
	if len(stmts) == 0 {
		return ""
	}
	out := j.subshell(func() flow {
		saved := j.stdin
		f := j.stmtsFlow(stmts)
		j.stdin = saved
		return f
	})
	if out.net {
		j.netSubst = true
	}
	if out.known {
		return strings.TrimRight(out.text, "\n")
	}
	return anything
}

// arithm judges the substitutions inside an arithmetic expression.
func (j *judge) arithm(x syntax.ArithmExpr) {
	switch x := x.(type) {
	case nil:
	case *syntax.Word:
		if x != nil {
			j.arithWord(x)
		}
	case *syntax.BinaryArithm:
		for {
			j.arithm(x.Y)
			left, ok := x.X.(*syntax.BinaryArithm)
			if !ok {
				j.arithm(x.X)
				return
			}
			x = left
		}
	case *syntax.UnaryArithm:
		j.arithm(x.X)
	case *syntax.ParenArithm:
		if j.enter() {
			j.arithm(x.X)
		}
		j.leave()
	case *syntax.FlagsArithm:
		j.arithm(x.X)
	}
}

// arithWord judges an operand. The shell evaluates a variable's value again, so a value with a subscript can run commands.
func (j *judge) arithWord(w *syntax.Word) {
	j.arithText(j.single(w), 0)
}

// arithText follows the names in an arithmetic text to their values, and on to the names in those.
func (j *judge) arithText(s string, depth int) {
	const deepest = 4
	j.subscript(s)
	if depth == deepest || len(s) > maxValue {
		return
	}
	for name := range strings.FieldsFuncSeq(s, func(r rune) bool { return r >= utf8.RuneSelf || !wordByte(byte(r)) }) {
		if v, ok := j.vars[name]; ok && v != s && v != anything {
			j.arithText(v, depth+1)
		}
	}
}

// evaluated refuses a value that the shell evaluates whenever the variable is set or used: a number, or the name of another variable. What such a
// variable is given later is looked at as well.
func (j *judge) evaluated(name string) {
	if j.numbers == nil {
		j.numbers = make(map[string]bool, 4)
	}
	j.numbers[name] = true
	if v, ok := j.vars[name]; ok {
		j.arithText(v, 0)
	}
}

// subscript refuses text that the shell would evaluate as an array subscript with a substitution in it.
func (j *judge) subscript(s string) {
	if k := strings.IndexByte(unglob(s), '['); k >= 0 && strings.ContainsAny(s[k:], "$`") {
		j.deny("shell.subscript", "evaluating the array subscript runs the command inside it")
	}
}
