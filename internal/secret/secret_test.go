package secret_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"passepartout/internal/secret"
)

// Tokens here are made up; they are put together at run time so that scanners of this repository stay quiet.
const (
	body36 = "Zk3vQ9tLw2Rx8Nd5Hb7Yc1Mf6Gp4Js0Xe3Ua"
	hex40  = "9f3b7c1d5e2a8f4b6c0d7e1a3b5c9d2e4f6a8b0c"
)

func TestVendorFormatsAreRecognised(t *testing.T) {
	for rule, text := range map[string]string{
		"github-token":        "ghp_" + body36,
		"gitlab-token":        "token is glpat-" + body36[:20] + ".",
		"aws-access-key":      "AKIA" + "Q3EGW7ZL5NXK2RTB",
		"google-api-key":      "AIza" + body36[:35],
		"slack-token":         "xoxb-" + "123456789012-234567890123-" + body36[:24],
		"stripe-key":          "sk_live_" + body36[:24],
		"openai-key":          "sk-proj-" + body36,
		"anthropic-key":       "sk-ant-" + "api03-" + body36,
		"npm-token":           "npm_" + body36,
		"digitalocean-token":  "dop_v1_" + hex40 + hex40[:24],
		"huggingface-token":   "hf_" + "QwErTyUiOpAsDfGhJkLzXcVbNmQwErTyUi",
		"telegram-bot-token":  "123456789:AA" + body36[:33],
		"sendgrid-key":        "SG." + body36[:22] + "." + body36 + "Abcdefg",
		"age-secret-key":      "AGE-SECRET-KEY-1" + strings.Repeat("Q7ZP3XK9", 7) + "QZ",
		"json-web-token":      jwt(),
		"webhook-url":         "https://hooks.slack.com/services/T0AB12CD3/B0EF45GH6/" + body36[:24],
		"azure-client-secret": "aB38Q~" + body36[:34],
		"password-hash":       "root:$6$saltsalt$" + strings.Repeat(body36, 3)[:86] + ":19000:0:99999:7:::",
		"mailchimp-key":       hex40[:32] + "-us12",
		"private-key":         "-----BEGIN " + "RSA PRIVATE KEY-----\n" + strings.Repeat("MIIEow"+body36[:20]+"\n", 3) + "-----END RSA PRIVATE KEY-----",
	} {
		ms := secret.Default().Scan("see " + text)
		if len(ms) != 1 || ms[0].Rule != rule {
			t.Errorf("%s: Scan(%.60q) = %v", rule, text, ms)
		}
	}
}

func jwt() string {
	enc := base64.RawURLEncoding.EncodeToString
	return enc([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + enc([]byte(`{"sub":"1234567890","name":"Ada"}`)) + "." + body36
}

func TestAssignmentsOfRandomTextAreRecognised(t *testing.T) {
	for _, text := range []string{
		`API_KEY=` + hex40[:32],
		`export SERVICE_TOKEN='` + body36 + `'`,
		`"client_secret": "` + body36 + `"`,
		`client_secret => "` + body36 + `"`,
		`apiKey := "` + body36 + `"`,
		`const token: string = "` + body36 + `"`,
		`token: str = '` + body36 + `'`,
		`<secret>` + body36 + `</secret>`,
		`<add key="ApiKey" value="` + body36 + `" />`,
		`{"name": "API_TOKEN", "value": "` + body36 + `"}`,
		`X-Auth-Token: ` + body36,
		`Authorization: Bearer ` + body36,
		`Authorization: token ` + hex40,
		`--token ` + body36,
		`https://example.com/cb?access_token=` + body36 + `&x=1`,
		`db_password = "correct7horse"`,
		`DB_PASSWORD=tr0ub4dor`,
		`password: "battery!staple"`,
		`the password is 'blooming9rose'`,
		`user=ada;Password=lovelace;Database=x`,
		`machine example.com login ada password lovelace1`,
		`postgres://ada:lovelace@db.internal:5432/x`,
		`https://ada:p%40ss9word@example.com/`,
		`curl -u ada:l0velace https://example.com`,
		`sshpass -p 'l0velace!' ssh ada@example.com`,
		`CREATE USER ada IDENTIFIED BY 'l0velace'`,
		`Authorization: Basic ` + base64.StdEncoding.EncodeToString([]byte("ada:l0velace")),
		`setPassword("l0velace99x")`,
		`HEROKU_API_KEY: 0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0`,
		`id: ada pw: l0velace9`,
		`비밀번호: l0velace9`,
		`ENV API_TOKEN ` + body36,
		`<key>ApiToken</key><string>` + body36 + `</string>`,
		`<setting name="ApiKey"><value>` + body36 + `</value></setting>`,
		`api_key[0] = "` + hex40[:24] + `"`,
		`the password for the admin account is l0velace99`,
		`req.SetBasicAuth("ada", "l0velace99")`,
		`seed phrase: apple river stone cloud tiger maple ocean candle forest mirror garden window`,
		`api_key = "a{{b}c)d${e]f(g[h>-_$#i}}"`,
		`{"auths": {"r.example.com": {"auth": "` + base64.StdEncoding.EncodeToString([]byte("ada:l0velace")) + `"}}}`,
		`[debug] using Key=0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0`,
		`MHcCAQEEI` + "Ov5mQz" + body36 + body36,
		`auth=("ada", "l0velace9")`,
		`token = os.getenv("TOKEN", "` + body36 + `")`,
		`GMAIL_APP_PASSWORD="qwzx plmk wrtb ghjk"`,
	} {
		if !secret.Default().Has(text) {
			t.Errorf("Scan(%q) finds nothing", text)
		}
	}
}

func TestPlaceholdersCodeAndHashesAreLeftAlone(t *testing.T) {
	for _, text := range []string{
		"The secretary tokenized the keyboard; the password policy changed.",
		"password: ${DB_PASSWORD}", `api_key: "{{ vault.api_key | default('x') }}"`, `token: "%(token)s"`, `secret: "a-${env}-b"`, "password: <your password>", "password=$PASS", `password: "changeme"`, `password: "********"`, `password = "xxxxxxxxxxxx"`,
		"API_KEY=your-api-key-here", `token = os.environ["TOKEN"]`, "token := getToken(ctx)", "token: &AccessToken,", "let token_usage = self.tokens.len();",
		`apiKey: process.env.API_KEY`, "AKIAIOSFODNN7EXAMPLE", "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "Authorization: Bearer $TOKEN", "Authorization: Bearer <token>",
		"commit " + hex40 + " fixes it", `"integrity": "sha512-` + base64.StdEncoding.EncodeToString([]byte(hex40+hex40[:24])) + `"`, "checksum = \"" + hex40 + "\"",
		"--- PASS: TestScanner2 (0.00s)", "PASS: 12 tests", "PWD=/home/ada/work2", "curl -u user:password https://example.com", "https://user:password@example.com", "https://example.com:8080/@ada",
		"key: value", `primary_key: "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"`, `{"key": "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"}`, "max_tokens: 4096", `nextPageToken: "` + body36 + `"`,
		`"type": "password"`, `<input type="password" name="password" placeholder="Password">`, "password: string", "func Password(key string) token", `password_hash = "bcrypt"`,
		"-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----", `grep -r "BEGIN RSA PRIVATE KEY" .`, "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGd3 ada@host",
		"docker run -p 8080:80 -u 1000:1000 nginx", "mkdir -p internal/secret1", "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
		"ghp_1234567890abcdefghijklmnopqrstuvwxyz", "token ghp_ is GitHub's prefix", "AIza is Google's", "sk-ant- begins Anthropic's keys", "[redacted:github-token:medium]", `password: "[redacted:password:short]"`,
	} {
		if ms := secret.Default().Scan(text); len(ms) > 0 {
			t.Errorf("Scan(%q) = %v, want nothing (%q)", text, ms, text[ms[0].Start:ms[0].End])
		}
	}
}

func TestEncodedSecretsAreFoundAndSpanned(t *testing.T) {
	plain := "ghp_" + body36
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	if _, err := w.Write([]byte("export T=" + plain)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b64 := base64.StdEncoding.EncodeToString
	unicode := strings.NewReplacer("_", `\u005f`, "g", `\x67`).Replace(plain)
	for name, encoded := range map[string]string{
		"base64":         b64([]byte("token " + plain)),
		"url-safe":       base64.RawURLEncoding.EncodeToString([]byte("token " + plain)),
		"twice":          b64([]byte(b64([]byte("token " + plain)))),
		"hex":            hex.EncodeToString([]byte(plain)),
		"gzip":           b64(zipped.Bytes()),
		"percent":        strings.ReplaceAll(plain, "_", "%5F"),
		"percent twice":  strings.ReplaceAll(plain, "_", "%255F"),
		"json escapes":   unicode,
		"percent base64": url.QueryEscape(b64([]byte("token " + plain))),
	} {
		text := "before " + encoded + " after"
		ms := secret.Default().Scan(text)
		if len(ms) == 0 {
			t.Errorf("%s: Scan(%q) finds nothing", name, text)
			continue
		}
		if red := secret.Default().Redact(text); strings.Contains(red, encoded) || !strings.HasPrefix(red, "before ") || !strings.HasSuffix(red, " after") {
			t.Errorf("%s: Redact(%q) = %q", name, text, red)
		}
	}
}

func TestKnownValuesAreFoundInTheSpellingsInWhichTheyLeak(t *testing.T) {
	const value = "plum-Tart_42/late"
	s := secret.Default().WithValues(map[string]string{"MAIL_PASS": value, "short": "abc"})
	back := []byte(value)
	slices.Reverse(back)
	for name, text := range map[string]string{
		"plain":            "say " + value + " now",
		"reversed":         "say " + string(back),
		"base64":           base64.StdEncoding.EncodeToString([]byte(value)),
		"base64 shifted 1": base64.StdEncoding.EncodeToString([]byte("\x01" + value + "\x02")),
		"base64 shifted 2": base64.RawURLEncoding.EncodeToString([]byte("\x01\x02" + value)),
		"hex":              hex.EncodeToString([]byte(value)),
		"HEX":              strings.ToUpper(hex.EncodeToString([]byte(value))),
		"query":            url.QueryEscape(value),
	} {
		ms := s.Scan(text)
		if len(ms) != 1 || ms[0].Class != secret.Known || ms[0].Rule != "vault-mail-pass" {
			t.Errorf("%s: Scan(%q) = %v", name, text, ms)
		}
	}
	if ms := s.Scan("abc"); len(ms) > 0 {
		t.Errorf("a value below the least length is found: %v", ms)
	}
	if secret.Default().Has("say " + value) {
		t.Error("WithValues changed the default scanner")
	}
	if (&secret.Scanner{}).Has("ghp_" + body36) {
		t.Error("the zero scanner finds something")
	}
}

func TestSecretsSplitAcrossArgumentsAreFound(t *testing.T) {
	s := secret.Default()
	token := "ghp_" + body36
	for name, parts := range map[string][]string{
		"token cut":    {"echo", token[:14], token[14:]},
		"option value": {"tool", "--token", body36},
		"known cut":    {"plum-Tart", "_42/late"},
	} {
		s := s
		if name == "known cut" {
			s = s.WithValues(map[string]string{"x": "plum-Tart_42/late"})
		}
		if got := s.ScanAll(parts); len(got[-1]) == 0 {
			t.Errorf("%s: ScanAll(%q) = %v, want a match across parts", name, parts, got)
		}
	}
	if got := s.ScanAll([]string{"a", token, "b"}); len(got[1]) != 1 || len(got[-1]) != 0 {
		t.Errorf("ScanAll reports %v, want the match in its own part only", got)
	}
	if got := s.ScanAll([]string{"the", "password", "is", "required"}); len(got) != 0 {
		t.Errorf("ScanAll reports %v in plain words", got)
	}
}

func TestRedactSaysWhatItRemoved(t *testing.T) {
	got := secret.Default().Redact("use ghp_" + body36 + " today")
	if want := "use [redacted:github-token:medium] today"; got != want {
		t.Errorf("Redact = %q, want %q", got, want)
	}
}

func TestRedactedTextIsCleanAndStable(t *testing.T) {
	s := secret.Default().WithValues(map[string]string{"redacted": "redacted", "v": "hunter2hunter2"})
	pieces := []string{
		"password=", "token: ", `"`, "'", "\n", " ", "ghp_" + body36, hex40, "hunter2hunter2", "redacted", "[redacted:", "l0velace!", "https://ada:", "@example.com", "%3D", `\u0041`, "=", ":",
		base64.StdEncoding.EncodeToString([]byte("password=l0velace!x")), "-----BEGIN " + "PRIVATE KEY-----", "\xff", "é", "Bearer ", "curl -u a:b2c3d4e5",
	}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(t, "pieces"), "")
		red := s.Redact(text)
		if ms := s.Scan(red); len(ms) > 0 {
			t.Fatalf("Redact(%q) = %q still holds %v", text, red, ms)
		}
		if again := s.Redact(red); again != red {
			t.Fatalf("Redact is not stable: %q, then %q", red, again)
		}
	})
}

func TestMatchesAreOrderedAndInsideTheText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune(`key=:"'/\%+-_. tokenpassAKIA0123456789abcdefXYZ@$<>é`+"\n")), 0, 200, -1).Draw(t, "text")
		last := 0
		for _, m := range secret.Default().Scan(text) {
			if m.Start < last || m.End <= m.Start || m.End > len(text) || m.Class == secret.None || m.Rule == "" {
				t.Fatalf("Scan(%q) reports %+v after offset %d", text, m, last)
			}
			last = m.End
		}
	})
}

func FuzzRedactRemovesEveryMatch(f *testing.F) {
	for _, seed := range []string{
		"", "password=l0velace!", "ghp_" + body36, jwt(), "curl -u ada:l0velace x", "https://a:b3c4d5@h/", "%25%32%35", `\u00zz\x4`, "-----BEGIN PRIVATE KEY-----", `"kty":"RSA","d":"` + body36 + `"`,
		base64.StdEncoding.EncodeToString([]byte("token=" + body36)), "<secret>{" + body36 + "}</secret>", "identified with 'x' by 'l0velace'", "mnemonic: a b c", "x.y.z-" + hex40,
	} {
		f.Add(seed)
	}
	s := secret.Default().WithValues(map[string]string{"v": "hunter2hunter2"})
	f.Fuzz(func(t *testing.T, text string) {
		red := s.Redact(text)
		if s.Has(red) {
			t.Fatalf("Redact(%q) = %q still holds a secret", text, red)
		}
		if again := s.Redact(red); again != red {
			t.Fatalf("Redact(%q) is not stable: %q, then %q", text, red, again)
		}
		s.ScanAll(strings.Fields(text))
	})
}

func TestASecretInPiecesIsFound(t *testing.T) {
	const value = "Tr0ub4dor-and-3xtra-horse"
	s := secret.Default().WithValues(map[string]string{"mail": value})
	spread := func(v, sep string) string { return strings.Join(strings.Split(v, ""), sep) }
	cut := func(v, sep string) string { return v[:10] + sep + v[10:] }
	numbered := func(v string) string {
		var b strings.Builder
		for _, c := range []byte(v) {
			fmt.Fprintf(&b, "&#%d;", c)
		}
		return b.String()
	}
	octals := func(v string) string {
		var b strings.Builder
		for _, c := range []byte(v) {
			fmt.Fprintf(&b, "\\%03o", c)
		}
		return b.String()
	}
	token := "ghp_" + body36
	for name, text := range map[string]string{
		"a line's end": cut(value, "\n"), "and an indent": cut(value, "\r\n    "), "a blank": cut(value, " "), "blanks": spread(value, " "), "a list": "- " + cut(value, "\n- "),
		"a comment": cut(value, "/**/"), "bold": cut(value, "**"), "joined strings": cut(value, `" + "`), "empty quotes": cut(value, `""`), "capitals": strings.ToUpper(value),
		"marks without width": spread(value, "\u200b"), "soft hyphens": spread(value, "\u00ad"), "hexadecimal with colons": "54:72:30:75:62:34:64:6f:72:2d:61:6e:64:2d:33:78:74:72:61:2d:68:6f:72:73:65",
		"base32": "KRZDA5LCGRSG64RNMFXGILJTPB2HEYJNNBXXE43F", "base64 in two lines": "VHIwdWI0ZG9yLWFuZC0z\neHRyYS1ob3JzZQ==", "entities": numbered(value), "octal": octals(value),
		"a token over two lines": "use " + cut(token, "\n") + " today", "a token as two strings": `t = "` + cut(token, `" + "`) + `"`, "a token with a mark": cut(token, "\u200b"), "a token in entities": numbered(token),
	} {
		if !s.Has(text) {
			t.Errorf("%s: nothing is found in %q", name, text)
			continue
		}
		if red := s.Redact("before " + text + " after"); s.Has(red) || !strings.HasPrefix(red, "before ") || !strings.HasSuffix(red, " after") {
			t.Errorf("%s: redacted to %q", name, red)
		}
	}
	for _, text := range []string{"the dormouse and an extra horse", "Tr0ub4dor", "identifier\nanotherword\nsubsection", "import (\n\t\"strings\"\n\t\"testing\"\n)"} {
		if ms := s.Scan(text); len(ms) > 0 {
			t.Errorf("%q: found %v", text, ms)
		}
	}
}
