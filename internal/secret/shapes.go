package secret

import (
	"encoding/base64"
	"strings"
)

// shapes lists credentials that are known by their structure rather than by a beginning and a length.
var shapes = []trigger{
	{word: "private key", rule: pemKey},
	{word: "pgp private key block", rule: pemKey},
	{word: "putty-user-key-file", rule: puttyKey},
	{word: "MII", exact: true, rule: derKey},
	{word: "MIG", exact: true, rule: derKey},
	{word: "MHcCAQEE", exact: true, rule: derKey},
	{word: "MC4CAQAwBQYDK2Vw", exact: true, rule: derKey},
	{word: `"kty"`, rule: webKey},
	{word: "eyJ", exact: true, rule: webToken},
	{word: "://", rule: urlPassword},
	{word: "authorization", rule: authorization},
	{word: "bearer", rule: bearer},
	{word: "basic", rule: basic},
	{word: " -u", rule: userOption},
	{word: "--user", rule: userOption},
	{word: "--proxy-user", rule: userOption},
	{word: " -p", rule: passOption},
	{word: "requirepass", rule: passOption},
	{word: "identified by '", rule: passOption},
	{word: "identified with", rule: nativePassword},
	{word: "chpasswd", rule: chpasswd},
	{word: "net user ", rule: netUser},
	{word: "$", rule: passwordHash},
	{word: "{ssha", rule: passwordHash},
	{word: "securestring", rule: passOption},
	{word: "T3BlbkFJ", exact: true, rule: openAIMarker},
	{word: "Q~", exact: true, rule: azureClientSecret},
	{word: "JQQJ99", exact: true, rule: azureKeyMarker},
	{word: "ACDb", exact: true, rule: azureKeyMarker},
	{word: "AAAAAAAAAAAAASAZDO", exact: true, rule: azureKeyMarker},
	{word: "AZDO", exact: true, rule: azureDevOps},
	{word: "+AMC", exact: true, rule: azureKeyMarker},
	{word: "+ASt", exact: true, rule: azureKeyMarker},
	{word: "sig=", rule: azureSignature},
	{word: "-us", rule: mailchimpKey},
	{word: ".atlasv1.", exact: true, rule: terraformToken},
	{word: ":AA", exact: true, rule: telegramToken},
	{word: "_mmk", exact: true, rule: maxmindKey},
	{word: "hooks.slack.com/", rule: webhook},
	{word: "discord.com/api/webhooks/", rule: webhook},
	{word: "discordapp.com/api/webhooks/", rule: webhook},
	{word: "webhook.office.com/webhookb2/", rule: webhook},
	{word: "hooks.zapier.com/hooks/catch/", rule: webhook},
	{word: "chat.googleapis.com/v1/spaces/", rule: webhook},
	{word: "outlook.office.com/webhook/", rule: webhook},
	{word: `"service_account"`, rule: serviceAccount},
	{word: "contribsys__com", rule: contribsys},
	{word: "mnemonic", rule: seedPhrase},
	{word: "phrase", rule: seedPhrase},
	{word: "seed words", rule: seedPhrase},
	{word: "FlyV1 ", exact: true, rule: flyToken},
	{word: ".", rule: dottedToken},
	{word: "-", rule: mailgunKey},
}

// report is what a rule returns when it is convinced.
func report(rule string, class Class, start, end int) (Match, bool) {
	return Match{Rule: rule, Class: class, Start: start, End: end}, true
}

// pemKey wants a header, and after it key material: the header alone is what one greps for.
func pemKey(c *cursor) (Match, bool) {
	if c.start < c.pem {
		return Match{}, false
	}
	line := strings.LastIndex(c.text[max(0, c.start-40):c.start], "-----BEGIN")
	if line < 0 {
		return Match{}, false
	}
	start := max(0, c.start-40) + line
	window := c.text[c.end:min(len(c.text), c.end+maxValue*4)]
	dashes := strings.Index(window[:min(len(window), 12)], "-----")
	if dashes < 0 {
		return Match{}, false
	}
	body := window[dashes+5:]
	end := len(body)
	if i := strings.Index(body, "-----END"); i >= 0 {
		end = i
		if j := strings.Index(body[i+8:min(len(body), i+60)], "-----"); j >= 0 {
			end = i + 8 + j + 5
		}
	}
	key := 0
	for i := 0; i < end && key < 24; {
		n := base64s.runLen(body, i, 64)
		if n >= 12 {
			key += n
		}
		i += n + 1
	}
	c.pem = c.end + dashes + 5 + min(end, 1024) // what follows so closely was part of this body
	if key < 24 || stuffed(body[:min(end, 200)]) {
		return Match{}, false
	}
	return report("private-key", PrivateKey, start, c.end+dashes+5+end)
}

func puttyKey(c *cursor) (Match, bool) {
	window := c.text[c.start:min(len(c.text), c.start+maxValue)]
	if i := strings.Index(window, "Private-Lines:"); i >= 0 {
		return report("private-key", PrivateKey, c.start, c.start+len(window))
	}
	return Match{}, false
}

// derKey recognises the beginning of a private key in DER, which every such key shares: a sequence that opens with a small version.
func derKey(c *cursor) (Match, bool) {
	if c.start > 0 && base64Body[c.text[c.start-1]] {
		return Match{}, false
	}
	n := base64s.runLen(c.text, c.start, maxValue)
	if n < 40 {
		return Match{}, false
	}
	head, err := base64.StdEncoding.DecodeString(c.text[c.start : c.start+12])
	if err != nil {
		return Match{}, false
	}
	version := 2 // after the tag and a length of one, two or three bytes
	if head[1] > 0x80 {
		version += int(head[1] & 3)
	}
	if head[version] != 2 || head[version+1] != 1 || head[version+2] > 3 {
		return Match{}, false
	}
	return report("private-key", PrivateKey, c.start, c.start+n)
}

// webKey finds the private member of a JSON web key.
func webKey(c *cursor) (Match, bool) {
	if c.start < c.seen {
		return Match{}, false
	}
	c.seen = c.end + 64
	lo, hi := max(0, c.start-maxValue/2), min(len(c.text), c.end+maxValue/2)
	for _, member := range [...]string{`"d"`, `"k"`} {
		i := strings.Index(c.text[lo:hi], member)
		if i < 0 {
			continue
		}
		at := skipTo(c.text, lo+i+len(member), " :\t\r\n")
		if at >= len(c.text) || c.text[at] != '"' {
			continue
		}
		if n := urlSafe.runLen(c.text, at+1, maxValue); n >= 16 && looksRandom(c.text[at+1:at+1+n]) {
			return report("json-web-key", PrivateKey, at+1, at+1+n)
		}
	}
	return Match{}, false
}

// webToken wants a JSON header and a second part.
func webToken(c *cursor) (Match, bool) {
	if c.start > 0 && (alnum[c.text[c.start-1]] || c.text[c.start-1] == '.') && !boundary(c.text, c.start) {
		return Match{}, false
	}
	if c.start > 0 && c.text[c.start-1] == '.' && c.start > 1 && urlSafe[c.text[c.start-2]] {
		return Match{}, false
	}
	n := jwtBody.runLen(c.text, c.start, 4*maxValue)
	token := c.text[c.start : c.start+n]
	head, rest, ok := strings.Cut(token, ".")
	if !ok || len(head) < 12 || len(rest) < 16 || stuffed(token) {
		return Match{}, false
	}
	dec, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(head[:len(head)/4*4], "="))
	if err != nil || len(dec) < 6 || dec[0] != '{' || dec[1] != '"' {
		return Match{}, false
	}
	return report("json-web-token", Token, c.start, c.start+n)
}

// urlPassword finds user:password@host.
func urlPassword(c *cursor) (Match, bool) {
	window := c.text[c.end:min(len(c.text), c.end+300)]
	if i := strings.IndexAny(window, " \t\r\n\"'`<>|"); i >= 0 {
		window = window[:i]
	}
	// A password may hold any character, so the last @ before the path counts, unless a path or query comes first.
	at := strings.IndexByte(window, '@')
	if at < 0 {
		return Match{}, false
	}
	if slash := strings.IndexAny(window, "/?#"); slash >= 0 && slash < at && !strings.Contains(window[:slash], ":") {
		return Match{}, false
	}
	for {
		next := strings.IndexByte(window[at+1:], '@')
		if next < 0 || strings.ContainsAny(window[at+1:at+1+next], "/?") {
			break
		}
		at += 1 + next
	}
	user, pass, ok := strings.Cut(window[:at], ":")
	if !ok {
		if len(user) >= 20 && looksRandom(user) && urlSafe.all(user) {
			return report("url-token", URL, c.end, c.end+at)
		}
		return Match{}, false
	}
	if len(pass) < 3 || len(pass) > 200 || strings.HasPrefix(pass, "//") || urlStandIn(pass) || strings.Contains(user, "/") {
		return Match{}, false
	}
	host := window[at+1:]
	if host == "" || !alnum[host[0]] && !strings.ContainsRune("[${%", rune(host[0])) {
		return Match{}, false
	}
	if port, _, _ := strings.Cut(pass, "/"); digits.all(port) && len(port) <= 5 {
		return Match{}, false // a port, and an @ in the path
	}
	return report("url-password", URL, c.end+len(user)+1, c.end+at)
}

// urlStandIn is narrower than placeholder: people do use "secret" and names as passwords of databases.
func urlStandIn(pass string) bool {
	switch strings.ToLower(pass) {
	case "pass", "password", "passwd", "pwd", "pw", "token", "xxx", "your_password", "yourpassword", "mypassword", "my_password":
		return true
	}
	for _, mark := range [...]string{"***", "xxxx", "XXXX", "...", "redacted"} {
		if strings.Contains(pass, mark) {
			return true
		}
	}
	return template(pass) || pass[0] == '$' || pass[0] == ':'
}

// authorization reads a header's or option's scheme and credential.
func authorization(c *cursor) (Match, bool) {
	if !boundary(c.text, c.start) {
		return Match{}, false
	}
	i := skipTo(c.text, c.end, " \t:='\"\\>")
	scheme := i
	for i < len(c.text) && (letters[c.text[i]] || c.text[i] == '-') && i-scheme < 16 {
		i++
	}
	if after := skipTo(c.text, i, " \t='\":"); after == i || i == scheme {
		i = scheme // no scheme, only a credential
	} else if low := strings.ToLower(c.text[scheme:i]); low == "bearer" || low == "basic" || low == "digest" {
		return Match{}, false // has its own rule
	} else {
		i = after
	}
	n := tokenRun(c.text, i)
	if v := c.text[i : i+n]; n >= 16 && looksRandom(v) && !placeholder(v) {
		return report("authorization", Generic, i, i+n)
	}
	return Match{}, false
}

func bearer(c *cursor) (Match, bool) {
	if !boundary(c.text, c.start) {
		return Match{}, false
	}
	i := skipTo(c.text, c.end, " \t:='\"\\")
	if i == c.end {
		return Match{}, false
	}
	n := tokenRun(c.text, i)
	v := c.text[i : i+n]
	if n < 12 || placeholder(v) || codeLike(v) && !looksRandom(v) {
		return Match{}, false
	}
	if p := measure(v); p.random() || p.digit >= 4 && p.n >= 16 && p.lower+p.upper > 0 {
		return report("bearer-token", Token, i, i+n)
	}
	return Match{}, false
}

// basic decodes the user and password of HTTP basic authentication.
func basic(c *cursor) (Match, bool) {
	if !boundary(c.text, c.start) {
		return Match{}, false
	}
	i := skipTo(c.text, c.end, " \t:='\"\\")
	n := base64s.runLen(c.text, i, 512)
	if i == c.end || n < 8 {
		return Match{}, false
	}
	if !basicPair(c.text[i : i+n]) {
		return Match{}, false
	}
	return report("basic-auth", Password, i, i+n)
}

// basicPair reports whether s is user:password in base64.
func basicPair(s string) bool {
	if len(s) < 8 || len(s) > 512 || !base64s.all(s) {
		return false
	}
	s = strings.TrimRight(s, "=")
	if strings.IndexByte(s, '=') >= 0 {
		return false
	}
	dec, err := base64.RawStdEncoding.DecodeString(s)
	if err != nil || !printable.all(string(dec)) {
		return false
	}
	user, pass, ok := strings.Cut(string(dec), ":")
	return ok && (len(pass) >= 3 || len(user) >= 16) && (!placeholder(pass) || looksRandom(user))
}

// userOption reads curl's and its kin's user:password argument.
func userOption(c *cursor) (Match, bool) {
	if c.text[c.start] == ' ' && !toolBefore(c.text, c.start) {
		return Match{}, false
	}
	i := skipTo(c.text, c.end, " =\t")
	i = skipTo(c.text, i, "'\"\\")
	n := 0
	for i+n < len(c.text) && n < 200 && c.text[i+n] > ' ' && strings.IndexByte("'\"`|", c.text[i+n]) < 0 {
		n++
	}
	arg := strings.TrimRight(c.text[i:i+n], `\`)
	user, pass, ok := strings.Cut(arg, ":")
	if ok && pass == "" && i+n < len(c.text) && strings.IndexByte("'\"", c.text[i+n]) >= 0 { // kevin:'password', or a token as user name
		m := printable.runLen(c.text, i+n+1, 200)
		if pass, _, ok = strings.Cut(c.text[i+n+1:i+n+1+m], c.text[i+n:i+n+1]); ok && len(pass) >= 4 && !placeholder(pass) && !strings.Contains(pass, " ") {
			return report("user-password-option", Password, i+n+1, i+n+1+len(pass))
		}
		if p := measure(user); p.n >= 10 && p.digit > 0 && p.random() && !placeholder(user) {
			return report("user-password-option", Password, i, i+len(user))
		}
		return Match{}, false
	}
	if !ok || len(pass) < 3 || strings.HasPrefix(pass, "/") || template(arg) || template(pass) || strings.Contains(arg, "://") {
		return Match{}, false
	}
	if digits.all(user) && digits.all(pass) || placeholder(pass) || strings.HasPrefix(pass, "$") {
		return Match{}, false
	}
	return report("user-password-option", Password, i+len(user)+1, i+len(arg))
}

// tools take a user or password by -u or -p.
var tools = []string{
	"curl", "wget", "docker login", "podman login", "helm", "skopeo", "mysql", "mariadb", "sshpass", "ldap", "smbclient", "http ", "https ",
	"mongo", "redis-cli", "lftp", "oc login", "az login", "rclone", "cqlsh", "nuget", "twine", "sqlcmd", "bcp", "kinit", "crane", "net use",
	"influx", "mosquitto", "7z", "zip", "unzip", "openssl", "htpasswd", "sqlplus", "psexec", "xfreerdp", "rdesktop", "psql", "svn ",
	"hdiutil", "registry login", "logins", "nmcli",
}

// toolBefore reports whether a short option belongs to a program that takes credentials by it.
func toolBefore(text string, at int) bool {
	line := text[max(0, at-400):at]
	for _, tool := range tools {
		if i := strings.LastIndex(line, tool); i >= 0 && !strings.Contains(strings.ReplaceAll(line[i:], "\\\n", ""), "\n") {
			return true
		}
	}
	return false
}

// passOption reads a password that follows an option or a keyword without a sign of assignment.
func passOption(c *cursor) (Match, bool) {
	short := c.text[c.start] == ' '
	if short && !toolBefore(c.text, c.start) {
		return Match{}, false
	}
	i := skipTo(c.text, c.end, " =\t(")
	for !short && i < len(c.text) && c.text[i] == '-' { // ConvertTo-SecureString -AsPlainText -Force …
		i = skipTo(c.text, i+1+letters.runLen(c.text, i+1, 20), " \t")
	}
	quoted := i < len(c.text) && strings.IndexByte("'\"\\", c.text[i]) >= 0 || c.text[c.end-1] == '\''
	if !short && !quoted {
		if i == c.end {
			return Match{}, false
		}
	}
	i = skipTo(c.text, i, "'\"\\")
	n := 0
	for i+n < len(c.text) && n < 200 && c.text[i+n] > ' ' && strings.IndexByte("'\"`;\\)", c.text[i+n]) < 0 {
		n++
	}
	v := c.text[i : i+n]
	if n < 5 || v[0] == '-' || v[0] == '/' || placeholder(v) || codeLike(v) {
		return Match{}, false
	}
	p := measure(v)
	if digits.all(strings.Trim(v, ".:,")) || short && i == c.end && (p.digit == 0 || p.n < 8) || p.digit == 0 && p.other == 0 && !quoted {
		return Match{}, false
	}
	if strings.Contains(v, ":") && p.digit > p.n/2 { // a port mapping
		return Match{}, false
	}
	return report("password-option", Password, i, i+n)
}

// nativePassword reads MySQL's "IDENTIFIED WITH plugin BY|AS 'password'".
func nativePassword(c *cursor) (Match, bool) {
	window := strings.ToLower(c.text[c.end:min(len(c.text), c.end+60)])
	for _, by := range [...]string{" by '", " as '", ` by "`, ` as "`} {
		if i := strings.Index(window, by); i >= 0 {
			at := c.end + i + len(by)
			n := printable.runLen(c.text, at, 200)
			if v, _, _ := strings.Cut(c.text[at:at+n], by[4:]); len(v) >= 5 && !placeholder(v) {
				return report("password-option", Password, at, at+len(v))
			}
		}
	}
	return Match{}, false
}

// chpasswd is fed user:password lines, usually by an echo just before it.
func chpasswd(c *cursor) (Match, bool) {
	lo := max(0, c.start-120)
	before := c.text[lo:c.start]
	if i := strings.LastIndexByte(before, '\n'); i >= 0 {
		lo, before = lo+i+1, before[i+1:]
	}
	i := strings.LastIndexByte(before, ':')
	if i < 1 || !word[before[i-1]] {
		return Match{}, false
	}
	n := strings.IndexAny(before[i+1:], " '\"|\\")
	if n < 4 || placeholder(before[i+1:i+1+n]) {
		return Match{}, false
	}
	return report("password-option", Password, lo+i+1, lo+i+1+n)
}

// netUser reads Windows' "net user NAME PASSWORD".
func netUser(c *cursor) (Match, bool) {
	i := c.end + dotted.runLen(c.text, c.end, 64)
	at := skipTo(c.text, i, " \"")
	n := 0
	for at+n < len(c.text) && n < 128 && c.text[at+n] > ' ' && c.text[at+n] != '"' {
		n++
	}
	v := c.text[at : at+n]
	if i == c.end || at == i || n < 5 || v[0] == '/' || v[0] == '*' || placeholder(v) || measure(v).kinds() < 2 {
		return Match{}, false
	}
	return report("password-option", Password, at, at+n)
}

// crypts are the beginnings of salted password hashes, with the least length of what follows.
var crypts = []struct {
	prefix string
	min    int
}{
	{"$1$", 24},
	{"$apr1$", 24},
	{"$2a$", 50},
	{"$2b$", 50},
	{"$2y$", 50},
	{"$5$", 43},
	{"$6$", 86},
	{"$y$", 40},
	{"$7$", 40},
	{"$P$", 31},
	{"$H$", 31},
	{"$S$", 52},
	{"$argon2id$", 40},
	{"$argon2i$", 40},
	{"$argon2d$", 40},
	{"$scrypt$", 40},
	{"$pbkdf2", 40},
	{"$krb5", 60},
	{"$NT$", 32},
	{"$DCC2$", 32},
	{"{SSHA", 28},
}

// passwordHash finds what /etc/shadow and its kin hold: not the password, but all an attacker needs to guess it at leisure.
func passwordHash(c *cursor) (Match, bool) {
	for _, k := range crypts {
		if !strings.HasPrefix(c.text[c.start:min(len(c.text), c.start+12)], k.prefix) {
			continue
		}
		n := crypted.runLen(c.text, c.start, 300)
		if n-len(k.prefix) >= k.min && measure(c.text[c.start:c.start+min(n, maxJudged)]).distinct >= 16 {
			return report("password-hash", Password, c.start, c.start+n)
		}
	}
	return Match{}, false
}

// Alphabets of particular shapes.
var (
	tokenBytes   = setOf("0-9a-zA-Z+/=_.~%:$|\x2d")
	jwtBody      = setOf("0-9a-zA-Z_.=\x2d")
	clientSecret = setOf("0-9a-zA-Z_.~\x2d")
	signed       = setOf("0-9a-zA-Z+/=%_\x2d")
	urlPath      = setOf("0-9a-zA-Z_/@=&?+%.~\x2d")
	hexPair      = setOf("0-9a-f:")
	flyBody      = setOf("0-9a-zA-Z+/=_,\x2d")
	padded       = setOf("0-9a-zA-Z_=\x2d")
	crypted      = setOf("0-9a-zA-Z./$=,*+{}@_\x2d")
	printable    = setOf(" -~")
)

func openAIMarker(c *cursor) (Match, bool) {
	start := c.start - back(alnum, c.text, c.start, 60)
	end := c.end + alnum.runLen(c.text, c.end, 200)
	if c.start-start < 10 || end-c.end < 10 {
		return Match{}, false
	}
	return report("openai-key", Token, start, end)
}

// azureClientSecret has three characters and a digit before the marker and thirty-odd behind it.
func azureClientSecret(c *cursor) (Match, bool) {
	before := back(clientSecret, c.text, c.start, 5)
	after := clientSecret.runLen(c.text, c.end, 41)
	if before != 4 || !digits[c.text[c.start-1]] || after < 31 || after > 34 || !looksRandom(c.text[c.end:c.end+after]) {
		return Match{}, false
	}
	return report("azure-client-secret", Token, c.start-4, c.end+after)
}

// azureKeyMarker knows the fixed letters Microsoft puts inside its generated keys.
func azureKeyMarker(c *cursor) (Match, bool) {
	start := c.start - back(base64s, c.text, c.start, 90)
	end := c.end + base64s.runLen(c.text, c.end, 90)
	if end-start < 40 || c.start-start < 20 || !looksRandom(c.text[start:c.start]) {
		return Match{}, false
	}
	return report("azure-key", Token, start, end)
}

// azureDevOps tokens are 84 characters with a marker eight before the end.
func azureDevOps(c *cursor) (Match, bool) {
	before := back(alnum, c.text, c.start, 80)
	after := alnum.runLen(c.text, c.end, 9)
	if before != 76 || after < 4 || after > 8 || !notDull(c.text[c.start-before:c.start]) {
		return Match{}, false
	}
	return report("azure-devops-token", Token, c.start-before, c.end+after)
}

// azureSignature is the signature of a shared access URL.
func azureSignature(c *cursor) (Match, bool) {
	if !boundary(c.text, c.start) {
		return Match{}, false
	}
	n := signed.runLen(c.text, c.end, 200)
	if n < 40 || !looksRandom(c.text[c.end:c.end+n]) {
		return Match{}, false
	}
	return report("shared-access-signature", Token, c.end, c.end+n)
}

func mailchimpKey(c *cursor) (Match, bool) {
	n := back(hexits, c.text, c.start, 33)
	dc := digits.runLen(c.text, c.end, 3)
	if n != 32 || dc == 0 || dc > 2 || !notDull(c.text[c.start-32:c.start]) {
		return Match{}, false
	}
	return report("mailchimp-key", Token, c.start-32, c.end+dc)
}

func terraformToken(c *cursor) (Match, bool) {
	before := back(alnum, c.text, c.start, 20)
	after := padded.runLen(c.text, c.end, 100)
	if before != 14 || after < 60 || !looksRandom(c.text[c.end:c.end+after]) {
		return Match{}, false
	}
	return report("terraform-token", Token, c.start-before, c.end+after)
}

func telegramToken(c *cursor) (Match, bool) {
	before := back(digits, c.text, c.start, 12)
	after := urlSafe.runLen(c.text, c.end, 40)
	if before < 5 || before > 11 || after < 32 || after > 34 {
		return Match{}, false
	}
	return report("telegram-bot-token", Token, c.start-before, c.end+after)
}

func maxmindKey(c *cursor) (Match, bool) {
	if n := back(word, c.text, c.start, 40); n == 36 && looksRandom(c.text[c.start-n:c.start]) {
		return report("maxmind-key", Token, c.start-n, c.end)
	}
	return Match{}, false
}

// webhook URLs are credentials: whoever has one may post.
func webhook(c *cursor) (Match, bool) {
	n := urlPath.runLen(c.text, c.end, 600)
	path := c.text[c.end : c.end+n]
	last := 0
	for part := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == '?' || r == '&' || r == '=' }) {
		if p := measure(part); p.n >= 18 && (p.digit > 0 || p.random()) && !stuffed(part) && !placeholder(part) {
			last = max(last, p.n)
		}
	}
	if last == 0 {
		return Match{}, false
	}
	return report("webhook-url", Token, c.start, c.end+n)
}

// serviceAccount is the line that only key files of Google service accounts have.
func serviceAccount(c *cursor) (Match, bool) {
	before := strings.TrimRight(c.text[max(0, c.start-16):c.start], " \t")
	if !strings.HasSuffix(before, ":") || !strings.HasSuffix(strings.TrimRight(before, ": \t"), `"type"`) {
		return Match{}, false
	}
	return report("service-account-key", PrivateKey, c.start, c.end)
}

func contribsys(c *cursor) (Match, bool) {
	i := skipTo(c.text, c.end, "=: '\"")
	n := hexPair.runLen(c.text, i, 40)
	if i == c.end || n != 17 {
		return Match{}, false
	}
	return report("bundler-credential", Token, i, i+n)
}

var seedOwners = wordSet("seed recovery backup wallet secret mnemonic")

// seedPhrase wants as many words of three to eight letters as wallets use, in a row after the keyword.
func seedPhrase(c *cursor) (Match, bool) {
	if c.text[c.end-1] == 'e' && !seedOwners[wordBefore(c.text, c.start)] {
		return Match{}, false
	}
	i := skipTo(c.text, c.end, " :=\t'\"`\n[(")
	start, words := i, 0
	end := i
	for words < 25 && i < len(c.text) {
		n := 0
		for i+n < len(c.text) && n < 9 && c.text[i+n] >= 'a' && c.text[i+n] <= 'z' {
			n++
		}
		if n < 3 || n > 8 {
			break
		}
		words++
		end = i + n
		i = skipTo(c.text, end, " ,")
		if i == end {
			break
		}
	}
	// Prose can follow such a keyword too, but rarely with so many words in a row and none of two letters.
	if words != 12 && words != 15 && words != 18 && words != 21 && words != 24 {
		return Match{}, false
	}
	return report("seed-phrase", PrivateKey, start, end)
}

func flyToken(c *cursor) (Match, bool) {
	n := flyBody.runLen(c.text, c.end, maxValue)
	if n < 40 {
		return Match{}, false
	}
	return report("fly-token", Token, c.start, c.end+n)
}

// dottedToken finds Discord's three parts: an encoded number, a time, a signature.
func dottedToken(c *cursor) (Match, bool) {
	before := back(urlSafe, c.text, c.start, 29)
	if before < 23 || before > 28 || strings.IndexByte("MNO", c.text[c.start-before]) < 0 {
		return Match{}, false
	}
	mid := urlSafe.runLen(c.text, c.end, 8)
	if mid < 6 || mid > 7 || c.end+mid >= len(c.text) || c.text[c.end+mid] != '.' {
		return Match{}, false
	}
	tail := urlSafe.runLen(c.text, c.end+mid+1, 60)
	if tail < 27 || tail > 40 || !looksRandom(c.text[c.end+mid+1:c.end+mid+1+tail]) {
		return Match{}, false
	}
	return report("discord-token", Token, c.start-before, c.end+mid+1+tail)
}

// mailgunKey is 32, 8 and 8 hexadecimal digits.
func mailgunKey(c *cursor) (Match, bool) {
	if c.start < 32 || !hexits[c.text[c.start-1]] || !hexits[c.text[c.start-32]] {
		return Match{}, false
	}
	if back(hexits, c.text, c.start, 33) != 32 {
		return Match{}, false
	}
	if hexits.runLen(c.text, c.end, 9) != 8 || c.end+8 >= len(c.text) || c.text[c.end+8] != '-' || hexits.runLen(c.text, c.end+9, 9) != 8 {
		return Match{}, false
	}
	return report("mailgun-key", Token, c.start-32, c.end+17)
}

// back returns how many bytes before i are in the set, looking at no more than limit.
func back(s *set, text string, i, limit int) int {
	n := 0
	for n < limit && i-n > 0 && s[text[i-n-1]] {
		n++
	}
	return n
}

// skipTo returns the first offset from i on that holds none of the characters, within a few dozen bytes.
func skipTo(text string, i int, chars string) int {
	for limit := i + 40; i < len(text) && i < limit && strings.IndexByte(chars, text[i]) >= 0; {
		i++
	}
	return i
}

// tokenRun returns the length of what an unquoted token can be made of.
func tokenRun(text string, i int) int {
	return tokenBytes.runLen(text, i, maxValue)
}
