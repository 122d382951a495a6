package host

import (
	"strings"
	"unicode/utf8"
)

// FindAll returns every host mentioned in free text, each once, in order of appearance: URLs with any scheme, links and images of
// Markdown and HTML, bash's /dev/tcp, IP addresses, mail domains, and bare names that are clearly hosts. An address that is plainly
// meant as one and cannot be parsed is returned with class Invalid, so that a caller sees that something is there.
func FindAll(text string) []Host {
	f := finder{text: text, seen: make(map[string]bool)}
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == ':' && strings.HasPrefix(text[i:], "://"):
			i = f.url(i)
		case c == '/' && strings.HasPrefix(text[i:], "//") && f.linkBefore(i):
			i = f.relative(i + 2)
		case c == '/' && (strings.HasPrefix(text[i:], "/dev/tcp/") || strings.HasPrefix(text[i:], "/dev/udp/")):
			i = f.device(i + len("/dev/tcp/"))
		case nameByte(c) && c != '-' && c != '.' && (i == 0 || !nameByte(text[i-1])):
			i = f.bare(i)
		default:
			i++
		}
	}
	return f.found
}

type finder struct {
	text  string
	found []Host
	seen  map[string]bool
}

func (f *finder) add(h Host) {
	key := h.String()
	if h.user {
		key += "@"
	}
	if !f.seen[key] {
		f.seen[key] = true
		f.found = append(f.found, h)
	}
}

// parse adds the host of an address that is meant as one, parsed or not.
func (f *finder) parse(addr string) {
	if h, err := Parse(addr); err == nil {
		f.add(h)
	} else if addr != "" && !strings.HasPrefix(addr, "file:") {
		f.add(Host{name: addr[strings.Index(addr, "//")+len("//"):]})
	}
}

// url handles "://" at i and returns where to go on.
func (f *finder) url(i int) int {
	start := i
	for start > 0 && (letter(f.text[start-1]) || digit(f.text[start-1]) || strings.IndexByte("+-.", f.text[start-1]) >= 0) {
		start--
	}
	for start < i && !letter(f.text[start]) {
		start++
	}
	end := authorityEnd(f.text, i+3)
	scheme := strings.ToLower(f.text[start:i])
	switch {
	case scheme == "file" || hostless[scheme] || end == i+3:
	case strings.ContainsAny(f.text[i+3:end], "${}%*<>"):
		// A template or a pattern: no host to name.
	default:
		f.parse(scheme + "://" + f.text[i+3:end])
	}
	return max(end, i+3)
}

// authorityEnd finds the end of user, host and port. Characters that only look like an end to one client stay inside, so that Parse refuses them.
func authorityEnd(s string, i int) int {
	for i < len(s) {
		c := s[i]
		if c == '/' || c == '?' || c == '#' || c == ' ' || c == '\t' || c == '\n' || c == '\r' || strings.IndexByte("\"'`<>)(|,;^", c) >= 0 {
			break
		}
		if (c == ']' || c == '[') && !strings.HasPrefix(s[i:], "[:") && !bracketed(s, i) {
			break
		}
		i++
	}
	for i > 0 && (s[i-1] == '!' || s[i-1] == '*' || s[i-1] == '_' || s[i-1] == '.' && (i == len(s) || s[i] != '/')) {
		i--
	}
	return i
}

// bracketed reports whether the bracket at i belongs to an IPv6 literal.
func bracketed(s string, i int) bool {
	if s[i] == '[' {
		end := strings.IndexByte(s[i:min(len(s), i+60)], ']')
		return end > 1 && strings.IndexByte(s[i:i+end], ':') > 0
	}
	open := strings.LastIndexByte(s[max(0, i-60):i], '[')
	return open >= 0 && strings.IndexByte(s[max(0, i-60)+open:i], ':') >= 0
}

// linkBefore reports whether the text before i introduces a link target, so that "//" begins an address rather than a comment.
func (f *finder) linkBefore(i int) bool {
	return i > 0 && strings.IndexByte("(\"'=<", f.text[i-1]) >= 0
}

func (f *finder) relative(i int) int {
	end := authorityEnd(f.text, i)
	if name := f.text[i:end]; strings.Contains(name, ".") {
		if h, err := Parse("//" + name); err == nil {
			f.add(h)
		}
	}
	return max(end, i)
}

func (f *finder) device(i int) int {
	end := i
	for end < len(f.text) && f.text[end] != '/' && f.text[end] > ' ' {
		end++
	}
	if end > i && !strings.ContainsAny(f.text[i:end], "${}") {
		f.parse("//" + f.text[i:end])
	}
	return end
}

// bare handles a run of name characters that starts at i.
func (f *finder) bare(i int) int {
	end := i
	for end < len(f.text) && nameByte(f.text[end]) {
		end++
	}
	if strings.HasPrefix(f.text[end:], "://") {
		return end
	}
	word := strings.TrimRight(f.text[i:end], ".-_")
	if strings.IndexByte(word, '.') < 0 {
		if word == "localhost" && strings.HasPrefix(f.text[end:], ":") {
			f.parse("//localhost")
		}
		return end
	}
	if f.isHost(word, i, i+len(word)) {
		if h, err := Parse("//" + word); err == nil {
			f.add(h)
		}
	}
	return end
}

// isHost decides whether a dotted word at [start,end) is a host rather than a file, a field or a sentence.
func (f *finder) isHost(word string, start, end int) bool {
	if _, isIP, err := parseIPv4(strings.ToLower(word)); isIP {
		return err == nil && strings.Count(word, ".") == 3 && !strings.Contains(word, "x") && !precededBy(f.text, start, "v", "=", "-")
	}
	tld := strings.ToLower(word[strings.LastIndexByte(word, '.')+1:])
	kind, known := suffixes[tld]
	if !known {
		return strings.HasPrefix(strings.ToLower(word), "www.") || strings.HasPrefix(tld, "xn--")
	}
	mail := start > 0 && f.text[start-1] == '@'
	path := start > 0 && (f.text[start-1] == '/' || f.text[start-1] == '~' || f.text[start-1] == '\\')
	if path && !mail {
		return false
	}
	call := end < len(f.text) && f.text[end] == '('
	if call || upperAfterDot(word) {
		return false
	}
	if kind == sure || mail || strings.HasPrefix(word, "www.") {
		return true
	}
	return hostTail(f.text[end:])
}

// hostTail reports whether what follows a name is a port or a path.
func hostTail(rest string) bool {
	if strings.HasPrefix(rest, ":") {
		return len(rest) > 1 && digit(rest[1])
	}
	return len(rest) > 1 && rest[0] == '/' && rest[1] > ' '
}

func precededBy(text string, start int, marks ...string) bool {
	for _, m := range marks {
		if strings.HasSuffix(text[:start], m) {
			return true
		}
	}
	return false
}

// upperAfterDot reports a field access such as Config.Name, which no host is written like.
func upperAfterDot(word string) bool {
	for i := 1; i < len(word); i++ {
		if word[i-1] == '.' && word[i] >= 'A' && word[i] <= 'Z' {
			return strings.ToUpper(word) != word
		}
	}
	return false
}

func nameByte(c byte) bool {
	return letter(c) || digit(c) || c == '-' || c == '.' || c == '_' || c >= utf8.RuneSelf
}

type suffix uint8

const (
	_      suffix = iota
	sure          // names nothing but hosts
	likely        // also a file extension, a word or an attribute: needs a port, a path or a mail sign
)

// suffixes are the top-level domains that bare names are recognised by.
var suffixes = suffixTable(map[suffix]string{
	sure: "com net edu gov mil biz dev cloud online xyz website solutions agency onion icu cyou sbs monster ninja ovh " +
		"io co uk de fr nl eu ru cn jp br au ca ch dk fi pl cz gr hu ro bg ua kr tw hk sg nz mx ar gg ly pw su moe",
	likely: "org ai app me sh py rs pl md so zip mov cc to in is im st ps cat name pro id do vi ml tk gq ga cf la ms am by as ac ad ag sc " +
		"run box dog plus info test local internal lan corp home zone rest bar foo new page one how play now art mk tf int site tech store " +
		"host space club live shop top link click work world email systems network digital social chat media news blog wiki tools services " +
		"support global today company center group it es se no at be pt ie tr il ae sa za ng ke eg my th vn ph cl pe ve uy us fm tv gay " +
		"lol buzz fun ws rocks",
})

func suffixTable(rows map[suffix]string) map[string]suffix {
	t := make(map[string]suffix)
	for kind, words := range rows {
		for w := range strings.FieldsSeq(words) {
			t[w] = max(t[w], kind)
		}
	}
	return t
}
