package channel

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"passepartout/internal/powercut"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// TestMessagesSurviveAPowerCut: what was acknowledged to the service is in the inbox,
// or answered; a reply that was promised is in the outbox, or sent; the cursor is never
// ahead of what is kept; and who is paired stays so.
func TestMessagesSurviveAPowerCut(t *testing.T) {
	at := time.Date(2026, 11, 15, 9, 0, 0, 0, time.UTC)
	now := func() time.Time { return at }
	open := func(dir string) (*store, error) {
		return openStore(filepath.Join(dir, "state", "channels"), "telegram", now)
	}
	key := func(k string) sexp.Keyword { return sexp.Keyword(k) }
	powercut.Run(t, powercut.Scenario{
		Work: func(dir string, mark func(string)) error {
			st, err := open(dir)
			if err != nil {
				return err
			}
			put := func(promise string, records ...sexp.Plist) {
				if err == nil {
					if err = st.do(func(*state) []sexp.Plist { return records }); err == nil {
						mark(promise)
					}
				}
			}
			put("paired", peerRecord(Peer{ID: "7", Name: "Ana", Role: proto.RoleOwner, Chat: "7", Since: at}))
			for i := range 4 {
				id := fmt.Sprintf("m-%d", i)
				in := Incoming{ID: id, Cursor: fmt.Sprint(i + 1), Kind: Message, From: Sender{ID: "7"}, Chat: "7", Text: strings.Repeat("words ", 100*i)}
				put("taken "+id, takenRecord(in, at, false))
				put("begun "+id, rec(recBegun, key("ID"), id))
				put("answered "+id, rec(recAnswered, key("ID"), id), postRecord(post{ID: "p-" + id, Chat: "7", Text: "reply"}))
				if i%2 == 0 {
					put("sent "+id, rec(recSent, key("ID"), "p-"+id, key("REF"), "r"))
				}
			}
			if err != nil {
				return err
			}
			return st.close()
		},
		Check: func(dir string, marks []string) error {
			st, err := open(dir)
			if err != nil {
				return err
			}
			s := &st.s
			has := func(promise string) bool { return slices.Contains(marks, promise) }
			if has("paired") && s.peers["7"].Role != proto.RoleOwner {
				return fmt.Errorf("the pairing is lost: %v", s.peers)
			}
			for i := range 4 {
				id := fmt.Sprintf("m-%d", i)
				m, p := s.message(id), s.post("p-"+id)
				_, known := s.ids[id]
				switch {
				case has("taken "+id) && !known:
					return fmt.Errorf("%s was taken and would be taken again", id)
				case has("taken "+id) && !has("begun "+id) && m == nil:
					return fmt.Errorf("%s was taken and is lost", id)
				case has("begun "+id) && m != nil && !m.Begun:
					return fmt.Errorf("%s would be begun again", id)
				case has("answered "+id) && m != nil:
					return fmt.Errorf("%s would be answered again", id)
				case known && m == nil && p == nil && !(i%2 == 0 && has("answered "+id)):
					return fmt.Errorf("%s has gone without a reply", id)
				case has("sent "+id) && p != nil:
					return fmt.Errorf("the reply to %s would be sent again", id)
				case s.cursor >= fmt.Sprint(i+1) && !known:
					return fmt.Errorf("the cursor is at %s, and %s is not known", s.cursor, id)
				}
			}
			return st.close()
		},
		Again: 2,
	})
}
