package channel

import (
	"time"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// A Notice is something the owner is told without having asked.
type Notice struct {
	Key  string // of what it is about: the same when it is told again
	Text string // as much of it as may leave the machine
	Asks bool   // it is about a question; who was shown that is not told of it as well
}

// Limits of notices. A job that fails every second must not make a telephone ring
// every second.
const (
	maxNotices  = 30 // within the time below; the last one says that there are more
	noticeTime  = time.Hour
	tooManyText = "[There is more than is told here within an hour. It is all on your machine: passepartout schedule history]"
)

// Notify tells every owner who is paired, and returns how many those are. When it
// returns without an error the notice is on disk, and is sent as soon as the service
// lets us; told again, in this life or the next, it is not sent again.
func (g *Gateway) Notify(n Notice) (owners int, err error) {
	said := false
	err = g.store.do(func(s *state) (out []sexp.Plist) {
		if _, told := s.told[n.Key]; told {
			return nil
		}
		now, text := g.o.Now(), n.Text
		switch recent := s.toldAround(now); {
		case recent >= maxNotices:
			text = ""
		case recent == maxNotices-1:
			text = tooManyText
		}
		for _, p := range sorted(s.peers) {
			if p.Role != proto.RoleOwner || n.Asks && g.o.Approver(proto.Origin{Role: p.Role, Channel: g.o.Name, Who: g.who(p.ID)}) {
				continue
			}
			owners++
			out = append(out, g.posts(p.Chat, text)...)
		}
		said = len(out) > 0
		if owners > 0 {
			out = append(out, toldRecord(n.Key, now))
		}
		return out
	})
	if err != nil {
		return 0, err
	}
	g.step("noticed")
	if said {
		g.note("NOTICE", Incoming{}, sexp.Keyword("ABOUT"), n.Key, sexp.Keyword("OWNERS"), owners)
	}
	wake(g.outbox)
	return owners, nil
}

// toldAround is how many notices were given lately, by a clock that may have been set.
func (s *state) toldAround(now time.Time) (n int) {
	for _, at := range s.told {
		if now.Sub(at).Abs() < noticeTime {
			n++
		}
	}
	return n
}

func toldRecord(key string, at time.Time) sexp.Plist {
	return rec(recTold, sexp.Keyword("ID"), key, sexp.Keyword("AT"), stamp(at))
}
