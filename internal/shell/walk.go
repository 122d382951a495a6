package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxLoop bounds how many literal loop items are judged one by one.
const maxLoop = 16

func (j *judge) stmts(list []*syntax.Stmt) { j.stmtsFlow(list) }

// stmtsFlow judges statements in order; the output is known when all of it is.
func (j *judge) stmtsFlow(list []*syntax.Stmt) flow {
	out := flow{piped: true, known: true}
	for _, s := range list {
		before := j.cwd
		f := j.stmt(s)
		if j.cwd != before && !j.guarded(s) {
			j.mayStay(before)
		}
		j.ends(f)
		out.known = out.known && f.known
		out.text += f.text
		out.net = out.net || f.net
		if len(out.text) > MaxBytes {
			out.known, out.text = false, ""
		}
		if j.stopped() {
			return flow{piped: true, net: out.net}
		}
	}
	return out
}

func (j *judge) stmt(s *syntax.Stmt) flow {
	if !j.enter() || !j.step() {
		j.leave()
		return flow{}
	}
	defer j.leave()
	saved := j.stdin
	var written []string
	if _, call := s.Cmd.(*syntax.CallExpr); !call {
		for _, r := range s.Redirs {
			if t := j.redirect(r); t != "" {
				written = append(written, t)
			}
		}
	}
	out := j.cmd(s, &written)
	if s.Cmd == nil && len(written) > 0 {
		j.pos = s.Pos()
		j.name = ""
		j.truncated(written)
	}
	for _, w := range written {
		j.wrote(w, out)
	}
	if len(written) > 0 {
		j.ends(out)
		out = flow{piped: true, known: true}
	}
	j.stdin = saved
	return out
}

// ends objects to a command that would read forever.
func (j *judge) ends(f flow) {
	if f.endless {
		j.ask("shell.endless", "reads a device that never ends, and nothing in the pipe stops it")
	}
}

// truncated objects to emptying a file: a redirection with nothing to write into it.
func (j *judge) truncated(targets []string) {
	for _, t := range targets {
		if !strings.HasPrefix(t, ">>") {
			j.ask("shell.truncate", "the file would be emptied")
		}
	}
}

// wrote remembers what a file holds now, for the case that it is run later in the same text.
func (j *judge) wrote(target string, f flow) {
	abs := j.resolve(strings.TrimPrefix(target, ">>"))
	if j.files == nil {
		j.files = make(map[string]flow, 4)
	}
	if old, ok := j.files[abs]; ok && strings.HasPrefix(target, ">>") {
		f = flow{known: old.known && f.known, text: old.text + f.text, net: old.net || f.net}
	}
	j.files[abs] = f
}

func (j *judge) cmd(s *syntax.Stmt, written *[]string) flow {
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		return j.call(c, s.Redirs, written)
	case *syntax.BinaryCmd:
		return j.binary(c)
	case *syntax.Block:
		return j.stmtsFlow(c.Stmts)
	case *syntax.Subshell:
		return j.subshell(func() flow { return j.stmtsFlow(c.Stmts) })
	case *syntax.IfClause:
		return j.ifClause(c)
	case *syntax.WhileClause:
		j.loop(c, func() {
			j.stmts(c.Cond)
			j.stmts(c.Do)
		})
	case *syntax.ForClause:
		j.forClause(c)
	case *syntax.CaseClause:
		j.caseClause(c)
	case *syntax.FuncDecl:
		j.funcDecl(c)
	case *syntax.DeclClause:
		j.pos = c.Pos()
		j.declare(c)
	case *syntax.TestClause:
		j.pos = c.Pos()
		j.test(c.X)
	case *syntax.ArithmCmd:
		j.pos = c.Pos()
		j.arithm(c.X)
	case *syntax.LetClause:
		for _, x := range c.Exprs {
			j.arithm(x)
		}
	case *syntax.TimeClause:
		if c.Stmt != nil {
			return j.stmt(c.Stmt)
		}
	case *syntax.CoprocClause:
		return j.stmt(c.Stmt)
	case nil:
		return flow{known: true}
	default:
		j.pos = s.Pos()
		j.deny("shell.construct", "the command uses a construct this analysis does not know")
	}
	return flow{piped: true, net: j.stdin.net}
}

func (j *judge) binary(c *syntax.BinaryCmd) flow {
	switch c.Op {
	case syntax.Pipe, syntax.PipeAll:
		left := j.subshell(func() flow { return j.stmt(c.X) })
		left.piped = true
		if c.Op == syntax.PipeAll {
			left.known = false
		}
		return j.subshell(func() flow {
			saved := j.stdin
			j.stdin = left
			out := j.stmt(c.Y)
			j.stdin = saved
			out.net = out.net || left.net
			return out
		})
	default:
	}
	if c.Op == syntax.AndStmt {
		return j.and(c)
	}
	cwd, stayed := j.cwd, j.stayed
	a := j.stmt(c.X)
	j.ends(a)
	if j.cwd != cwd {
		j.mayStay(cwd) // what follows || runs where the cd did not lead
	}
	var b flow
	j.maybe(func() { b = j.stmt(c.Y) })
	j.stayed = stayed
	return flow{piped: true, net: a.net || b.net, endless: b.endless}
}

// and judges a chain of &&. What follows only runs if what stands before worked, so a cd or an assignment holds for the rest of the chain; what a chain
// that may have ended early has assigned is unknown behind it.
func (j *judge) and(c *syntax.BinaryCmd) flow {
	chain := []*syntax.Stmt{c.Y}
	for {
		inner, ok := c.X.Cmd.(*syntax.BinaryCmd)
		if !ok || inner.Op != syntax.AndStmt || len(c.X.Redirs) > 0 || c.X.Negated || c.X.Background {
			break
		}
		c = inner
		chain = append(chain, c.Y)
	}
	chain = append(chain, c.X)
	out := flow{piped: true, known: true}
	var vars map[string]string
	doubt := false
	for i := len(chain) - 1; i >= 0; i-- {
		f := j.stmt(chain[i])
		if i > 0 {
			j.ends(f)
		}
		out = flow{piped: true, known: out.known && f.known, text: out.text + f.text, net: out.net || f.net, endless: f.endless}
		if len(out.text) > MaxBytes {
			out.known, out.text = false, ""
		}
		if j.stopped() {
			return flow{piped: true, net: out.net}
		}
		if !doubt && !onlyAssigns(chain[i]) {
			doubt, vars = true, cloneMap(j.vars)
		}
	}
	for k, v := range j.vars {
		if old, ok := vars[k]; doubt && (!ok || old != v) {
			j.vars[k] = anything
		}
	}
	return out
}

// onlyAssigns reports a statement that cannot fail: assignments without a substitution in them.
func onlyAssigns(s *syntax.Stmt) bool {
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) > 0 || len(s.Redirs) > 0 || s.Negated {
		return false
	}
	plain := true
	syntax.Walk(call, func(n syntax.Node) bool {
		if _, subst := n.(*syntax.CmdSubst); subst {
			plain = false
		}
		return plain
	})
	return plain
}

// mayStay notes that a cd may have failed, so that what follows runs in dir.
func (j *judge) mayStay(dir string) {
	const most = 8
	if len(j.stayed) < most && !contains(j.stayed, dir) {
		j.stayed = append(j.stayed[:len(j.stayed):len(j.stayed)], dir)
	}
}

// guarded reports a statement after which nothing runs if its cd failed: cd x || exit, or a plain cd under set -e.
func (j *judge) guarded(s *syntax.Stmt) bool {
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		return j.errexit && j.depth == 0 && !s.Negated
	case *syntax.BinaryCmd:
		return c.Op == syntax.OrStmt && leaves(c.Y)
	default:
		return false
	}
}

// leaves reports a statement that ends the shell or the function it stands in.
func leaves(s *syntax.Stmt) bool {
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		if len(c.Args) == 0 {
			return false
		}
		word := c.Args[0].Lit()
		return word == "exit" || word == "return"
	case *syntax.Block:
		return len(c.Stmts) > 0 && leaves(c.Stmts[len(c.Stmts)-1])
	default:
		return false
	}
}

func (j *judge) ifClause(c *syntax.IfClause) flow {
	out := flow{piped: true}
	for ; c != nil && !j.stopped(); c = c.Else {
		out.net = j.stmtsFlow(c.Cond).net || out.net
		then := c.Then
		j.maybe(func() { out.net = j.stmtsFlow(then).net || out.net })
	}
	return out
}

// loop judges a body that may run any number of times: whatever it assigns is unknown when it starts.
func (j *judge) loop(n syntax.Node, body func()) {
	for _, name := range j.assigned(n) {
		j.setVar(name, anything)
	}
	j.maybe(body)
}

// assigned lists the variables set anywhere inside a loop. It is remembered, because a loop inside a loop is asked again and again.
func (j *judge) assigned(n syntax.Node) []string {
	if names, ok := j.assigns[n]; ok {
		return names
	}
	var names []string
	add := func(name string) {
		if !contains(names, name) {
			names = append(names, name)
		}
	}
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name != nil {
				add(n.Name.Value)
			}
		case *syntax.WordIter:
			add(n.Name.Value)
		}
		return true
	})
	if j.assigns == nil {
		j.assigns = make(map[syntax.Node][]string, 4)
	}
	j.assigns[n] = names
	return names
}

func (j *judge) forClause(c *syntax.ForClause) {
	switch l := c.Loop.(type) {
	case *syntax.WordIter:
		j.pos = l.Pos()
		items := j.fields(l.Items)
		if !l.InPos.IsValid() {
			items = []string{anything}
		}
		name := l.Name.Value
		if len(items) > maxLoop {
			items = []string{anything}
		}
		for _, item := range items {
			for _, v := range j.glob(item) {
				if j.stopped() {
					return
				}
				j.loop(c, func() {
					j.setVar(name, v)
					j.stmts(c.Do)
				})
			}
		}
		j.setVar(name, anything)
	case *syntax.CStyleLoop:
		j.arithm(l.Init)
		j.arithm(l.Cond)
		j.arithm(l.Post)
		j.loop(c, func() { j.stmts(c.Do) })
	}
}

func (j *judge) caseClause(c *syntax.CaseClause) {
	j.pos = c.Pos()
	j.single(c.Word)
	for _, it := range c.Items {
		if j.stopped() {
			return
		}
		for _, p := range it.Patterns {
			j.single(p)
		}
		j.maybe(func() { j.stmts(it.Stmts) })
	}
}

func (j *judge) funcDecl(c *syntax.FuncDecl) {
	if j.funcs == nil {
		j.funcs = make(map[string]*syntax.Stmt, 4)
	}
	if c.Name != nil {
		j.funcs[c.Name.Value] = c.Body
	}
	for _, n := range c.Names {
		j.funcs[n.Value] = c.Body
	}
}

// callFunc judges a function's body with its arguments.
func (j *judge) callFunc(name string, body *syntax.Stmt, args []string) flow {
	if contains(j.calls, name) {
		if forks(body) {
			j.deny("shell.fork-bomb", "the function starts copies of itself without end")
		} else {
			j.ask("shell.recursion", "the function calls itself, so what it does cannot be followed to the end")
		}
		return flow{}
	}
	if j.judged == nil {
		j.judged = make(map[*syntax.Stmt]bool, 4)
	}
	j.judged[body] = true
	saved := j.args
	j.args = args
	j.calls = append(j.calls, name)
	out := j.stmt(body)
	j.calls = j.calls[:len(j.calls)-1]
	j.args = saved
	return out
}

// forks reports whether a body starts something in the background or in a pipe.
func forks(body *syntax.Stmt) bool {
	found := false
	syntax.Walk(body, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			found = found || n.Background
		case *syntax.BinaryCmd:
			found = found || n.Op == syntax.Pipe || n.Op == syntax.PipeAll
		}
		return !found
	})
	return found
}

func (j *judge) test(x syntax.TestExpr) {
	switch x := x.(type) {
	case *syntax.Word:
		j.single(x)
	case *syntax.ParenTest:
		if j.enter() {
			j.test(x.X)
		}
		j.leave()
	case *syntax.UnaryTest:
		if w, ok := x.X.(*syntax.Word); ok && (x.Op == syntax.TsVarSet || x.Op == syntax.TsRefVar) {
			j.subscript(j.single(w))
			return
		}
		j.test(x.X)
	case *syntax.BinaryTest:
		j.test(x.X)
		j.test(x.Y)
		switch x.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			for _, side := range []syntax.TestExpr{x.X, x.Y} {
				if w, ok := side.(*syntax.Word); ok {
					j.arithWord(w)
				}
			}
		default:
		}
	}
}

// call judges a simple command: redirections, assignments, then the program.
func (j *judge) call(c *syntax.CallExpr, redirs []*syntax.Redirect, written *[]string) flow {
	j.pos = c.Pos()
	j.name = ""
	j.netSubst, j.endless, j.stops = false, false, false
	argv := j.fields(c.Args)
	if len(argv) > 0 {
		j.name = plain(argv[0])
	}
	for _, r := range redirs {
		if t := j.redirect(r); t != "" {
			*written = append(*written, t)
		}
	}
	if len(c.Args) == 0 {
		for _, a := range c.Assigns {
			j.assign(a)
		}
		if len(*written) > 0 {
			j.truncated(*written)
		}
		return flow{known: true}
	}
	var restore map[string]string
	if len(c.Assigns) > 0 {
		restore = cloneMap(j.vars)
		for _, a := range c.Assigns {
			j.assign(a)
		}
	}
	pos, net := j.pos, j.netSubst
	out := j.command(argv)
	j.pos, j.netSubst = pos, net
	if len(c.Assigns) > 0 {
		j.vars = restore
	}
	out.endless = (j.endless || j.stdin.endless) && !j.stops
	if len(argv) > 0 && writesNothing(argv) && len(*written) > 0 {
		j.truncated(*written)
	}
	return out
}

// writesNothing reports commands without output: redirecting them only empties the target.
func writesNothing(argv []string) bool {
	switch argv[0] {
	case ":", "true", "false":
		return true
	case "cat":
		return len(argv) == 2 && argv[1] == "/dev/null"
	}
	return false
}

// assign judges and records NAME=value.
func (j *judge) assign(a *syntax.Assign) {
	if a.Index != nil {
		j.arithm(a.Index)
	}
	if a.Array != nil {
		for _, e := range a.Array.Elems {
			j.arithm(e.Index)
			if e.Value != nil {
				j.single(e.Value)
			}
		}
		j.setVar(a.Name.Value, anything)
		return
	}
	if a.Name == nil || a.Naked {
		return
	}
	v := j.single(a.Value)
	name := a.Name.Value
	if a.Append {
		old, ok := j.lookup(name)
		if !ok {
			old = anything
		}
		v = old + v
	}
	if a.Index != nil {
		v = anything
	}
	j.envVar(name, v)
	j.setVar(name, v)
	if j.numbers[name] {
		j.arithText(v, 0)
	}
}

// declare judges export, declare, typeset, local, readonly and nameref.
func (j *judge) declare(c *syntax.DeclClause) {
	j.name = c.Variant.Value
	j.rep.Commands++
	evaluates := c.Variant.Value == "nameref"
	for _, a := range c.Args {
		if a.Naked && a.Value != nil {
			for _, w := range j.fields([]*syntax.Word{a.Value}) {
				if strings.HasPrefix(w, "-") && strings.Contains(w, "p") {
					j.ask("shell.environment", "prints variables, where credentials are often kept")
				}
				if !known(w) || strings.HasPrefix(w, "-") && strings.ContainsAny(w, "in") {
					evaluates = true // as a number, or as the name of another variable
				}
				if n, v, ok := strings.Cut(w, "="); ok && known(n) {
					j.subscript(n)
					if evaluates {
						j.arithText(v, 0)
					}
					j.envVar(n, v)
					j.setVar(n, v)
				} else if !known(w) {
					j.ask("shell.dynamic-assignment", "which variable would be set is not known")
				}
			}
			continue
		}
		j.assign(a)
		if evaluates && a.Name != nil {
			j.evaluated(a.Name.Value)
		}
	}
}

// redirect judges one redirection and returns the file it writes, prefixed with ">>" when it appends, or "".
func (j *judge) redirect(r *syntax.Redirect) string {
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		j.stdin = flow{piped: true, known: true, text: j.hdoc(r)}
		return ""
	case syntax.WordHdoc:
		net := j.netSubst
		j.netSubst = false
		text := j.single(r.Word)
		j.stdin = flow{piped: true, known: known(text), text: text + "\n", net: j.netSubst}
		j.netSubst = net
		return ""
	default:
	}
	target := j.single(r.Word)
	if net, ok := strings.CutPrefix(target, "/dev/tcp/"); ok || strings.HasPrefix(target, "/dev/udp/") {
		j.effect(Network)
		if h, _, found := strings.Cut(strings.TrimPrefix(net, "/dev/udp/"), "/"); found {
			j.host(h)
		}
		j.deny("shell.net-redirect", "the redirection opens a network connection")
		return ""
	}
	switch r.Op {
	case syntax.RdrIn:
		j.readPath(target)
		j.stdin = j.fileFlow(target)
		j.stdin.endless = endless(j.resolve(target))
	case syntax.DplIn:
		return ""
	case syntax.DplOut:
		if target == "-" || isDigits(strings.TrimSuffix(target, "-")) {
			return ""
		}
		j.writePath(target)
		return target
	case syntax.RdrInOut:
		j.readPath(target)
		j.writePath(target)
		j.hiddenFile(target)
		return ">>" + target
	case syntax.AppOut, syntax.AppAll:
		j.writePath(target)
		j.hiddenFile(target)
		return ">>" + target
	default:
		j.writePath(target)
		j.hiddenFile(target)
		if r.N != nil && r.N.Value == "2" {
			return ""
		}
		return target
	}
	return ""
}

// hdoc expands a here-document; a quoted delimiter keeps it literal.
func (j *judge) hdoc(r *syntax.Redirect) string {
	if r.Hdoc == nil {
		return ""
	}
	for _, p := range r.Word.Parts {
		switch p := p.(type) {
		case *syntax.SglQuoted, *syntax.DblQuoted:
			return r.Hdoc.Lit()
		case *syntax.Lit:
			if strings.IndexByte(p.Value, '\\') >= 0 {
				return r.Hdoc.Lit()
			}
		}
	}
	b := builder{quoted: true}
	j.parts(&b, r.Hdoc.Parts, false)
	b.flush()
	return strings.Join(b.out, "")
}

// fileFlow is the content of a file as far as it is known.
func (j *judge) fileFlow(word string) flow {
	abs := j.resolve(word)
	if f, ok := j.files[abs]; ok {
		f.piped = true
		return f
	}
	if j.env.Files != nil && known(word) {
		if text, ok := j.env.Files.ReadFile(abs); ok && len(text) <= MaxBytes {
			return flow{piped: true, known: true, text: string(text)}
		}
	}
	return flow{piped: true}
}

func isDigits(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
