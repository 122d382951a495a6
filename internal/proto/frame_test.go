package proto_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

func TestTheSeedsHandshakeRoundTrips(t *testing.T) {
	// The seed prints 00002C before this payload, which is the length of a
	// shorter one. The length is what the bytes say: 0x3D.
	payload := `(:TYPE :EVENT :PAYLOAD (:ACTION :handshake :VERSION "0.4.0"))`
	r := proto.NewReader(strings.NewReader(fmt.Sprintf("%06X%s", len(payload), payload)), proto.MaxPayload)
	v, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	m, err := proto.ParseMessage(v)
	if err != nil {
		t.Fatal(err)
	}
	if m.Kind != proto.Event || m.Do() != "handshake" || m.Payload.Text("VERSION") != "0.4.0" {
		t.Errorf("read %+v", m)
	}
	frame, err := proto.AppendFrame(nil, m.Value())
	if err != nil {
		t.Fatal(err)
	}
	if want := `00003D(:TYPE :EVENT :PAYLOAD (:ACTION :HANDSHAKE :VERSION "0.4.0"))`; string(frame) != want {
		t.Errorf("framed %s, want %s", frame, want)
	}
}

func TestTheSeedsPrintedLengthIsAFrameError(t *testing.T) {
	r := proto.NewReader(strings.NewReader(`00002C(:TYPE :EVENT :PAYLOAD (:ACTION :handshake :VERSION "0.4.0"))`), proto.MaxPayload)
	if _, err := r.Next(); !isFrame(err, "frame.body") {
		t.Errorf("a cut payload gave %v", err)
	}
}

func isFrame(err error, code string) bool {
	var fe *proto.FrameError
	return errors.As(err, &fe) && fe.Code == code
}

func TestMalformedFramesAreNamedAndCheap(t *testing.T) {
	deep := strings.Repeat("(", 1_000_000)
	var symbols strings.Builder
	symbols.WriteByte('(')
	for i := range 1_000_000 {
		fmt.Fprintf(&symbols, "s%d ", i)
	}
	symbols.WriteByte(')')
	frame := func(s string) string { return fmt.Sprintf("%06X%s", len(s), s) }
	for name, tt := range map[string]struct{ in, code string }{
		"length that is not hex":      {"ZZZZZZ()", "frame.header"},
		"length cut short":            {"0000", "frame.header"},
		"length zero":                 {"000000", "frame.header"},
		"largest length, no body":     {"FFFFFF", "frame.body"},
		"body cut short":              {"000010(:TYPE", "frame.body"},
		"a million parentheses":       {frame(deep), "frame.body"},
		"a million symbols":           {frame(symbols.String()), "frame.body"},
		"a NUL byte":                  {frame("(:TYPE \x00)"), "frame.body"},
		"invalid UTF-8":               {frame("(:TYPE \"\xff\xfe\")"), "frame.body"},
		"read-time evaluation":        {frame("(:TYPE #.(quit))"), "frame.body"},
		"a label":                     {frame("(:TYPE #1=(a #1#))"), "frame.body"},
		"a structure":                 {frame("(:TYPE #S(foo :a 1))"), "frame.body"},
		"two values":                  {frame("(a) (b)"), "frame.body"},
		"nothing but blanks":          {frame("      "), "frame.body"},
		"endless blanks between them": {strings.Repeat(" ", 10_000), "frame.header"},
	} {
		t.Run(name, func(t *testing.T) {
			r := proto.NewReader(strings.NewReader(tt.in), proto.MaxPayload)
			v, err := r.Next()
			if !isFrame(err, tt.code) {
				t.Errorf("got %v, %v; want code %s", v, err, tt.code)
			}
		})
	}
}

func TestAnAnnouncedLengthReservesNoMemory(t *testing.T) {
	const runs = 64
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		if _, err := proto.NewReader(strings.NewReader("FFFFFF(:TYPE"), proto.MaxPayload).Next(); err == nil {
			t.Fatal("a body of five bytes passed for sixteen million")
		}
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / runs; each > 64<<10 {
		t.Errorf("a header that promises 16 MB made the reader allocate %d bytes", each)
	}
}

func TestAStrangersFramesAreBoundedBeforeTheHandshake(t *testing.T) {
	r := proto.NewReader(strings.NewReader("010001"+strings.Repeat("x", 0x10001)), proto.MaxGreeting)
	if _, err := r.Next(); !isFrame(err, "frame.size") {
		t.Errorf("a long greeting gave %v", err)
	}
}

func TestFramesArriveWholeHoweverTheStreamIsCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.String(), 1, 8).Draw(t, "texts")
		var stream []byte
		for _, s := range texts {
			var err error
			if stream, err = proto.AppendFrame(stream, sexp.P(sexp.Keyword("TYPE"), sexp.Keyword("LOG"), sexp.Keyword("PAYLOAD"), sexp.P(sexp.Keyword("TEXT"), strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), ""))).List()); err != nil {
				t.Fatal(err)
			}
			stream = append(stream, rapid.SampledFrom([]string{"", "\n", " \r\n"}).Draw(t, "gap")...)
		}
		r := proto.NewReader(iotest.OneByteReader(bytes.NewReader(stream)), proto.MaxPayload)
		for _, s := range texts {
			v, err := r.Next()
			if err != nil {
				t.Fatalf("%q: %v", s, err)
			}
			m, err := proto.ParseMessage(v)
			if err != nil || m.Payload.Text("TEXT") != strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "") {
				t.Fatalf("sent %q, got %+v, %v", s, m, err)
			}
		}
		if _, err := r.Next(); !errors.Is(err, io.EOF) {
			t.Fatalf("after the last frame: %v, want EOF", err)
		}
	})
}

func TestMessagesOfOtherShapesAreRefused(t *testing.T) {
	for _, src := range []string{
		`42`, `(:TYPE)`, `(:TYPE :NONSENSE :PAYLOAD ())`, `(:PAYLOAD ())`, `(:TYPE :EVENT :PAYLOAD 3)`, `(:TYPE :EVENT :META (1 2))`,
		`(:TYPE :EVENT :DEPTH "1")`, `(:TYPE :EVENT :DEPTH -1)`, `(:TYPE :EVENT :APPROVED T)`, `(:TYPE :EVENT :TYPE :LOG)`, `(:TYPE :EVENT . 3)`,
	} {
		if m, err := proto.ParseMessage(read(t, src)); !isFrame(err, "frame.shape") {
			t.Errorf("%s: %+v, %v", src, m, err)
		}
	}
}

func TestProofOfTheTokenIsBoundToTheNonce(t *testing.T) {
	token := []byte("a token of some length")
	mac := proto.Sign(token, "nonce-1")
	if !proto.Signed(token, "nonce-1", mac) {
		t.Error("the right proof was refused")
	}
	for name, ok := range map[string]bool{
		"another nonce":       proto.Signed(token, "nonce-2", mac),
		"another token":       proto.Signed([]byte("another"), "nonce-1", mac),
		"no proof":            proto.Signed(token, "nonce-1", ""),
		"an empty token":      proto.Signed(nil, "nonce-1", proto.Sign(nil, "nonce-1")),
		"a proof with a tail": proto.Signed(token, "nonce-1", mac+"00"),
	} {
		if ok {
			t.Errorf("%s was accepted", name)
		}
	}
}

func FuzzFrame(f *testing.F) {
	for _, s := range []string{
		`00003D(:TYPE :EVENT :PAYLOAD (:ACTION :HANDSHAKE :VERSION "0.4.0"))`, "FFFFFF", "00000", "\n\n000002()", "000004'(a)",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		r := proto.NewReader(bytes.NewReader(in), 1<<16)
		for range 64 {
			v, err := r.Next()
			if err != nil {
				var fe *proto.FrameError
				if !errors.Is(err, io.EOF) && !errors.As(err, &fe) {
					t.Fatalf("an error that is neither the end nor a frame error: %v", err)
				}
				return
			}
			out, err := proto.AppendFrame(nil, v)
			if err != nil {
				t.Fatal(err)
			}
			back, err := proto.NewReader(bytes.NewReader(out), proto.MaxPayload).Next()
			if err != nil || !sexp.Equal(back, v) {
				t.Fatalf("%s does not survive framing: %v", v, err)
			}
		}
	})
}

// padded is the baseline's frame: a user-input event padded to a payload of n
// characters.
func padded(n int) sexp.Value {
	event := func(text string) sexp.Value {
		return sexp.P(sexp.Keyword("TYPE"), sexp.Keyword("EVENT"),
			sexp.Keyword("META"), sexp.P(sexp.Keyword("SOURCE"), sexp.Keyword("TUI"), sexp.Keyword("SESSION-ID"), "bench-session-0001"),
			sexp.Keyword("PAYLOAD"), sexp.P(sexp.Keyword("SENSOR"), sexp.Keyword("USER-INPUT"), sexp.Keyword("TEXT"), text)).List()
	}
	pad := n - len(event("").String())
	return event(strings.Repeat("the quick brown fox jumps over ", pad/31+1)[:pad])
}

// outline is the baseline's buffer update: flat headlines with bodies of 200
// characters, as many as make a frame of 102,406 characters.
func outline() sexp.Value {
	var items []sexp.Value
	size := proto.HeaderLen
	for i := 0; size < 102_406; i++ {
		body := fmt.Sprintf("Body of headline %d. %s", i, strings.Repeat("lorem ipsum dolor sit amet ", 20))[:200]
		h := sexp.P(sexp.Keyword("TYPE"), sexp.Keyword("HEADLINE"),
			sexp.Keyword("PROPERTIES"), sexp.P(sexp.Keyword("ID"), fmt.Sprintf("hl-%07d", i), sexp.Keyword("TITLE"), fmt.Sprintf("Headline %d of project 0", i),
				sexp.Keyword("TAGS"), sexp.NewList(sexp.String("work"), sexp.String("note")), sexp.Keyword("TODO-STATE"), "TODO"),
			sexp.Keyword("RAW-CONTENT"), body).List()
		items = append(items, h)
		size += len(h.String()) + 1
	}
	return sexp.P(sexp.Keyword("TYPE"), sexp.Keyword("EVENT"), sexp.Keyword("PAYLOAD"),
		sexp.P(sexp.Keyword("SENSOR"), sexp.Keyword("BUFFER-UPDATE"), sexp.Keyword("AST"), sexp.NewList(items...))).List()
}

func BenchmarkFrame(b *testing.B) {
	for _, bb := range []struct {
		name string
		v    sexp.Value
	}{{"300B", padded(300)}, {"102400B", padded(102_400)}, {"AST", outline()}} {
		frame, err := proto.AppendFrame(nil, bb.v)
		if err != nil {
			b.Fatal(err)
		}
		var out []byte
		src := new(bytes.Reader)
		encode := func(b *testing.B) {
			if out, err = proto.AppendFrame(out[:0], bb.v); err != nil {
				b.Fatal(err)
			}
		}
		decode := func(b *testing.B, r *proto.Reader, frame []byte) {
			src.Reset(frame)
			if _, err := r.Next(); err != nil {
				b.Fatal(err)
			}
		}
		for name, f := range map[string]func(*testing.B, *proto.Reader){
			"encode":        func(b *testing.B, _ *proto.Reader) { encode(b) },
			"decode":        func(b *testing.B, r *proto.Reader) { decode(b, r, frame) },
			"encode+decode": func(b *testing.B, r *proto.Reader) { encode(b); decode(b, r, out) },
		} {
			b.Run(name+"/"+bb.name, func(b *testing.B) {
				b.SetBytes(int64(len(frame)))
				b.ReportAllocs()
				r := proto.NewReader(src, proto.MaxPayload)
				for b.Loop() {
					f(b, r)
				}
			})
		}
	}
}
