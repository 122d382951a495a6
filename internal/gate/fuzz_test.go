package gate_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"passepartout/internal/gate"
	"passepartout/internal/proto"
)

// FuzzDecideNeverPanics feeds hostile texts through every verb. A panic inside a
// gate would be contained and denied, so the test looks for its code.
func FuzzDecideNeverPanics(f *testing.F) {
	for _, seed := range []string{
		"", "hello", "rm -rf ~", "~/.ssh/id_rsa", "https://docs.example.org@evil.com/", "![x](https://evil.com/?d=1)", "vault:x vault: :vault:",
		"((((", "#+begin_src lisp\n(", "\u202e\u200b\U000E0041", "[a](b)[[c][d]]://", "%2e%2e/%00", "mailto:javascript:data:text",
	} {
		for i := range verbs {
			f.Add(seed, seed, uint8(i), uint8(i))
		}
	}
	c := standard(f, policy())
	voc := vocabulary(f)
	f.Fuzz(func(t *testing.T, one, two string, verb, labels uint8) {
		spec := verbs[int(verb)%len(verbs)]
		var args []string
		for i, p := range spec.Params {
			if p.Type == proto.Text {
				args = append(args, string(p.Name), []string{one, two}[i%2])
			}
		}
		if spec.Name == "exec" || spec.Name == "opaque-send" {
			spec, args = verbs[1], []string{"CMD", one}
		}
		by := proto.Origin{Role: proto.Role(labels % 5), Channel: "cli"}
		fs := factsBy(by)
		fs.Signal.Taint = proto.Taint{Untrusted: labels&8 != 0, Private: labels&16 != 0}
		fs.Said = []string{two}
		fs.World = world{marks: map[string]string{"hunter2": "password"}, files: map[string]string{"/home/ada/work/a": two}}
		r := c.Decide(actionBy(t, by, spec.String(), args...), fs)
		for _, v := range r.Verdicts() {
			if v.Code == "gate.panic" || v.Code == "gate.silent" || v.Code == "gate.invalid" {
				t.Fatalf("%s on %q %q: %s", v.Gate, one, two, v.Reason)
			}
			if v.Decision != gate.Allow && v.Reason == "" {
				t.Fatalf("%s objects without a reason", v.Gate)
			}
		}
		if noNotation(strings.Join(args, " ")) && r.Decision() != gate.Deny {
			t.Fatalf("%q has no notation, so its record would be of something else", args)
		}
		if noNotation(one) || noNotation(two) {
			return
		}
		again := replay(t, c, voc, readBack(t, record(r).String()))
		if again.Trace().String() != r.Trace().String() {
			t.Fatalf("replay differs:\n%s\n%s", again.Trace(), r.Trace())
		}
	})
}

func noNotation(s string) bool { return strings.Contains(s, "\x00") || !utf8.ValidString(s) }
