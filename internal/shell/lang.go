package shell

import (
	"strings"
)

// language describes how an interpreter is called.
type language struct {
	names  []string
	inline []string // options whose value is code
	value  []string // options with another value
	check  []string // options that only check or print
}

var languages = map[string]language{
	"python": {names: []string{"python", "python2", "python3", "pypy", "pypy3", "ipython", "ipython3", "micropython", "jython"}, inline: []string{"-c"}, value: []string{"-W", "-X", "-Q"}, check: []string{"-V", "-VV", "--version", "-h", "--help"}},
	"perl":   {names: []string{"perl"}, inline: []string{"-e", "-E"}, value: []string{}, check: []string{"-v", "-V", "--version", "-h"}},
	"ruby":   {names: []string{"ruby", "irb", "jruby", "mruby"}, inline: []string{"-e"}, value: []string{"-C", "-E"}, check: []string{"-v", "--version", "-c", "-h", "--help"}},
	"node":   {names: []string{"node", "nodejs", "qjs", "d8", "js"}, inline: []string{"-e", "--eval", "-p", "--print", "-pe"}, value: []string{}, check: []string{"-v", "--version", "-c", "--check", "-h", "--help", "--v8-options"}},
	"php":    {names: []string{"php"}, inline: []string{"-r", "-R", "-B", "-E"}, value: []string{"-d", "-c"}, check: []string{"-v", "--version", "-l", "-m", "-i", "-h", "--help", "--ini"}},
	"lua":    {names: []string{"lua", "luajit", "texlua"}, inline: []string{"-e"}, value: []string{}, check: []string{"-v"}},
	"julia":  {names: []string{"julia"}, inline: []string{"-e", "--eval", "-E", "--print"}, value: []string{"-p", "-t"}, check: []string{"-v", "--version", "-h", "--help"}},
	"r":      {names: []string{"R", "Rscript", "r"}, inline: []string{"-e"}, value: []string{}, check: []string{"--version", "--help"}},
	"elixir": {names: []string{"elixir", "iex"}, inline: []string{"-e", "--eval"}, value: []string{}, check: []string{"-v", "--version", "-h", "--help"}},
	"octave": {names: []string{"octave", "octave-cli"}, inline: []string{"--eval"}, value: []string{}, check: []string{"--version", "--help"}},
	"tcl":    {names: []string{"tclsh", "wish", "expect"}, inline: []string{"-c"}, value: []string{}, check: []string{"-v"}},
	"apple":  {names: []string{"osascript"}, inline: []string{"-e"}, value: []string{"-l"}, check: []string{}},
	"lisp":   {names: []string{"sbcl", "clisp", "guile", "racket", "ecl", "emacs", "gimp", "clojure", "bb", "scheme", "jrunscript", "jshell", "groovy", "gdb", "lldb", "runghc", "ghci", "swipl", "maxima", "gnuplot-repl"}, inline: []string{"--eval", "-eval", "-x", "-c", "-e", "-b", "-ex", "--batch-string", "-g", "-t"}, value: []string{}, check: []string{"--version", "--help", "-version"}},
}

var languageNames = func() map[string]string {
	m := make(map[string]string, 64)
	for _, lang := range sortedKeys(languages) {
		for _, n := range languages[lang].names {
			m[n] = lang
		}
	}
	return m
}()

// languageOf returns the language a program interprets, or "".
func languageOf(base string) string { return languageNames[base] }

// interpreter judges starting a language interpreter.
func (j *judge) interpreter(base, lang string, args []string) flow {
	l := languages[lang]
	inPlace, ran := false, false
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" || a == "-" || len(a) < 2 || a[0] != '-' {
			if ran {
				j.codeOperands(args[i:], inPlace)
				return flow{net: j.stdin.net}
			}
			if a == "--" && i+1 < len(args) {
				i++
				a = args[i]
			}
			if a == "-" || a == "/dev/stdin" {
				break
			}
			j.scriptOperand(lang, a, args[i+1:])
			return flow{}
		}
		if contains(l.check, a) {
			if lang == "ruby" && a == "-c" || lang == "node" && (a == "-c" || a == "--check") || lang == "php" && a == "-l" {
				return flow{}
			}
			if len(args) == 1 {
				return flow{}
			}
			continue
		}
		if lang == "python" && strings.HasPrefix(a, "-m") {
			mod, rest := a[2:], args[i+1:]
			if mod == "" && len(rest) > 0 {
				mod, rest = rest[0], rest[1:]
			}
			return j.pythonModule(mod, rest)
		}
		if (lang == "perl" || lang == "ruby") && strings.IndexByte("MmIxCF", a[1]) < 0 && strings.Contains(cutAt(a, "eE"), "i") {
			inPlace = true
		}
		code, used, ok := inlineCode(l, lang, a, args[i+1:])
		if ok {
			i += used
			ran = true
			j.code(lang, code)
			continue
		}
		i += j.interpreterOption(lang, l, a, args[i+1:])
	}
	if ran {
		return flow{net: j.stdin.net}
	}
	return j.interpreterInput(base, lang)
}

// inlineCode finds code in an option, also when other one-letter options stand before it: -ne, -lane.
func inlineCode(l language, lang, a string, rest []string) (code string, used int, ok bool) {
	next := ""
	if len(rest) > 0 {
		next = rest[0]
	}
	for _, o := range l.inline {
		if a == o {
			return next, 1, true
		}
		if strings.HasPrefix(o, "--") && strings.HasPrefix(a, o+"=") {
			return a[len(o)+1:], 0, true
		}
	}
	if strings.HasPrefix(a, "--") {
		return "", 0, false
	}
	switch lang {
	case "perl", "ruby", "python", "php", "lua":
		for _, o := range l.inline {
			if k := strings.IndexByte(a[1:], o[1]); k >= 0 && len(o) == 2 && !strings.ContainsAny(a[1:k+1], "MmIiFxCWXrd0") {
				if glued := a[k+2:]; glued != "" {
					return glued, 0, true
				}
				return next, 1, true
			}
		}
		if lang == "perl" && strings.HasPrefix(a, "-i") && strings.HasSuffix(a, "e") {
			return next, 1, true
		}
	}
	return "", 0, false
}

// interpreterOption judges an option that is not code.
func (j *judge) interpreterOption(lang string, l language, a string, rest []string) int {
	switch {
	case contains(l.value, a):
		if len(rest) > 0 && loadsCode(lang, a, rest[0]) {
			j.ask("shell.code-import", "the option can make the interpreter load other code: "+plain(a+" "+rest[0]))
		}
		return 1
	case lang == "perl" && len(a) > 1 && (a[1] == 'M' || a[1] == 'm'):
		mod, _, _ := strings.Cut(strings.TrimPrefix(a[2:], "-"), "=")
		if !safeModules["perl"][mod] {
			j.ask("shell.code-import", "the code loads a module: "+plain(mod))
		}
	case lang == "perl" && len(a) > 1 && a[1] == 'I', lang == "ruby" && len(a) > 1 && (a[1] == 'r' || a[1] == 'I'), lang == "node" && (a == "-r" || strings.HasPrefix(a, "--require") || strings.HasPrefix(a, "--import") || strings.HasPrefix(a, "--loader") || strings.HasPrefix(a, "--experimental-loader")):
		j.ask("shell.code-import", "the interpreter loads another file first: "+plain(a))
		if lang == "node" && !strings.Contains(a, "=") {
			return 1
		}
		if len(a) == 2 {
			return 1
		}
	case lang == "node" && (a == "--test" || a == "--watch" || strings.HasPrefix(a, "--max-old-space-size")):
	case lang == "perl" && strings.Trim(a[1:], "nplawsCtTuW0123456789FiXdD.bkorg~,:;|\t ") == "", lang == "ruby" && strings.Trim(a[1:], "nplawW0123456789Fi.bk") == "", lang == "python" && strings.Trim(a[1:], "BbdEiIOqsSuvx") == "":
	default:
		j.ask("shell.unknown-option", "the option is not among the described ones: "+plain(a))
	}
	return 0
}

// loadsCode reports a value with which an option that is otherwise harmless loads code: a category of warnings is imported, settings name files.
func loadsCode(lang, option, value string) bool {
	switch lang {
	case "python":
		return !known(value) || option == "-W" && strings.Contains(value, ".") || option == "-X" && strings.Contains(value, "=")
	case "php":
		return true
	}
	return false
}

// codeOperands judges the files that inline code is applied to.
func (j *judge) codeOperands(files []string, inPlace bool) {
	for _, f := range files {
		if f == "" || f[0] == '-' {
			continue
		}
		j.readPath(f)
		if inPlace {
			j.writePath(f)
		}
	}
}

// scriptOperand judges a script file given to an interpreter.
func (j *judge) scriptOperand(lang, script string, args []string) {
	for _, a := range args {
		j.suspicious(a)
	}
	if script == procPath {
		f := j.files[procPath]
		switch {
		case f.known && known(f.text):
			j.code(lang, f.text)
		case f.net:
			j.deny("shell.run-download", "what another machine answers would be run by the interpreter")
		default:
			j.ask("shell.run-unread", "code that cannot be read beforehand would be run")
		}
		return
	}
	j.runScript(script, func(t string) { j.code(lang, t) })
}

// interpreterInput judges an interpreter that reads its code from standard input.
func (j *judge) interpreterInput(base, lang string) flow {
	j.effect(Executes)
	switch f := j.stdin; {
	case !f.piped:
		j.ask("shell.interactive", "opens an interactive interpreter: "+base)
	case f.known && known(f.text):
		j.code(lang, f.text)
	case f.net:
		j.deny("shell.run-download", "what another machine answers would be run by "+base)
	default:
		j.ask("shell.run-unread", "code that cannot be read beforehand would be run by "+base)
	}
	return flow{net: j.stdin.net}
}

// pythonModule judges python -m.
func (j *judge) pythonModule(mod string, args []string) flow {
	switch mod {
	case "json.tool":
		for i, a := range args {
			if a != "" && a[0] != '-' {
				if i > 0 && args[i-1] != "" && args[i-1][0] != '-' {
					j.writePath(a)
				} else {
					j.readPath(a)
				}
			}
		}
	case "pytest", "unittest", "doctest", "black", "isort", "flake8", "mypy", "ruff", "pylint", "coverage", "tox", "nox", "build", "pip", "venv", "virtualenv", "poetry", "bandit", "sphinx", "mkdocs", "pre_commit":
		name := strings.ReplaceAll(mod, "_", "-")
		if name == "unittest" || name == "doctest" || name == "build" || name == "sphinx" || name == "venv" || name == "virtualenv" {
			j.effect(Executes | Writes)
			for _, a := range args {
				j.suspicious(a)
			}
			if name == "venv" || name == "virtualenv" {
				j.operandRoles(&spec{roles: "w"}, j.options(&spec{}, args))
			}
			return flow{}
		}
		return j.command(append([]string{name}, args...))
	case "py_compile", "compileall", "tokenize", "ast", "dis", "timeit", "platform", "sysconfig", "site", "calendar", "this", "pydoc", "tabnanny", "trace", "zipfile", "tarfile", "base64", "gzip", "cProfile":
		for _, a := range args {
			j.suspicious(a)
		}
		if mod == "timeit" || mod == "trace" || mod == "cProfile" || mod == "zipfile" || mod == "tarfile" || mod == "gzip" {
			j.ask("shell.exec", "the module runs code or writes files")
		}
	case "http.server", "SimpleHTTPServer":
		j.ask("shell.listen", "opens the machine to connections")
	default:
		j.ask("shell.exec", "runs a python module: "+plain(mod))
	}
	return flow{}
}

// nestedCode judges text that is either shell or code in a language that is not known.
func (j *judge) nestedCode(text string) {
	j.code("any", text)
	if j.isCommand(unglob(strings.ReplaceAll(text, anything, "x"))) {
		j.nested(text)
	}
}
