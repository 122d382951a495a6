package channel

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"passepartout/internal/proto"
	"passepartout/internal/record"
	"passepartout/internal/sexp"
)

// Limits of what is kept.
const (
	keepIDs      = 8 * 24 * time.Hour  // of messages taken and notices given; services hand over again within a day
	keepAsks     = 31 * 24 * time.Hour // what may come of a question is told for so long
	keepOver     = 24 * time.Hour
	maxStrangers = 200
	maxLog       = 4 << 20 // bytes after which the file is written anew
)

// A taken message is one that was accepted and not yet answered.
type taken struct {
	Incoming
	At    time.Time
	Begun bool // the agent has, or had, it
}

// A post is one message to a person. It stays until it is delivered: without a
// ref it has to be sent, with one it has to be edited.
type post struct {
	ID   string
	Chat string
	Ref  string // what the service calls it, "" until it is sent
	Text string
	Ask  string // token of the question it is, "" for none
}

// An asked question is a message that shows the state of a plan.
type asked struct {
	Token string
	Chat  string
	For   string // the conversation that waits for what comes of it
	Post  string // the post that carries it
	Ref   string // known once it was delivered
	Turn  string // of the message that led to it
	Shown string // the text it shows now; what differs is still to be shown
	At    time.Time
	Over  bool // it shows how the plan ended
}

// A Peer is somebody who was paired.
type Peer struct {
	ID      string
	Name    string // as it was at the pairing
	Role    proto.Role
	Chat    string // where they are spoken to alone
	Session string // the conversation theirs continues, "" for the usual
	Since   time.Time
}

// A Stranger is somebody who wrote and is not paired.
type Stranger struct {
	ID    string
	Name  string
	First time.Time
	Last  time.Time
	Count int
	Why   string // the last reason nothing was done
}

// A code pairs whoever sends it first.
type code struct {
	Digest  string
	Role    proto.Role
	Expires time.Time
	Tries   int // wrong ones since
}

// A state is all a gateway remembers. It is changed by applying records only, so
// that memory and disk cannot differ.
type state struct {
	account   string // that was linked last
	cursor    string
	heard     time.Time // when the cursor last moved
	ids       map[string]time.Time
	told      map[string]time.Time // notices that were given
	inbox     []*taken
	outbox    []*post
	asks      []*asked
	peers     map[string]Peer
	former    map[string]bool // where those were spoken to who are paired no more
	strangers map[string]Stranger
	code      code
}

// A store is a gateway's memory on disk. It is safe for concurrent use.
type store struct {
	now func() time.Time

	mu  sync.Mutex // guards what follows; held while writing, so that records and state agree
	log *record.File
	s   state
}

func openStore(dir, name string, now func() time.Time) (*store, error) {
	path := filepath.Join(dir, name+".log")
	st := &store{now: now, s: state{
		ids: map[string]time.Time{}, told: map[string]time.Time{}, peers: map[string]Peer{}, former: map[string]bool{}, strangers: map[string]Stranger{},
	}}
	if err := record.Read(path, st.s.apply); err != nil {
		return nil, fmt.Errorf("what was answered is not known: %w", err)
	}
	var err error
	st.log, err = record.Create(path, st.kept())
	return st, err
}

func (st *store) close() error {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.log.Close()
}

// write puts records on disk, and then into the state.
func (st *store) write(records ...sexp.Plist) error {
	if err := st.log.Append(true, records...); err != nil {
		return err
	}
	for _, p := range records {
		if err := st.s.apply(p); err != nil {
			return err
		}
	}
	if st.log.Size() > maxLog {
		return st.log.Replace(st.kept())
	}
	return nil
}

// do runs a change under the lock: what it returns is written.
func (st *store) do(change func(s *state) []sexp.Plist) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	records := change(&st.s)
	if len(records) == 0 {
		return nil
	}
	return st.write(records...)
}

// see runs a look at the state under the lock.
func (st *store) see(look func(s *state)) {
	st.mu.Lock()
	defer st.mu.Unlock()
	look(&st.s)
}

// kept are the records of the state, without what is over.
func (st *store) kept() []sexp.Plist {
	now := st.now()
	for id, at := range st.s.ids {
		if now.Sub(at) > keepIDs {
			delete(st.s.ids, id)
		}
	}
	for key, at := range st.s.told {
		if now.Sub(at) > keepIDs {
			delete(st.s.told, key)
		}
	}
	st.s.asks = slices.DeleteFunc(st.s.asks, func(a *asked) bool { return a.Over && now.Sub(a.At) > keepOver || now.Sub(a.At) > keepAsks })
	st.s.forgetStrangers()
	return st.s.records()
}

func (s *state) forgetStrangers() {
	for len(s.strangers) > maxStrangers {
		oldest := ""
		for id, x := range s.strangers {
			if oldest == "" || x.Last.Before(s.strangers[oldest].Last) {
				oldest = id
			}
		}
		delete(s.strangers, oldest)
	}
}

// Kinds of records.
const (
	recCursor   sexp.Keyword = "CURSOR"
	recSeen     sexp.Keyword = "SEEN"
	recTaken    sexp.Keyword = "TAKEN"
	recBegun    sexp.Keyword = "BEGUN"
	recAnswered sexp.Keyword = "ANSWERED"
	recPost     sexp.Keyword = "POST"
	recPlaced   sexp.Keyword = "PLACED"
	recSent     sexp.Keyword = "SENT"
	recAsked    sexp.Keyword = "ASKED"
	recShown    sexp.Keyword = "SHOWN"
	recPeer     sexp.Keyword = "PEER"
	recUnpeer   sexp.Keyword = "UNPEER"
	recStranger sexp.Keyword = "STRANGER"
	recCode     sexp.Keyword = "CODE"
	recAccount  sexp.Keyword = "ACCOUNT"
	recTold     sexp.Keyword = "TOLD"
)

func rec(kind sexp.Keyword, pairs ...any) sexp.Plist {
	return sexp.P(append([]any{sexp.Keyword("R"), kind}, pairs...)...)
}

// apply is what a record means.
func (s *state) apply(p sexp.Plist) error {
	at, err := timeOf(p, "AT")
	if err != nil {
		return err
	}
	id := p.Text("ID")
	switch p.Word("R") {
	case recCursor:
		s.cursor, s.heard = p.Text("CURSOR"), at
	case recSeen:
		s.ids[id] = at
	case recTaken:
		in := incomingOf(p)
		s.ids[in.ID] = at
		if in.Cursor != "" {
			s.cursor, s.heard = in.Cursor, at
		}
		s.inbox = append(s.inbox, &taken{Incoming: in, At: at, Begun: p.Flag("BEGUN")})
	case recBegun:
		if t := s.message(id); t != nil {
			t.Begun = true
		}
	case recAnswered:
		s.inbox = slices.DeleteFunc(s.inbox, func(t *taken) bool { return t.ID == id })
	case recPost:
		if s.former[p.Text("CHAT")] {
			break // it was on its way when they were forgotten
		}
		s.outbox = append(s.outbox, &post{ID: id, Chat: p.Text("CHAT"), Ref: p.Text("REF"), Text: p.Text("TEXT"), Ask: p.Text("ASK")})
	case recPlaced:
		if o := s.post(id); o != nil {
			o.Ref = p.Text("REF")
		}
	case recSent:
		s.sent(id, p.Text("REF"), p.Text("SHOWN"))
	case recAsked:
		s.asks = append(s.asks, &asked{
			Token: p.Text("TOKEN"), Chat: p.Text("CHAT"), For: p.Text("FOR"), Post: p.Text("POST"), Ref: p.Text("REF"), Turn: p.Text("TURN"), Shown: p.Text("SHOWN"), At: at, Over: p.Flag("OVER") || s.former[p.Text("CHAT")],
		})
	case recShown:
		for _, a := range s.asks {
			if a.Token == p.Text("TOKEN") && a.Chat == p.Text("CHAT") && a.Ref == p.Text("REF") {
				a.Shown, a.Over = p.Text("SHOWN"), p.Flag("OVER")
			}
		}
	case recPeer:
		s.peers[id] = Peer{ID: id, Name: p.Text("NAME"), Role: proto.ParseRole(p.Text("ROLE")), Chat: p.Text("CHAT"), Session: p.Text("SESSION"), Since: at}
		delete(s.strangers, id)
		delete(s.former, p.Text("CHAT"))
	case recUnpeer:
		s.forget(id)
	case recStranger:
		return s.applyStranger(id, at, p)
	case recCode:
		return s.applyCode(p)
	case recAccount:
		s.adopt(id)
	case recTold:
		s.told[id] = at
	default:
		return fmt.Errorf("unknown record %q", p.Word("R"))
	}
	return nil
}

func (s *state) applyStranger(id string, at time.Time, p sexp.Plist) error {
	first, err := timeOf(p, "FIRST")
	if err != nil {
		return err
	}
	s.strangers[id] = Stranger{ID: id, Name: p.Text("NAME"), First: first, Last: at, Count: p.Number("COUNT"), Why: p.Text("WHY")}
	s.forgetStrangers()
	return nil
}

// forget is what it means that somebody is not paired any more: what they said is not
// answered, and what was still to be said to them is not said, be it that their telephone
// was lost.
func (s *state) forget(id string) {
	chat := s.peers[id].Chat
	delete(s.peers, id)
	s.former[chat] = true
	s.inbox = slices.DeleteFunc(s.inbox, func(t *taken) bool { return t.From.ID == id })
	s.outbox = slices.DeleteFunc(s.outbox, func(o *post) bool { return o.Chat == chat })
	for _, a := range s.asks {
		a.Over = a.Over || a.Chat == chat
		if a.For == chat {
			a.For = ""
		}
	}
}

// adopt makes an account the one that is spoken for. Another one than before
// counts its own messages: it knows neither where we were nor those we sent, and
// must not edit what has their numbers by chance.
func (s *state) adopt(account string) {
	if s.account != "" && s.account != account {
		s.cursor = ""
		for _, o := range s.outbox {
			o.Ref = ""
		}
		for _, a := range s.asks {
			a.Over = a.Over || a.Ref != "" // what was not shown yet will be, by the new one
			a.Ref = ""
		}
	}
	s.account = account
}

func (s *state) applyCode(p sexp.Plist) error {
	until, err := timeOf(p, "EXPIRES")
	if err != nil {
		return err
	}
	s.code = code{Digest: p.Text("DIGEST"), Role: proto.ParseRole(p.Text("ROLE")), Expires: until, Tries: p.Number("TRIES")}
	return nil
}

// sent takes a post out of the outbox; the question it was knows its message.
func (s *state) sent(id, ref, shown string) {
	s.outbox = slices.DeleteFunc(s.outbox, func(o *post) bool { return o.ID == id })
	for _, a := range s.asks {
		if a.Post == id {
			a.Ref, a.Shown = ref, shown
		}
	}
}

func (s *state) message(id string) *taken {
	if i := slices.IndexFunc(s.inbox, func(t *taken) bool { return t.ID == id }); i >= 0 {
		return s.inbox[i]
	}
	return nil
}

func (s *state) post(id string) *post {
	if i := slices.IndexFunc(s.outbox, func(o *post) bool { return o.ID == id }); i >= 0 {
		return s.outbox[i]
	}
	return nil
}

// records is the state as records that lead to it.
func (s *state) records() []sexp.Plist {
	out := []sexp.Plist{rec(recAccount, sexp.Keyword("ID"), s.account), rec(recCursor, sexp.Keyword("CURSOR"), s.cursor, sexp.Keyword("AT"), stamp(s.heard))}
	for _, p := range sorted(s.peers) {
		out = append(out, peerRecord(p))
	}
	for _, x := range sorted(s.strangers) {
		out = append(out, strangerRecord(x))
	}
	if s.code.Digest != "" {
		out = append(out, codeRecord(s.code))
	}
	inbox := map[string]bool{}
	for _, t := range s.inbox {
		inbox[t.ID] = true
	}
	for _, id := range slices.Sorted(maps.Keys(s.ids)) {
		if !inbox[id] {
			out = append(out, rec(recSeen, sexp.Keyword("ID"), id, sexp.Keyword("AT"), stamp(s.ids[id])))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.told)) {
		out = append(out, toldRecord(key, s.told[key]))
	}
	for _, t := range s.inbox {
		in := t.Incoming
		in.Cursor = "" // it is at the top
		out = append(out, takenRecord(in, t.At, t.Begun))
	}
	for _, o := range s.outbox {
		out = append(out, postRecord(*o))
	}
	for _, a := range s.asks {
		out = append(out, askedRecord(*a))
	}
	return out
}

func sorted[V any](m map[string]V) []V {
	out := make([]V, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[k])
	}
	return out
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func timeOf(p sexp.Plist, k sexp.Keyword) (time.Time, error) {
	text := p.Text(k)
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return t, fmt.Errorf("%s: want a time, found %q", k, text)
	}
	return t, nil
}

func byLast(a, b Stranger) int { return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.ID, b.ID)) }
