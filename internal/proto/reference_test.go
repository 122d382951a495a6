package proto_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"passepartout/internal/proto"
)

// TestFramesOfTheReferenceAreFrames reads every frame docs/protocol.md prints and
// writes it again.
func TestFramesOfTheReferenceAreFrames(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "protocol.md"))
	if err != nil {
		t.Fatal(err)
	}
	frames := fenced(string(doc), "```frames\n")
	if len(frames) < 8 {
		t.Fatalf("the reference prints %d frames: want the handshake, a conversation and an approval", len(frames))
	}
	for _, line := range frames {
		v, err := proto.NewReader(strings.NewReader(line), proto.MaxPayload).Next()
		if err != nil {
			t.Errorf("%.60s…: %v", line, err)
			continue
		}
		m, err := proto.ParseMessage(v)
		if err != nil {
			t.Errorf("%.60s…: %v", line, err)
			continue
		}
		again, err := proto.AppendFrame(nil, m.Value())
		if err != nil || string(again) != line {
			t.Errorf("printed again it is\n%s\nwant\n%s\n(%v)", again, line, err)
		}
	}
}

// TestTheByteTableOfTheReferenceIsAFrame puts the hexadecimal columns together.
func TestTheByteTableOfTheReferenceIsAFrame(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "protocol.md"))
	if err != nil {
		t.Fatal(err)
	}
	var frame []byte
	for _, line := range fenced(string(doc), "```\noffset") {
		if len(line) < 8 {
			continue
		}
		for _, f := range strings.Fields(line[8:min(len(line), 56)]) {
			frame = append(frame, unhex(t, f))
		}
	}
	if _, err := proto.NewReader(strings.NewReader(string(frame)), proto.MaxPayload).Next(); err != nil {
		t.Errorf("%q: %v", frame, err)
	}
}

// fenced are the lines of all blocks that open so.
func fenced(doc, opening string) []string {
	var lines []string
	for {
		_, rest, ok := strings.Cut(doc, opening)
		if !ok {
			return lines
		}
		block, after, _ := strings.Cut(rest, "\n```")
		if opening[len(opening)-1] != '\n' {
			_, block, _ = strings.Cut(block, "\n") // the rest of a table's heading
		}
		lines = append(lines, strings.Split(block, "\n")...)
		doc = after
	}
}

func unhex(t *testing.T, s string) byte {
	t.Helper()
	hi, lo := strings.IndexByte("0123456789abcdef", s[0]), strings.IndexByte("0123456789abcdef", s[len(s)-1])
	if len(s) != 2 || hi < 0 || lo < 0 {
		t.Fatalf("%q: want two hexadecimal digits", s)
	}
	return byte(hi<<4 | lo)
}
