package shell

import (
	"strings"
)

// What a word of a program can mean, whatever the language.
type power uint8

const (
	powerRun power = iota + 1
	powerNet
	powerDelete
	powerWrite
	powerOpen
	powerEval
)

// powers are the names by which languages reach outside themselves.
var powers = map[string]power{
	"system": powerRun, "exec": powerRun, "execl": powerRun, "execv": powerRun, "execve": powerRun, "execvp": powerRun, "execlp": powerRun, "popen": powerRun, "popen2": powerRun, "popen3": powerRun, "Popen": powerRun, "subprocess": powerRun, "spawn": powerRun, "spawnSync": powerRun,
	"spawnl": powerRun, "spawnv": powerRun, "execSync": powerRun, "execFile": powerRun, "execFileSync": powerRun, "child_process": powerRun, "fork": powerRun, "posix_spawn": powerRun, "pty": powerRun, "shell_exec": powerRun, "passthru": powerRun, "proc_open": powerRun, "pcntl_exec": powerRun,
	"getoutput": powerRun, "check_output": powerRun, "check_call": powerRun, "startfile": powerRun, "execute": powerRun, "qx": powerRun, "syscall": powerRun, "Open3": powerRun, "ProcessBuilder": powerRun, "Runtime": powerRun, "shell": powerRun, "cmd": powerRun, "interact": powerRun,
	"commands": powerRun, "pexpect": powerRun, "dlopen": powerRun, "ctypes": powerRun, "CDLL": powerRun, "ffi": powerRun, "run_command": powerRun, "esyscmd": powerRun, "kill": powerRun, "killpg": powerRun, "dup2": powerRun, "DynaLoader": powerRun, "Fiddle": powerRun, "start_process": powerRun,
	"socket": powerNet, "connect": powerNet, "urllib": powerNet, "urllib2": powerNet, "urlopen": powerNet, "requests": powerNet, "httplib": powerNet, "http": powerNet, "https": powerNet, "net": powerNet, "fetch": powerNet, "XMLHttpRequest": powerNet, "TCPSocket": powerNet, "TCPServer": powerNet, "Net": powerNet,
	"Socket": powerNet, "IO::Socket": powerNet, "LWP": powerNet, "fsockopen": powerNet, "curl_exec": powerNet, "curl_init": powerNet, "ftplib": powerNet, "smtplib": powerNet, "telnetlib": powerNet, "paramiko": powerNet, "aiohttp": powerNet, "httpx": powerNet, "websocket": powerNet, "dgram": powerNet, "dns": powerNet,
	"gethostbyname": powerNet, "getaddrinfo": powerNet, "open_uri": powerNet, "URI": powerNet, "file_get_contents": powerOpen, "readfile": powerOpen, "boto3": powerNet, "webbrowser": powerNet, "antigravity": powerNet,
	"rmtree": powerDelete, "unlink": powerDelete, "unlinkSync": powerDelete, "rmdir": powerDelete, "rmdirSync": powerDelete, "rmSync": powerDelete, "removedirs": powerDelete, "rm_rf": powerDelete, "rm_r": powerDelete, "rm_f": powerDelete, "remove": powerDelete, "remove_dir": powerDelete, "delete": powerDelete, "rimraf": powerDelete,
	"remove_tree": powerDelete, "truncate": powerDelete, "ftruncate": powerDelete, "FileUtils": powerDelete, "shutil": powerDelete, "rm": powerDelete,
	"write": powerWrite, "writeFile": powerWrite, "writeFileSync": powerWrite, "appendFile": powerWrite, "appendFileSync": powerWrite, "createWriteStream": powerWrite, "file_put_contents": powerWrite, "fwrite": powerWrite, "fputs": powerWrite, "write_text": powerWrite, "write_bytes": powerWrite, "rename": powerWrite,
	"renameSync": powerWrite, "chmod": powerWrite, "chown": powerWrite, "symlink": powerWrite, "link": powerWrite, "mkdir": powerWrite, "makedirs": powerWrite, "copyfile": powerWrite, "copyFileSync": powerWrite, "putenv": powerWrite, "setuid": powerWrite, "setgid": powerWrite, "mkfifo": powerWrite,
	"open": powerOpen, "fopen": powerOpen, "File": powerOpen, "IO": powerOpen, "Path": powerOpen, "pathlib": powerOpen, "fs": powerOpen, "os": powerOpen, "io": powerOpen, "readFileSync": powerOpen, "createReadStream": powerOpen, "FileReader": powerOpen, "glob": powerOpen, "walk": powerOpen, "listdir": powerOpen,
	"codecs": powerOpen, "fileinput": powerOpen, "sqlite3": powerOpen, "environ": powerOpen, "getenv": powerOpen, "process": powerOpen, "ENV": powerOpen, "Dir": powerOpen, "opendir": powerOpen, "sysopen": powerOpen, "dofile": powerRun, "loadfile": powerRun,
	"eval": powerEval, "compile": powerEval, "__import__": powerEval, "importlib": powerEval, "getattr": powerEval, "globals": powerEval, "builtins": powerEval, "__builtins__": powerEval, "marshal": powerEval, "pickle": powerEval, "loads": powerEval, "Function": powerEval, "constructor": powerEval, "instance_eval": powerEval,
	"class_eval": powerEval, "send": powerEval, "__send__": powerEval, "const_get": powerEval, "assert": powerEval, "create_function": powerEval, "call_user_func": powerEval, "load": powerEval, "loadstring": powerEval, "vm": powerEval, "do": 0, "base64_decode": powerEval, "pack": powerEval, "unpack": powerEval, "chr": powerEval, "atob": powerEval, "Buffer": powerEval, "bytes": powerEval, "fromhex": powerEval, "b64decode": powerEval, "codecs_decode": powerEval, "intern": powerEval, "run": powerRun,
}

// safeModules may be imported without asking: they compute.
var safeModules = map[string]map[string]bool{
	"python": set("json sys math re datetime collections itertools string random textwrap hashlib pprint statistics decimal fractions time uuid operator functools csv calendar locale platform bisect heapq typing dataclasses enum copy secrets base64 binascii difflib unicodedata numpy pandas html struct keyword"),
	"perl":   set("strict warnings utf8 List::Util POSIX Data::Dumper Time::Local JSON JSON::PP Time::HiRes Scalar::Util open feature bigint Math::BigInt Text::Wrap MIME::Base64 Digest::MD5 Digest::SHA"),
	"ruby":   set("json time date set pp digest securerandom csv yaml"),
	"node":   set("util path url querystring assert crypto string_decoder punycode events os"),
}

// safeWords are names and keywords that compute or print.
var safeWords = set(`print printf puts say echo p pp console log dir table info and or not in is if elif else elsif unless while until for foreach do end then def fn function return lambda let const var my our local True False None true false nil null undefined NaN Infinity
 import from as with pass break continue next last range len int float str repr list dict tuple set sorted sort reverse reversed sum min max abs round map filter reduce zip enumerate any all ord hex oct bin divmod pow isinstance type format join split strip lstrip rstrip replace upper lower
 title startswith endswith find rfind index count append extend pop keys values items get update insert copy encode decode isdigit isalpha splitlines center ljust rjust zfill json dumps dump parse stringify JSON Math floor ceil sqrt random randint choice uuid4 datetime date time now today strftime strptime
 timedelta utcnow isoformat version version_info platform sys stdin stdout readline readlines read argv path Date Number String Array Object length push slice substring substr indexOf includes toString toFixed toUpperCase toLowerCase parseInt parseFloat forEach concat test match exec_ require scalar localtime gmtime
 chomp chop lc uc ucfirst lcfirst length substr index sprintf join keys values exists defined shift unshift splice grep map each wantarray strict warnings use BEGIN END STDIN STDOUT STDERR NR FNR gsub sub scan each_with_index each_line select reject inject first last to_i to_s to_f to_a to_sym upcase downcase capitalize chars lines
 gets ARGF ARGV times upto step freeze new class self this super module attr_reader puts inspect flatten compact uniq group_by sort_by max_by min_by tally zip PHP_EOL PHP_VERSION phpversion var_dump print_r count strlen str_replace strtoupper strtolower implode explode array date_default_timezone_set number_format
 pi e inf maxsize executable byteorder exit quit die warn err stderr __name__ __main__ __version__ setrecursionlimit md5 sha1 sha256 hexdigest Counter defaultdict OrderedDict namedtuple deque chain combinations permutations product indent sort_keys ensure_ascii sep file flush key default cat println show disp typeof instanceof of async await try except catch finally raise throw rescue ensure global nonlocal static void
 it its code table ipairs pairs tostring tonumber string io_ math unpack_ concat insert io_write`)

func set(words string) map[string]bool {
	m := make(map[string]bool, 64)
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// program is a text in some language, taken apart as far as all languages agree.
type program struct {
	words    []string // identifiers outside strings
	literals []string
	locals   map[string]bool
	ticks    bool // back quotes, which run commands in perl, ruby, php and julia
	odd      bool // an unterminated string or the like
}

// code judges inline code conservatively: harmless only if every name in it is known to be.
func (j *judge) code(lang, text string) {
	j.effect(Executes)
	if j.rep.Commands++; j.over {
		return
	}
	if !known(text) {
		j.ask("shell.dynamic", "the code is not wholly known before it runs")
		if j.netSubst {
			j.deny("shell.run-download", "what another machine answers would be run as code")
		}
	}
	if len(text) > MaxBytes/2 {
		j.limit("shell.too-long", "the code is longer than 32 KiB")
		return
	}
	p := scanCode(lang, text)
	if len(p.literals) > MaxCommands {
		j.limit("shell.too-many", "the code holds more than 256 strings")
		return
	}
	var has [8]bool
	for _, w := range p.words {
		has[powers[w]] = true
	}
	has[powerRun] = has[powerRun] || p.ticks
	for _, lit := range p.literals {
		j.suspicious(lit)
	}
	if has[powerRun] || has[powerEval] {
		j.codeRuns(p)
	}
	if has[powerNet] {
		j.codeTalks(p, has[powerRun])
	}
	if has[powerDelete] {
		for _, lit := range p.literals {
			if strings.ContainsAny(lit, "/~.") && !strings.ContainsAny(lit, " \n") {
				j.deletePath(lit, true)
			}
		}
		j.ask("shell.code-delete", "the code deletes files")
	}
	if has[powerWrite] || has[powerOpen] {
		j.codeOpens(p, has[powerWrite])
	}
	if lang == "apple" || lang == "lisp" || lang == "tcl" || lang == "any" || p.odd {
		j.ask("shell.code", "the code is in a language this analysis does not follow")
		return
	}
	for _, w := range p.words {
		if !safeWords[w] && !p.locals[w] && !safeModules[lang][w] && powers[w] == 0 && len(w) > 1 {
			j.ask("shell.code", "the code uses a name that is not known to be harmless: "+plain(w))
			return
		}
	}
}

// codeRuns judges the commands that code would start: every string in it, and all of them together.
func (j *judge) codeRuns(p program) {
	j.ask("shell.code-exec", "the code starts other programs or evaluates text")
	var joined []string
	for _, lit := range p.literals {
		if len(lit) > 1 && lit[0] == '-' || !strings.ContainsAny(lit, "\n") {
			joined = append(joined, lit)
		}
		if isShell(lit) {
			j.deny("shell.escape", "the code starts a shell")
		}
		j.tryShell(lit)
	}
	if len(joined) > 1 {
		j.tryShell(strings.Join(joined, " "))
	}
}

// tryShell judges a string as a command line if it could be one; only what is forbidden counts, since most strings are no commands.
func (j *judge) tryShell(text string) {
	if j.parsed += len(text); j.parsed > maxParsed || j.stopped() {
		j.limit("shell.too-long", "the code unfolds to much more than 64 KiB")
		return
	}
	if j.depth > MaxDepth-8 || !j.isCommand(text) {
		return
	}
	k := newJudge(j.env)
	k.cwd, k.depth, k.inner = j.cwd, j.depth+1, 1
	k.rep.Commands, k.steps, k.parsed, k.paths = j.rep.Commands, j.steps, j.parsed, j.paths
	k.source(text)
	j.rep.Commands, j.steps, j.parsed, j.paths = k.rep.Commands, k.steps, k.parsed, k.paths
	j.over = j.over || k.over
	if k.level != Forbidden {
		return
	}
	for _, f := range k.rep.Findings {
		if f.Level == Forbidden && f.Code != "shell.unparsed" && f.Code != "shell.escape" {
			j.find(Forbidden, f.Code, f.Reason)
		}
	}
	j.rep.Effects |= k.rep.Effects
}

func (j *judge) codeTalks(p program, runs bool) {
	j.effect(Network)
	if runs {
		j.deny("shell.remote-shell", "the code talks to another machine and starts programs")
	}
	for _, lit := range p.literals {
		if isURL(lit) || strings.Count(lit, ".") == 3 && isDigits(strings.ReplaceAll(lit, ".", "")) {
			j.host(lit)
		}
	}
	j.ask("shell.code-net", "the code talks to another machine")
}

// codeOpens judges files the code names.
func (j *judge) codeOpens(p program, writes bool) {
	for _, lit := range p.literals {
		switch lit {
		case "w", "a", "w+", "a+", "wb", "ab", "x", "r+", "wt", "at", ">", ">>", "+<":
			writes = true
		}
	}
	for _, lit := range p.literals {
		if !strings.ContainsAny(lit, "/.~") || strings.ContainsAny(lit, " \n") || len(lit) < 2 {
			continue
		}
		j.readPath(lit)
		if writes {
			j.writePath(lit)
		}
	}
	j.ask("shell.code-file", "the code opens files or looks at its surroundings")
}

// scanCode splits code into names and strings.
func scanCode(lang, s string) program {
	p := program{locals: make(map[string]bool, 4)}
	hash := lang != "node" && lang != "lisp" && lang != "apple" && lang != "lua"
	prev := ""
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '#' && hash && (i == 0 || s[i-1] == ' ' || s[i-1] == '\n'), c == '/' && i+1 < len(s) && s[i+1] == '/' && (lang == "node" || lang == "php"):
			for i < len(s) && s[i] != '\n' {
				i++
			}
		case c == '"' || c == '\'' || c == '`':
			lit, n, ok := codeString(s[i:], c)
			p.odd = p.odd || !ok
			p.literals = append(p.literals, lit)
			p.ticks = p.ticks || c == '`'
			if c != '\'' && (strings.Contains(lit, "#{") || strings.Contains(lit, "${") || strings.Contains(lit, "@{[")) {
				p.words = append(p.words, scanCode(lang, strings.NewReplacer("#{", " ", "${", " ", "@{[", " ").Replace(lit)).words...)
			}
			i += n
			prev = ""
		case wordByte(c):
			k := i
			for k < len(s) && (wordByte(s[k]) || lang == "perl" && s[k] == ':' && k+1 < len(s) && s[k+1] == ':' || lang == "perl" && s[k] == ':' && s[k-1] == ':') {
				k++
			}
			w := s[i:k]
			if (lang == "perl" || lang == "ruby") && (w == "s" || w == "m" || w == "tr" || w == "y" || w == "qr" || w == "q" || w == "qq" || w == "qw" || w == "qx") && k < len(s) && strings.IndexByte("/|!{,#@(", s[k]) >= 0 && !strings.HasSuffix(prev, "$") {
				n, inner := perlQuote(s[k:], w)
				if inner != "" {
					p.words = append(p.words, scanCode(lang, inner).words...)
				}
				if w == "qx" {
					p.ticks = true
				}
				i = k + n
				continue
			}
			if c < '0' || c > '9' {
				p.words = append(p.words, w)
				p.local(s[k:], w, prev)
				prev = w
			}
			i = k
		default:
			if c == '$' || c == '@' || c == '%' || c == '&' && lang == "perl" {
				prev = "$"
				k := i + 1
				for k < len(s) && wordByte(s[k]) {
					k++
				}
				if lang != "node" && lang != "python" && k > i+1 {
					if w := s[i+1 : k]; powers[w] != powerOpen || w != "ENV" {
						p.locals[w] = true
					}
				}
			} else if c == '|' && lang == "ruby" {
				if k := strings.IndexByte(s[i+1:], '|'); k > 0 && k < 32 {
					for _, w := range strings.FieldsFunc(s[i+1:i+1+k], func(r rune) bool { return !wordByte(byte(r)) }) {
						p.locals[w] = true
					}
				}
			} else if c == '/' && (lang == "perl" || lang == "ruby" || lang == "node") && (prev == "" || prev == "if" || prev == "unless" || prev == "and" || prev == "split" || prev == "grep") {
				if k := strings.IndexByte(s[i+1:], '/'); k > 0 && !strings.Contains(s[i+1:i+1+k], "\n") {
					i += k + 1
				}
			}
			i++
		}
	}
	return p
}

// local notes names that the code itself defines.
func (p *program) local(rest, w, prev string) {
	switch prev {
	case "for", "let", "const", "var", "my", "our", "def", "lambda", "local", "as":
		p.locals[w] = powers[w] == 0
		return
	}
	t := strings.TrimLeft(rest, " ")
	if strings.HasPrefix(t, "=") && !strings.HasPrefix(t, "==") && !strings.HasPrefix(t, "=~") || strings.HasPrefix(t, "+=") || strings.HasPrefix(t, ".=") {
		p.locals[w] = powers[w] == 0
	}
}

func wordByte(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// codeString reads a string literal, triple-quoted ones included.
func codeString(s string, q byte) (lit string, n int, ok bool) {
	if triple := strings.Repeat(string(q), 3); strings.HasPrefix(s, triple) {
		if k := strings.Index(s[3:], triple); k >= 0 {
			return s[3 : 3+k], k + 6, true
		}
		return s[3:], len(s), false
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			end := min(i+10, len(s))
			if d := ansiC(s[i:min(i+2, end)]); len(d) == 1 {
				b.WriteString(d)
				i++
			} else if num, w := escapeNumber(s[i+1 : end]); w > 0 {
				writeCode(&b, num, s[i+1])
				i += w
			} else if i+1 < len(s) {
				i++
				b.WriteByte(s[i])
			}
		case q:
			return b.String(), i + 1, true
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), len(s), false
}

// perlQuote skips s///, m//, tr/// and q// constructs; inner is the part that is code (s///e).
func perlQuote(s, op string) (n int, inner string) {
	open := s[0]
	closer := open
	if k := strings.IndexByte("{(", open); k >= 0 {
		closer = "})"[k]
	}
	parts := 1
	if op == "s" || op == "tr" || op == "y" {
		parts = 2
	}
	i, start := 1, 1
	last := ""
	for ; parts > 0 && i < len(s); i++ {
		if s[i] == '\\' {
			i++
			continue
		}
		if s[i] == closer {
			last = s[start:i]
			parts--
			if parts > 0 && closer != open {
				for i+1 < len(s) && s[i+1] != open {
					i++
				}
				i++
			}
			start = i + 1
		}
	}
	flags := i
	for i < len(s) && wordByte(s[i]) {
		i++
	}
	if op == "s" && i <= len(s) && flags <= i && strings.Contains(s[min(flags, len(s)):min(i, len(s))], "e") {
		inner = last
	}
	return min(i, len(s)), inner
}
