package gate

import (
	"fmt"
	"html"
	"slices"
	"strings"

	"passepartout/internal/host"
	"passepartout/internal/proto"
)

// judgeNetwork is check 10 of the dispatcher: every machine an action names. What
// is on the list passes, what only this machine can reach is refused, the rest
// asks. Hosts inside commands are judged by the shell check with the same list.
func judgeNetwork(v *view) Verdict {
	verdict := Pass()
	tighten := func(one Verdict) {
		if one.Decision < verdict.Decision {
			verdict = one
		}
	}
	for _, a := range v.args {
		switch a.means {
		case proto.URL:
			tighten(v.address(a.text))
			continue
		case proto.Outbound:
			tighten(v.message(a.text))
		default:
		}
		if v.facts.Effect() == proto.Network {
			tighten(v.mentioned(a))
		}
	}
	return verdict
}

// address judges one address that would be fetched.
func (v *view) address(s string) Verdict {
	h, err := host.Parse(s)
	if err != nil {
		return Verdict{Code: "network.unclear", Reason: err.Error()}
	}
	switch sc := h.Scheme(); {
	case sc != "" && sc != "http" && sc != "https":
		return Verdict{Code: "network.scheme", Reason: fmt.Sprintf("%s is fetched by %s: want http or https", quote(s), sc)}
	case h.Class() == host.Invalid || h.Class() == host.Metadata:
		return Verdict{Code: "network.metadata", Reason: fmt.Sprintf("%s hands out a machine's credentials", h)}
	case v.hosts.Allows(h) && !h.HasUser():
		return Pass()
	case h.Class() == host.Private || h.Class() == host.Loopback:
		return Verdict{Code: "network.private", Reason: fmt.Sprintf("%s can only be reached from this machine or its own network", h)}
	case h.HasUser():
		return Verdict{Decision: Ask, Code: "network.user", Reason: fmt.Sprintf("%s names a user before the host %s", quote(s), h)}
	}
	return Verdict{Decision: Ask, Code: "network.unlisted", Reason: fmt.Sprintf("%s is not on the list of hosts", h)}
}

// mentioned judges the hosts in the other arguments of an action that goes to the
// network anyway: a proxy, a referrer, a place to send the result to.
func (v *view) mentioned(a arg) Verdict {
	if h, ok := v.unlisted(a.text); ok {
		return Verdict{Decision: Ask, Code: "network.unlisted", Reason: fmt.Sprintf("argument %s names %s, which is not on the list of hosts", a.name, h)}
	}
	return Pass()
}

// message judges the addresses in a text somebody will read. A picture is
// fetched without a click, so it may come from listed hosts only; a link may lead
// anywhere, as long as it carries nothing away and asks for nothing.
func (v *view) message(text string) Verdict {
	if !strings.ContainsAny(text, ":/.&\\") {
		return Pass()
	}
	low := strings.ToLower(text)
	if where, ok := v.disguised(low); ok {
		return Verdict{Code: "network.embedded", Reason: fmt.Sprintf("the text makes its reader's program fetch from %s, by an address in disguise", quote(where))}
	}
	links := linksIn(text, low)
	if len(links) > 0 && !v.outbound() && v.read(links) {
		return Pass()
	}
	foreign := slices.DeleteFunc(host.FindAll(text), func(h host.Host) bool { return v.hosts.Allows(h) })
	if len(foreign) > 0 {
		if h, ok := v.embedded(low); ok {
			return Verdict{Code: "network.embedded", Reason: fmt.Sprintf("the text makes its reader's program fetch from %s", h)}
		}
	}
	if len(foreign) > 0 && len(links) > 0 && containsAny(low, soliciting) {
		return Verdict{Decision: Ask, Code: "network.solicits", Reason: fmt.Sprintf("the text wants credentials, or something run, and links to %s", foreign[0])}
	}
	for _, l := range links {
		if why := v.suspicious(l); why != "" {
			return Verdict{Decision: Ask, Code: "network.link", Reason: fmt.Sprintf("the link %s %s", quote(l.target), why)}
		}
	}
	if taint := v.facts.Signal.Taint; len(foreign) > 0 && len(links) > 0 && (taint.Untrusted || taint.Private) {
		return Verdict{Decision: Ask, Code: "network.link", Reason: fmt.Sprintf("the text links to %s after reading what others wrote or what is private", foreign[0])}
	}
	return Pass()
}

// read reports whether the session has read every one of these addresses, or the
// requester named it. Shown again to the owner they carry nothing new away.
func (v *view) read(links []link) bool {
	return !slices.ContainsFunc(links, func(l link) bool {
		if shown, named := shownHost(l.label); named {
			if h, err := host.Parse(l.target); err != nil || h.Name() != shown.Name() {
				return true // the words around it are new, and they lie
			}
		}
		return !slices.Contains(v.facts.Seen, l.target) &&
			!slices.ContainsFunc(v.facts.Said, func(s string) bool { return strings.Contains(s, l.target) })
	})
}

// Links lists the addresses in a text that a reader's program would make
// clickable, for [Facts.Seen].
func Links(text string) []string {
	var out []string
	for _, l := range linksIn(text, strings.ToLower(text)) {
		out = append(out, l.target)
	}
	return out
}

// embedded finds a host that is not listed in what a reader's program loads by
// itself. low is the text in lower case.
func (v *view) embedded(low string) (host.Host, bool) {
	const most = 256 // beyond so many pictures the whole text counts as one
	seen := 0
	for _, mark := range fetching {
		for from := 0; from < len(low); {
			i := strings.Index(low[from:], mark)
			if i < 0 {
				break
			}
			from += i
			window := low[from:]
			if seen++; seen <= most {
				window = element(window, len(mark))
			}
			if h, ok := v.unlisted(window); ok || seen > most {
				return h, ok
			}
			from += len(mark)
		}
	}
	if !strings.Contains(low, "![") {
		return host.Host{}, false
	}
	for line := range strings.Lines(low) { // pictures may name their address elsewhere: [name]: address
		if _, address, ok := strings.Cut(line, "]:"); ok && strings.HasPrefix(strings.TrimSpace(line), "[") {
			if h, ok := v.unlisted(address); ok {
				return h, true
			}
		}
	}
	return host.Host{}, false
}

// disguised finds what a reader's program loads by itself from an address that only
// that program reads as one: without a scheme, with too few slashes or the wrong
// ones, with parts of it in entities, escapes or percent signs. low is the text in
// lower case.
func (v *view) disguised(low string) (where string, found bool) {
	if !strings.ContainsAny(low, `\&%`) && !oddSlashes(low) {
		return "", false
	}
	for _, mark := range fetching {
		for from := 0; from < len(low); {
			i := strings.Index(low[from:], mark)
			if i < 0 {
				break
			}
			from += i
			window := element(low[from:], len(mark))
			decoded := html.UnescapeString(window)
			for _, read := range [...]string{strings.ReplaceAll(decoded, `\`, "/"), strings.ReplaceAll(decoded, `\`, "")} {
				if where, ok := v.fetched(read, window); ok {
					return where, true
				}
			}
			from += len(mark)
		}
	}
	return "", false
}

// oddSlashes reports two slashes that no scheme stands before, or a scheme of the web
// without two slashes behind it.
func oddSlashes(s string) bool {
	for i := range len(s) {
		switch {
		case s[i] == '/' && strings.HasPrefix(s[i:], "//") && (i == 0 || s[i-1] != ':'):
			return true
		case s[i] == ':' && (strings.HasSuffix(s[:i], "http") || strings.HasSuffix(s[:i], "https")) && !strings.HasPrefix(s[i:], "://"):
			return true
		}
	}
	return false
}

// fetched finds a host that is not listed behind any two slashes, or behind a scheme
// of the web, in a text as a reader's program decodes it. What cannot be read is not
// listed. An address that stands in the written text as everybody spells it is no
// disguise: see [view.embedded].
func (v *view) fetched(decoded, written string) (where string, found bool) {
	for i := range len(decoded) {
		rest := ""
		switch {
		case strings.HasPrefix(decoded[i:], "//") && (i == 0 || decoded[i-1] != '/'):
			rest = strings.TrimLeft(decoded[i:], "/")
		case strings.HasPrefix(decoded[i:], "http:"), strings.HasPrefix(decoded[i:], "https:"):
			_, rest, _ = strings.Cut(decoded[i:], ":")
			rest = strings.TrimLeft(rest, "/")
		}
		if rest == "" || rest[0] <= ' ' {
			continue
		}
		authority := rest[:targetLen(rest)]
		if end := strings.IndexAny(authority, "/?#)"); end >= 0 {
			authority = authority[:end]
		}
		h, err := host.Parse("//" + authority)
		if err == nil && (v.hosts.Allows(h) || strings.Contains(written, "://"+authority)) {
			continue
		}
		return authority, true
	}
	return "", false
}

// element is the tag, picture or line that begins with a mark.
func element(s string, mark int) string {
	const far = 600
	s = s[:min(len(s), far)]
	if i := strings.IndexAny(s[mark:], ")>"); i >= 0 {
		return s[:mark+i]
	}
	return s
}

func (v *view) unlisted(text string) (host.Host, bool) {
	for _, h := range host.FindAll(text) {
		if !v.hosts.Allows(h) {
			return h, true
		}
	}
	return host.Host{}, false
}

// fetching are the beginnings of what a reader's program loads by itself.
var fetching = []string{
	"![", "<img", "<iframe", "<script", "<link", "<svg", "<object", "<embed", "<video", "<audio", "<source", "<track", "<image", "<meta", "<base",
	"<form", "<input", "<body", "<style", "url(", "@import", "src=", "srcset=", "background=", "poster=", "#+include", "#+setupfile",
}

// soliciting are the words of somebody who wants a credential, or wants the
// reader to run something for them.
var soliciting = []string{
	"password", "passphrase", "api key", "api-key", "apikey", "access key", "secret key", "credential", "recovery phrase", "seed phrase", "private key",
	"log in", "login", "sign in", "sign-in", "signin", "authenticate", "verify your", "confirm your", "one-time code", "2fa", "mfa code", "card number",
	"your token", "your key", "your account", "| sh", "|sh", "| bash", "|bash", "| zsh", "| sudo", "| python", "|python", "| iex", "|iex", "sh -c", "bash <(",
}

func containsAny(s string, subs []string) bool {
	return slices.ContainsFunc(subs, func(sub string) bool { return strings.Contains(s, sub) })
}

// A link is one address in a text, with the words it is shown by, if any.
type link struct{ target, label string }

// linksIn finds what a reader's program would make clickable: anything with
// "scheme://", and the few schemes that do without. low is the text in lower case.
func linksIn(text, low string) []link {
	var out []link
	for from := 0; from < len(text); {
		i := strings.Index(text[from:], "://")
		if i < 0 {
			break
		}
		i += from
		start := i
		for start > 0 && (nameByte(text[start-1]) || text[start-1] == '+') {
			start--
		}
		end := i + 3 + targetLen(text[i+3:])
		target := strings.TrimRight(text[start:end], ".,;:!?)")
		out = append(out, link{target, label(text[:start], text[end:])})
		from = end
	}
	for _, scheme := range [...]string{"mailto:", "javascript:", "data:text", "vbscript:"} {
		if i := strings.Index(low, scheme); i >= 0 {
			out = append(out, link{low[i : i+targetLen(low[i:])], ""})
		}
	}
	return out
}

// targetLen is how far a link's target reaches.
func targetLen(s string) int {
	if i := strings.IndexAny(s, " \t\r\n<>\"'`|[]{}"); i >= 0 {
		return i
	}
	return len(s)
}

// label finds the words shown for a target that stands between before and after:
// [label](target) or [[target][label]].
func label(before, after string) string {
	const far = 256 // a longer label is none
	before = before[max(0, len(before)-far):]
	if rest, ok := strings.CutSuffix(strings.TrimRight(before, " <"), "]("); ok {
		if i := strings.LastIndexByte(rest, '['); i >= 0 {
			return rest[i+1:]
		}
	}
	if rest, ok := strings.CutPrefix(after, "]["); ok && strings.HasSuffix(before, "[[") {
		words, _, _ := strings.Cut(rest[:min(len(rest), far)], "]")
		return words
	}
	return ""
}

// suspicious says what is wrong with a link, "" when nothing is.
func (v *view) suspicious(l link) string {
	scheme, _, _ := strings.Cut(strings.ToLower(l.target), ":")
	switch scheme {
	case "http", "https", "ftp", "git", "ssh":
	case "mailto":
		if strings.ContainsRune(l.target, '?') {
			return "would send a prepared letter"
		}
		return ""
	default:
		return "is opened by another program than a browser"
	}
	h, err := host.Parse(l.target)
	if err != nil {
		return "does not name one host to everybody"
	}
	if v.hosts.Allows(h) && !h.HasUser() {
		return ""
	}
	shown, named := shownHost(l.label)
	switch rest := afterHost(l.target); {
	case h.Class() == host.Metadata:
		return "leads to a service that hands out credentials"
	case h.HasUser():
		return "names a user before the host"
	case strings.HasPrefix(h.Name(), "xn--") || strings.Contains(h.Name(), ".xn--"):
		return "has a host spelt with foreign letters"
	case named && shown.Name() != h.Name():
		return "is shown as another host"
	case strings.ContainsAny(rest, "?#="), opaque(rest):
		return "carries data to a host that is not on the list"
	}
	return ""
}

// shownHost is the host that a link's words name, if they name one.
func shownHost(label string) (host.Host, bool) {
	if found := host.FindAll(label); len(found) > 0 {
		return found[0], true
	}
	if strings.ContainsAny(label, " \t\n") || !strings.Contains(label, ".") {
		return host.Host{}, false
	}
	h, err := host.Parse(label)
	return h, err == nil
}

// afterHost is what a link's target says behind its host: path, query, fragment.
func afterHost(target string) string {
	_, rest, _ := strings.Cut(target, "://")
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		return rest[i:]
	}
	return ""
}

// opaque reports a path element that no person would have named: long, and
// without the separators of words.
func opaque(path string) bool {
	const long = 24
	for elem := range strings.SplitSeq(path, "/") {
		if len(elem) < long {
			continue
		}
		run := 0
		for i := range len(elem) {
			if c := elem[i]; c == '-' || c == '_' || c == '.' || c == '+' {
				run = 0
				continue
			}
			if run++; run >= long {
				return true
			}
		}
		if strings.ContainsRune(elem, '%') {
			return true
		}
	}
	return false
}
