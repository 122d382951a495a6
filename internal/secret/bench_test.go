package secret_test

import (
	"strings"
	"testing"

	"passepartout/internal/secret"
)

func benchmarkScan(b *testing.B, text string) {
	s := secret.Default()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		s.Scan(text)
	}
}

func BenchmarkScanProse(b *testing.B) {
	benchmarkScan(b, strings.Repeat("The garden was quiet, and nobody had come to open the gate since the rain began.\n"+
		"She wrote it down, closed the book, and went inside. ", 800))
}

func BenchmarkScanKeyRich(b *testing.B) {
	benchmarkScan(b, strings.Repeat("API_KEY="+hex40+"\ntoken: "+body36+"\npassword = \"l0velace9\"\nghp_"+body36+"\n"+
		"https://ada:l0velace@example.com/x?key=1\nAuthorization: Bearer "+body36+"\n", 400))
}

func BenchmarkScanShortCommand(b *testing.B) {
	benchmarkScan(b, "git log --oneline --since=yesterday -- internal/secret | head -20")
}

// Hostile texts are made to trigger rules at every byte; each must cost about as much per byte as any other.
func BenchmarkScanHostile(b *testing.B) {
	for name, unit := range map[string]string{
		"assignments": "a=", "keywords": "key", "key-assignments": "key=", "password-assignments": "pw=", "open-keys": "-----BEGIN PRIVATE KEY-----",
		"urls": "://a:", "tokens": "eyJ", "quotes": `key="`, "calls": `key("`, "percent": "%25", "escapes": `\\`, "base64": "QUFB", "nested": "UVVGQlFVRkI",
		"dashes": "----", "dots": "N.", "der": "MII", "web-keys": `"kty"`, "users": "curl -u a:", "options": "curl -p a1b2c3 ", "phrases": "seed phrase abc ",
		"hex": "41", "hashes": "$6$a", "bearers": "bearer a1", "lookups": `key=getenv("`, "chpasswd": ":abcdef chpasswd", "slack": "xoxb-1",
	} {
		b.Run(name, func(b *testing.B) { benchmarkScan(b, strings.Repeat(unit, 100<<10/len(unit))) })
	}
}
