package secret

import "strings"

// words splits a name at case changes, digits and joints, lower-cased, at most the last eight.
func words(name string) []string {
	var out []string
	start := 0
	flush := func(end int) {
		if end > start {
			out = append(out, strings.ToLower(name[start:end]))
		}
		start = end
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		switch {
		case !letters[c]:
			flush(i)
			start = i + 1
		case i > start && c <= 'Z' && name[i-1] >= 'a':
			flush(i)
		case i > start && c >= 'a' && i-1 > start && name[i-1] <= 'Z' && name[i-2] <= 'Z':
			flush(i - 1)
		}
	}
	flush(len(name))
	return out[max(0, len(out)-8):]
}

// tails follow a keyword without changing what the value is.
var tails = wordSet(`value val string str text txt plain plaintext raw b hex base b64 prod production dev development staging live test default new old tmp local
	main one two`)

// passing precede a "token" that is handed around in public: cursors of lists, guards of forms, handles of running work.
var passing = wordSet(`page next continuation cancellation cancel csrf xsrf authenticity sync resume start stop eos bos pad mask unk special sep cls
	prompt input output max min num total`)

// keyOwners make a "key" a secret; keyKinds make it something else.
var (
	keyOwners = wordSet(`api access secret private priv auth encryption encrypt signing sign license account shared master storage service client app application admin
		server hmac aes des rsa jwt session webhook consumer subscription integration ingest ingestion deploy bot rest security cloud web license activation
		authentication authorization connection sas cos iam pass wallet validator deployer function host`)
	keyKinds = wordSet(`public pub foreign primary partition cache sort idempotency registry object row lookup index group query dedup trace correlation request event message
		translation hot shortcut map dict json xml cookie field column table sub parent child item unique composite natural surrogate arrow enter escape home end tab
		space function locale lang language theme color icon menu tree node hash cluster range shard routing bucket s3 file path image i18n fk pk by on or and no any
		each for the this that left right up down react list meta metadata config setting settings property attribute attr state action param header context tag label
		primarykey apikeyname pressed down up host known recipient`)
)

// How names end that claim a secret; the last two words of the name are compared as one.
var (
	passwordNames = []string{
		"password", "passwords", "passwd", "passphrase", "passcode", "passwort", "kennwort", "parola", "parol", "userpass", "dbpass", "upwd",
		"userpwd", "pswd", "psw", "psword", "passwrd",
	}
	secretNames = []string{
		"secret", "secrets", "token", "apikey", "accesskey", "secretkey", "privatekey", "credential", "credentials", "creds", "secretaccesskey",
		"authkey", "passkey", "privkey",
	}
	weakNames = []string{
		"auth", "authorization", "session", "sessionid", "cookie", "signature", "sas", "hmac", "api", "login", "jwt", "bearer", "authtoken", "appid", "otp",
	}
	hints = wordSet("secret token password passwd apikey credential credentials")
)

// naming says what a name claims about its value, and whether it is nothing but the keyword.
func naming(name string) (cl claim, alone bool) {
	ws := words(name)
	for len(ws) > 1 && (tails[ws[len(ws)-1]] || len(ws[len(ws)-1]) == 1) {
		ws = ws[:len(ws)-1]
	}
	if len(ws) == 0 {
		return noClaim, false
	}
	alone = len(ws) == 1
	last := ws[len(ws)-1]
	before := ""
	if !alone {
		before = ws[len(ws)-2]
	}
	joined := before + last
	switch {
	case last == "pass":
		return password, alone
	case last == "pw", last == "pwd", last == "pws", last == "pword", hasSuffix(joined, passwordNames):
		return password, false
	case last == "pin", last == "count", last == "name", last == "id":
		return noClaim, false
	case hasSuffix(joined, secretNames):
		if last == "token" && passing[before] || strings.HasSuffix(last, "key") && keyKinds[before] {
			return noClaim, false
		}
		return medium, false
	case last == "tokens" && !passing[before], last == "keys" && keyOwners[before], last == "apikeys":
		return medium, false
	case last == "key" && keyOwners[before]:
		return medium, false
	case last == "key" && keyKinds[before]:
		return noClaim, false
	case strings.HasSuffix(last, "key"):
		return weak, alone
	case publicTails[last]:
		return noClaim, false
	case mentions(ws, hints):
		return hinted, false
	case hasSuffix(joined, weakNames):
		return weak, false
	}
	return noClaim, false
}

// publicTails end names of things about a secret that anybody may know.
var publicTails = wordSet(`id ids name names url uri urls path paths file files dir type types hash hashes digest count counts size length len limit limits usage used
	expiry expires expiration ttl age date time at arn version algorithm alg issuer audience scope scopes provider manager service store storage source ref refs
	reference endpoint host method mode policy rotation status state error err message prompt label title placeholder pattern regex format prefix suffix index
	fingerprint thumbprint kid checksum sha md5 parser class interface factory handler helper util test tests spec mock enabled required`)

// mentions reports whether any of the words is in the list.
func mentions(ws []string, list map[string]bool) bool {
	for _, w := range ws {
		if list[w] {
			return true
		}
	}
	return false
}

func hasSuffix(s string, suffixes []string) bool {
	for _, suf := range suffixes {
		if strings.HasSuffix(s, suf) {
			return true
		}
	}
	return false
}
