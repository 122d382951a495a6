package shell

import (
	_ "embed" // the command table
	"fmt"
	"strings"
	"sync"
)

//go:embed commands.txt
var commandsText string

// class is what running a program means before its options and operands are looked at.
type class uint8

const (
	classNone  class = iota // not described: a Question
	classOK                 // nothing but what its operands and options say
	classBuild              // runs code of the project
	classFetch              // takes named packages from a registry
	classNet                // reads from a remote service
	classAsk
	classDeny
	classWrap // runs the command that follows
	classCli  // only a name for its subcommands
)

var classNames = map[string]class{
	"ok": classOK, "build": classBuild, "fetch": classFetch, "net": classNet, "ask": classAsk, "deny": classDeny, "wrap": classWrap, "cli": classCli,
}

// spec describes one program or subcommand.
type spec struct {
	class  class
	code   string // for ask and deny: a key of objections
	opts   map[string]byte
	roles  string // what the operands are, see commands.txt; the last role repeats
	skip   int    // for wrap: operands before the command
	strict bool   // options not in opts are a Question
	single bool   // options are whole words after one dash
	first  bool   // options end at the first operand
	verbs  bool   // judged by the first verb among the words
	at     string // what it must reach: a host, socket, remote, or a name of Env.Services
	links  bool   // makes an executable unless told to stop before
	subs   map[string]*spec
	prefix []prefixSpec // subcommands given as "list-*"
}

type prefixSpec struct {
	prefix string
	spec   *spec
}

// objection is the standard answer for a code of the table.
type objection struct {
	reason  string
	effects EffectSet
}

var objections = map[string]objection{
	"account":     {"changes users, groups, passwords or permissions of the machine", Privilege},
	"delete":      {"deletes files or data", Deletes},
	"disk":        {"changes disks, partitions or file systems", Writes | Privilege},
	"exec":        {"runs a program chosen by its arguments or configuration", Executes},
	"firewall":    {"changes the network protection of the machine", Privilege},
	"history":     {"can discard work or history", Deletes},
	"install":     {"installs or removes software", Writes | Executes},
	"interactive": {"opens an interactive program that can run commands", Executes},
	"kernel":      {"changes the running kernel", Privilege},
	"listen":      {"opens the machine to connections", Network},
	"mode":        {"changes permissions or owners of files", Writes},
	"net":         {"sends to or fetches from another machine", Network},
	"persist":     {"leaves something that runs later", Persists},
	"power":       {"stops or restarts the machine", Privilege},
	"privilege":   {"acts with the rights of another user", Privilege},
	"process":     {"stops, traces or changes other processes", Privilege},
	"remote":      {"changes something on a remote service", Network | Writes},
	"secret":      {"reads or prints credentials", Reads},
	"security":    {"switches off or weakens a protection of the machine", Privilege},
	"service":     {"starts, stops or changes services", Privilege},
	"settings":    {"changes settings outside the project", Writes},
	"shell":       {"gives a shell or its like to whatever comes next", Executes},
	"state":       {"changes state that is not only files of the project", Writes},
	"upload":      {"sends files or data to another machine", Network},
	"wipe":        {"overwrites data so that it cannot be restored", Deletes},
}

// table is the parsed command table: built once from embedded text, never changed.
var table = sync.OnceValue(func() map[string]*spec {
	t, err := parseTable(commandsText)
	if err != nil {
		panic("shell: " + err.Error())
	}
	return t
})

// parseTable reads the notation described at the head of commands.txt.
func parseTable(text string) (map[string]*spec, error) {
	t := make(map[string]*spec, 4096)
	r := reader{free: make([]spec, 0, 512)}
	n := -1
	for line := range strings.SplitSeq(text, "\n") {
		n++
		if line == "" || line[0] == '#' {
			continue
		}
		if i := strings.Index(line, " #"); i >= 0 {
			line = line[:i]
		}
		f := r.split(line)
		if len(f) == 0 {
			continue
		}
		if len(f) < 2 {
			return nil, fmt.Errorf("commands.txt:%d: want a class and a name, found %q", n+1, line)
		}
		if err := r.line(t, f); err != nil {
			return nil, fmt.Errorf("commands.txt:%d: %w", n+1, err)
		}
	}
	return t, nil
}

// reader holds what reading one table needs again and again: thousands of descriptions are cut from a few slabs, words from one slice.
type reader struct {
	free  []spec
	words []string
}

// make returns a new, empty description.
func (r *reader) make() *spec {
	if len(r.free) == cap(r.free) {
		r.free = make([]spec, 0, cap(r.free))
	}
	r.free = r.free[:len(r.free)+1]
	return &r.free[len(r.free)-1]
}

// split cuts a line into its words, which are valid until the next call.
func (r *reader) split(line string) []string {
	r.words = r.words[:0]
	for w := range strings.FieldsSeq(line) {
		r.words = append(r.words, w)
	}
	return r.words
}

// line reads one description.
func (r *reader) line(t map[string]*spec, f []string) error {
	name, code, _ := strings.Cut(f[0], ":")
	cl, ok := classNames[name]
	if !ok {
		return fmt.Errorf("want a class, found %q", f[0])
	}
	if _, ok := objections[code]; (cl == classAsk || cl == classDeny) && !ok {
		return fmt.Errorf("want a known code after %s:, found %q", name, code)
	}
	words := 1
	for words < len(f) && isSubWord(f[words]) {
		words++
	}
	var attrs spec
	for _, tok := range f[words:] {
		if err := attrs.attribute(tok); err != nil {
			return err
		}
	}
	attrs.class, attrs.code = cl, code
	return r.insert(t, f[1:words], &attrs)
}

func isSubWord(s string) bool {
	return (s[0] != '-' && s[0] != '+' || !strings.Contains(s, ":")) && !strings.Contains(s, "=") && !flagWords[s]
}

// flagWords are the attributes without a value.
var flagWords = set("strict single first verbs links")

// attribute reads one token after the names.
func (s *spec) attribute(tok string) error {
	key, val, _ := strings.Cut(tok, "=")
	switch {
	case tok[0] == '-' || tok[0] == '+':
		i := strings.LastIndexByte(tok, ':')
		if i < 2 || i != len(tok)-2 || strings.IndexByte("vrwenx?!.sdpu", tok[i+1]) < 0 {
			return fmt.Errorf("want an option and its rule, found %q", tok)
		}
		if s.opts == nil {
			s.opts = make(map[string]byte, 4)
		}
		for o := range strings.SplitSeq(tok[:i], ",") {
			s.opts[o] = tok[i+1]
		}
	case tok == "strict":
		s.strict = true
	case tok == "single":
		s.single = true
	case tok == "first":
		s.first = true
	case tok == "verbs":
		s.verbs = true
	case tok == "links":
		s.links = true
	case key == "at" && val != "":
		s.at = val
	case key == "op" && val != "":
		s.roles = val
	case key == "skip" && len(val) == 1 && isDigits(val):
		s.skip = int(val[0] - '0')
	default:
		return fmt.Errorf("want an attribute, found %q", tok)
	}
	return nil
}

// insert puts attrs under every combination of the comma-separated names.
func (r *reader) insert(t map[string]*spec, words []string, attrs *spec) error {
	for name := range strings.SplitSeq(words[0], ",") {
		s := t[name]
		if s == nil {
			s = r.make()
			t[name] = s
		}
		if len(words) > 1 {
			if strings.HasSuffix(name, "*") && name != "*" {
				return fmt.Errorf("want subcommands of a full name, found them under %q", name)
			}
			if s.subs == nil {
				s.subs = make(map[string]*spec, 8)
			}
			if err := r.insert(s.subs, words[1:], attrs); err != nil {
				return err
			}
			if strings.Contains(words[1], "*") {
				s.gather()
			}
			continue
		}
		if s.class != classNone {
			return fmt.Errorf("want each name once, found %q again", name)
		}
		subs, prefix := s.subs, s.prefix
		*s = *attrs
		s.subs, s.prefix = subs, prefix
	}
	return nil
}

// gather moves "x-*" entries of subs into prefix.
func (s *spec) gather() {
	for _, name := range sortedKeys(s.subs) {
		if p, ok := strings.CutSuffix(name, "*"); ok && p != "" {
			s.prefix = append(s.prefix, prefixSpec{p, s.subs[name]})
			delete(s.subs, name)
		}
	}
}

// sub finds the description of a subcommand word.
func (s *spec) sub(word string) *spec {
	if s == nil {
		return nil
	}
	if c := s.subs[word]; c != nil {
		return c
	}
	for _, p := range s.prefix {
		if strings.HasPrefix(word, p.prefix) {
			return p.spec
		}
	}
	return nil
}

// rest describes every subcommand that has no line of its own, written as *.
func (s *spec) rest() *spec { return s.subs["*"] }
