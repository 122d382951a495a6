package memory

import (
	"bytes"
	"testing"
	"time"

	"github.com/zeebo/blake3"

	"passepartout/internal/org"
)

// FuzzHistoryReadsWhatItWroteAndNothingElse feeds a log to the reader: a good log
// comes back whole, any other never panics and never invents an operation.
func FuzzHistoryReadsWhatItWroteAndNothingElse(f *testing.F) {
	good := func(texts ...string) []byte {
		var log []byte
		var last chain
		for i, text := range texts {
			payload, err := encodeOp(frameFact, &Op{Seq: uint64(i + 1), Kind: OpEdit, At: time.Unix(0, 0), Files: []FileChange{{Path: "a.org", Hunks: []hunk{{Old: []byte(text), New: []byte("x")}}}}})
			if err != nil {
				f.Fatal(err)
			}
			last = last.next(payload)
			log = append(log, byte(len(payload)), byte(len(payload)>>8), 0, 0)
			log = append(append(log, last[:]...), payload...)
		}
		return log
	}
	f.Add([]byte{})
	f.Add(good("one"))
	f.Add(good("one", "two\x00\xff", ""))
	f.Fuzz(func(t *testing.T, log []byte) {
		h := &history{base: map[Hash]Hash{}, path: "log"}
		n, _ := h.replay(log) // damage is an answer too
		if n > len(log) || h.size != int64(n) {
			t.Fatalf("%d of %d bytes good, size %d", n, len(log), h.size)
		}
		again := &history{base: map[Hash]Hash{}, path: "log"}
		if m, err := again.replay(log[:n]); m != n || err != nil || len(again.ops) != len(h.ops) {
			t.Fatalf("the good part reads differently: %d %v", m, err)
		}
	})
}

func FuzzIndexNeverPanics(f *testing.F) {
	n := buildNode("a.org", org.Parse([]byte("* A\n** B\n")), fileStat{size: 9, mtime: 7, inode: 3}, nil)
	f.Add([]byte{})
	f.Add(appendIndexed([]byte(indexMagic), n))
	f.Fuzz(func(t *testing.T, body []byte) {
		sum := blake3.Sum256(body)
		x, err := decodeIndex(append(bytes.Clone(body), sum[:]...))
		if err != nil {
			return
		}
		for _, e := range x.files {
			if 32*len(e.recs) > len(body) {
				t.Fatal("an entry larger than the index")
			}
		}
	})
}

// FuzzHunks checks the heart of history and undo: hunks turn one text into the
// other and their inverse turns it back.
func FuzzHunks(f *testing.F) {
	f.Add("* A\nx\n* B\n", "* A\ny\n* B\n")
	f.Add("", "* A\n")
	f.Add("* A\n* A\n* A\n", "* A\n* A\n")
	f.Add("a\nb\nc", "a\nc")
	f.Fuzz(func(t *testing.T, a, b string) {
		build := func(s string) *node { return buildNode("f.org", org.Parse([]byte(s)), fileStat{}, nil) }
		hs := hunksBetween(build(a), build(b))
		there, ok := splice([]byte(a), hs)
		if !ok || string(there) != b {
			t.Fatalf("%q → %q gives %q", a, b, there)
		}
		back, ok := splice(there, inverse(hs))
		if !ok || string(back) != a {
			t.Fatalf("and back gives %q", back)
		}
	})
}

// FuzzRebuildEqualsBuilding checks that taking over hashes from the former version
// never shows.
func FuzzRebuildEqualsBuilding(f *testing.F) {
	f.Add("* A\nx\n** B\n* C\n", "* A\nx\n** B2\n* C\n")
	f.Add("* A\n", "")
	f.Add("pre\n* A\n* A\n", "pre\n* A\n* A\n* A\n")
	f.Fuzz(func(t *testing.T, a, b string) {
		old := buildNode("f.org", org.Parse([]byte(a)), fileStat{}, nil)
		now := org.Parse([]byte(b))
		if buildNode("f.org", now, fileStat{}, carryHashes(old, now)).sum != buildNode("f.org", now, fileStat{}, nil).sum {
			t.Fatalf("%q → %q: hashes differ", a, b)
		}
	})
}

func FuzzSnapshotNeverPanics(f *testing.F) {
	f.Add([]byte(`(:MEMORY (("a" . (:ID "a" :CHILDREN ("b") :CONTENT "x")) (:ID "b" :PARENT-ID "a" :CHILDREN ("a"))))`))
	f.Add([]byte(`(:MEMORY NIL)`))
	f.Fuzz(func(t *testing.T, b []byte) {
		objs, err := readSnapshot(b)
		if err != nil {
			return
		}
		for id, o := range objs {
			if o.id != id || o.title == "" {
				t.Fatalf("object %q: %+v", id, o)
			}
		}
	})
}
