package lisp_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"passepartout/internal/lisp"
	"passepartout/internal/sexp"
)

// datum generates the source of a random datum.
func datum(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		kind := rapid.IntRange(0, 9).Draw(t, "kind")
		if depth == 0 {
			kind %= 7
		}
		switch kind {
		case 0:
			return fmt.Sprint(rapid.Int64().Draw(t, "int"))
		case 1:
			return fmt.Sprintf("%d/%d", rapid.Int32().Draw(t, "num"), rapid.Int32Range(1, 1000).Draw(t, "den"))
		case 2:
			return singleFloat(t)
		case 3:
			return rapid.StringMatching(`"[a-zA-Z0-9 .;()'é日\-]{0,12}"`).Draw(t, "string")
		case 4:
			return rapid.StringMatching(`:?[a-zA-Z*+\-][a-zA-Z0-9*+\-]{0,8}`).Draw(t, "symbol")
		case 5:
			return "|" + rapid.StringMatching(`[a-zA-Z0-9 .:;()]{0,8}`).Draw(t, "name") + "|"
		case 6:
			return `#\` + rapid.StringMatching(`[a-zA-Z0-9(;.]`).Draw(t, "char")
		case 7:
			return "#(" + strings.Join(rapid.SliceOfN(datum(depth-1), 0, 4).Draw(t, "vector"), " ") + ")"
		}
		list := rapid.SliceOfN(datum(depth-1), 1, 4).Draw(t, "list")
		if kind == 8 {
			return "(" + strings.Join(list, " ") + " . " + datum(0).Draw(t, "tail") + ")"
		}
		return "(" + strings.Join(list, " ") + ")"
	})
}

func singleFloat(t *rapid.T) string {
	f := rapid.Float32Range(1e-30, 1e30).Draw(t, "float")
	s := strings.Replace(fmt.Sprintf("%e", f), "e+", "e", 1)
	if rapid.Bool().Draw(t, "double") {
		return strings.Replace(s, "e", "d", 1)
	}
	return s
}

func TestPrintedDataReadsBackTheSame(t *testing.T) {
	img := newImage(t)
	rapid.Check(t, func(t *rapid.T) {
		src := datum(3).Draw(t, "datum")
		th := img.Thread(generous)
		once := answer(th, "'"+src)
		twice := answer(th, "'"+strings.TrimSuffix(strings.TrimPrefix(once, "= ("), ")"))
		if once != twice || !strings.HasPrefix(once, "= ") {
			t.Fatalf("%s printed as %s and then as %s", src, once, twice)
		}
	})
}

// TestRandomDataPrintsAsInSBCL sends a file of random data through both.
func TestRandomDataPrintsAsInSBCL(t *testing.T) {
	if _, err := exec.LookPath("sbcl"); err != nil {
		t.Skip("sbcl is not installed")
	}
	if testing.Short() {
		t.Skip("starting sbcl takes seconds")
	}
	var forms []string
	for seed := range 1500 {
		forms = append(forms, "'"+datum(3).Example(seed))
	}
	file := filepath.Join(t.TempDir(), "random.lisp")
	if err := os.WriteFile(file, []byte(strings.Join(forms, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want, _ := askSBCL(t, file)
	if len(want) != len(forms) {
		t.Fatalf("sbcl read %d data of %d", len(want), len(forms))
	}
	th := newImage(t).Thread(generous)
	for i, f := range forms {
		if got := answer(th, f); got != want[i] {
			t.Errorf("%s\n  here %s\n  sbcl %s", f, got, want[i])
		}
	}
}

// TestIsDataAgreesWithConverting compares the short way with the long one: turning a
// value into data and comparing that.
func TestIsDataAgreesWithConverting(t *testing.T) {
	img := newImage(t)
	rapid.Check(t, func(t *rapid.T) {
		th := img.Thread(generous)
		a, b := datum(2).Draw(t, "a"), datum(2).Draw(t, "b")
		if rapid.Bool().Draw(t, "same") {
			b = a
		}
		values := make([]lisp.Value, 2)
		for i, src := range []string{a, b} {
			vs, err := th.EvalString("", "'"+src)
			if err != nil {
				t.Skip("not a datum")
			}
			values[i] = vs[0]
		}
		da, err := th.ToData(values[0])
		if err != nil {
			t.Skip("no data")
		}
		db, err := th.ToData(values[1])
		if err != nil {
			t.Skip("no data")
		}
		if got, err := th.IsData(values[1], da); err != nil || got != sexp.Equal(db, da) {
			t.Fatalf("%s and %s: IsData says %v, %v", a, b, got, err)
		}
		again, err := th.FromData(da)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := th.IsData(again, da); err != nil || !got {
			t.Fatalf("%s: what was made of it is not it: %v, %v", a, got, err)
		}
	})
}
