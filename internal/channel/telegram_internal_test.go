package channel

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"passepartout/internal/sexp"
)

// FuzzUpdate feeds the decoder whatever a service, or somebody who poses as it,
// might send. It must not panic, and what it makes of it must be fit to be kept.
func FuzzUpdate(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "wire", "update-*.json"))
	if err != nil || len(files) == 0 {
		f.Fatalf("no updates to begin with: %v", err)
	}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte(`{"update_id":1,"message":{"chat":7}}`))
	f.Add([]byte(`{"update_id":9223372036854775807,"callback_query":{"from":null}}`))
	t := &Telegram{me: botUser{ID: 4242, Username: "pp_test_bot"}}
	f.Fuzz(func(tt *testing.T, raw []byte) {
		in, id, err := t.incoming(raw)
		if err != nil {
			return
		}
		if in.ID == "" || in.Kind != Unknown && (in.From.ID == "" || in.From.ID == "0" || in.Chat == "" || in.Chat == "0" || id <= 0) {
			tt.Errorf("%s becomes %+v", raw, in)
		}
		in.Text, in.From.Name = Clean(in.Text), line(in.From.Name, 80)
		for i := range in.Files {
			in.Files[i].ID = Clean(in.Files[i].ID)
		}
		p := takenRecord(in, time.Unix(1, 0), false)
		if again, err := sexp.ReadPlist([]byte(p.String()), sexp.Limits{}); err != nil || again.String() != p.String() {
			tt.Errorf("%+v cannot be recorded: %v", in, err)
		}
	})
}

func TestErrorsAreSortedByWhatCanBeDone(t *testing.T) {
	a := &botAPI{token: "1:secret"}
	wait, fin := (*WaitError)(nil), (*FinalError)(nil)
	for _, c := range []struct {
		code  int
		after int
		wait  time.Duration
		final bool
	}{
		{429, 17, 17 * time.Second, false},
		{429, 0, 0, false},
		{401, 0, 5 * time.Minute, false},
		{404, 0, 5 * time.Minute, false},
		{409, 0, 30 * time.Second, false},
		{400, 0, 0, true},
		{403, 0, 0, true},
		{500, 0, 0, false},
		{502, 0, 0, false},
	} {
		var r apiReply
		if err := json.Unmarshal([]byte(`{"ok":false}`), &r); err != nil {
			t.Fatal(err)
		}
		r.Code, r.Parameters.RetryAfter = c.code, c.after
		err := a.refused("sendMessage", r)
		if errors.As(err, &fin) != c.final {
			t.Errorf("%d: final is %t", c.code, !c.final)
		}
		if got := errors.As(err, &wait); got != (c.wait > 0 || c.code == 429) || got && wait.After != c.wait {
			t.Errorf("%d: %v", c.code, err)
		}
	}
	g := &Gateway{o: Options{Delay: time.Second}}
	if d := g.waitFor(&WaitError{After: 17 * time.Second}, time.Second); d != 17*time.Second {
		t.Errorf("told to wait 17 seconds, it waits %v", d)
	}
	if d := g.waitFor(&WaitError{After: 1000 * time.Hour}, time.Second); d != maxPause {
		t.Errorf("told to wait 1000 hours, it waits %v", d)
	}
}
