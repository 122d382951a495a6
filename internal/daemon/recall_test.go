package daemon_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"passepartout/internal/llm"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// vectors answers a request for embeddings with words hashed into few components.
func vectors(rw http.ResponseWriter, body string) {
	var in struct {
		Input []string `json:"input"`
	}
	if err := json.Unmarshal([]byte(body), &in); err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	var data []map[string]any
	for i, text := range in.Input {
		v := make([]float32, 64)
		for _, w := range strings.Fields(strings.ToLower(text)) {
			h := fnv.New32a()
			_, _ = io.WriteString(h, w) // a hash never fails to write
			v[h.Sum32()%64]++
		}
		v[0]++
		data = append(data, map[string]any{"index": i, "embedding": v})
	}
	_ = json.NewEncoder(rw).Encode(map[string]any{"data": data}) // the client sees what is missing
}

// chatOrVectors is a cloud that does both, and always says the same.
func chatOrVectors(text string) func(int, string) http.HandlerFunc {
	return func(_ int, body string) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/embeddings") {
				vectors(rw, body)
				return
			}
			speak(text)(rw, r)
		}
	}
}

// A thousand secrets under a privacy tag: none is in anything that is sent to a
// provider, for vectors or for words, in the log, the journal or what is kept.
func TestINV12NoPrivateNoteReachesAnEmbedderAModelOrALog(t *testing.T) {
	m := newModel(t, chatOrVectors("The pump is fine."))
	s := m.cloud(settings(t))
	s.Models.Embedder = llm.Provider{Name: "openai", Model: "text-embedding-3-small", Key: "key-of-openai"}
	var log bytes.Buffer
	s.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var b strings.Builder
	b.WriteString("* Diary :@personal:\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "** canary%04dtitle\n:PROPERTIES:\n:ID: secret-%d\n:END:\nThe heat pump and canary%04dbody.\n", i, i, i)
	}
	b.WriteString("* Plain\n")
	for i := range 40 {
		fmt.Fprintf(&b, "** Heat pump number %d hums\n:PROPERTIES:\n:ID: plain-%d\n:END:\nThe offer for the cellar pump says %d crowns, with a warranty of two years.\n", i, i, i)
	}
	write(t, s, "diary.org", b.String())
	h := open(t, s)
	p := h.connect()
	status := func() sexp.Plist {
		return p.request(data(t, `(:TYPE :REQUEST :PAYLOAD (:ACTION :RECALL-STATUS))`)).Payload
	}
	for range 100_000 { // each a round trip; the daemon works beside them
		if status().Text("SERVING") != "" {
			break
		}
	}
	if st := status(); st.Text("SERVING") != "openai/text-embedding-3-small" || withheld(st) < 1001 {
		t.Fatalf("want all but the private notes embedded, found %v", st)
	}
	for i := range 20 {
		p.request(data(t, fmt.Sprintf(`(:TYPE :EVENT :META (:SESSION-ID "s") :PAYLOAD (:SENSOR :POINT-UPDATE :ID "secret-%d"))`, i)))
		p.request(say("s", fmt.Sprintf("what about the heat pump number %d?", i)))
	}
	if st := p.request(data(t, `(:TYPE :REQUEST :PAYLOAD (:ACTION :HEALTH-CHECK))`)); !strings.Contains(st.Payload.List().String(), ":EMBEDDINGS") {
		t.Error("the health does not say how far the vectors are")
	}
	h.close()
	heard := m.heard()
	if n := slices.IndexFunc(heard, func(b string) bool { return strings.Contains(b, `"input"`) }); n < 0 {
		t.Fatal("nothing was embedded: the test does not look where secrets could be")
	}
	for _, body := range heard {
		if strings.Contains(body, "canary") {
			t.Fatalf("a secret was sent: %.300s", body)
		}
	}
	if strings.Contains(log.String(), "canary") {
		t.Error("a secret is in the log")
	}
	for _, dir := range []string{"vectors", "journal"} {
		noCanary(t, filepath.Join(s.StateDir, dir))
	}
}

func withheld(p sexp.Plist) int64 {
	v, _ := p.Get("WITHHELD")
	i, _ := v.(sexp.Int)
	n, _ := i.Int64()
	return n
}

// noCanary wants no secret in any file of a directory, and no file for others.
func noCanary(t *testing.T, dir string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		info, err := d.Info()
		if err != nil {
			return err
		}
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, []byte("canary")) || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v, or holds a secret", path, info.Mode())
		}
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%s: %d files, %v", dir, files, err)
	}
}

// Where an editor's cursor is, and which projects are in focus, is what a model is
// shown; of other sessions it is nothing; and it can say why.
func TestAModelIsShownWhatTheSessionLooksAt(t *testing.T) {
	m := newModel(t, always(speak("Noted.")))
	s := m.cloud(settings(t))
	write(t, s, "house.org", "* House\n:PROPERTIES:\n:ID: house\n:END:\n** Roof\n:PROPERTIES:\n:ID: roof\n:END:\nThe zinc gutter drips.\n")
	write(t, s, "boat.org", "* Boat\n:PROPERTIES:\n:ID: boat\n:END:\nThe keel wants antifouling.\n* Sail\n:PROPERTIES:\n:ID: sail\n:END:\nTorn at the luff.\n")
	h := open(t, s)
	p := h.connect()
	seen := func(session string) string {
		t.Helper()
		p.request(say(session, "hello there"))
		heard := m.heard()
		return heard[len(heard)-1]
	}
	point := func(arg string) proto.Message {
		return p.request(data(t, `(:TYPE :EVENT :META (:SESSION-ID "a") :PAYLOAD (:SENSOR :POINT-UPDATE `+arg+`))`))
	}
	whole := "The zinc gutter drips."
	if r := point(`:FILE "house.org" :LINE 5`); r.Payload.Text("FOCUS") != "roof" {
		t.Fatalf("found %v", r.Payload)
	}
	if !strings.Contains(seen("a"), whole) {
		t.Error("what the cursor is on is not shown")
	}
	if r := point(fmt.Sprintf(`:FILE %q :LINE 2`, filepath.Join(s.MemexDir, "boat.org"))); r.Payload.Text("FOCUS") != "boat" {
		t.Fatalf("an editor's own path: found %v", r.Payload)
	}
	if r := point(`:ID "no-such-node"`); r.Payload.Word("STATUS") != "FAILED" {
		t.Errorf("a node that is not there: found %v", r.Payload)
	}
	point("")
	p.request(data(t, `(:TYPE :REQUEST :META (:SESSION-ID "a") :PAYLOAD (:ACTION :FOCUS :OP :PUSH :NODE "sail"))`))
	p.request(data(t, `(:TYPE :REQUEST :META (:SESSION-ID "a") :PAYLOAD (:ACTION :FOCUS :OP :PUSH :NODE "house"))`))
	if text := seen("a"); !strings.Contains(text, whole) || !strings.Contains(text, "Torn at the luff") {
		t.Error("the project in focus is not shown with what is below it, or the one under it is not")
	}
	reply := func(text string) string { return p.request(say("a", text)).Payload.Text("TEXT") }
	if why := reply("/context why roof"); !strings.Contains(why, "below the focus") {
		t.Errorf("/context why: %s", why)
	}
	if sum := reply("/context"); !strings.Contains(sum, "tokens") {
		t.Errorf("/context: %s", sum)
	}
	if list := reply("/focus list"); list != "current project: House (house.org:1)\nproject: Sail (boat.org:6)" {
		t.Errorf("/focus list: %s", list)
	}
	for range 8 {
		reply("/focus push boat")
	}
	h.close()
	p = open(t, s).connect()
	if list := reply("/focus"); !strings.HasPrefix(list, "current project: Boat (boat.org:1)\nproject: House") {
		t.Errorf("after a restart: %s", list)
	}
	if list := p.request(say("b", "/focus")).Payload.Text("TEXT"); !strings.HasPrefix(list, "Nothing is in focus") {
		t.Errorf("another session: %s", list)
	}
	c := p.request(data(t, `(:TYPE :REQUEST :META (:SESSION-ID "a") :PAYLOAD (:ACTION :CONTEXT :TEXT "antifouling"))`)).Payload
	if !strings.Contains(c.Text("TEXT"), "antifouling") || !strings.Contains(c.List().String(), "project in focus") && !strings.Contains(c.List().String(), `"focus"`) {
		t.Errorf("context: %.400s", c.Text("TEXT"))
	}
	hits := p.request(data(t, `(:TYPE :REQUEST :PAYLOAD (:ACTION :RECALL :TEXT "gutters" :LIMIT 1))`)).Payload
	if !strings.Contains(hits.List().String(), `"roof"`) {
		t.Errorf("recall: %v", hits)
	}
}
