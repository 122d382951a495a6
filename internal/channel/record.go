package channel

import (
	"time"

	"passepartout/internal/sexp"
)

func takenRecord(in Incoming, at time.Time, begun bool) sexp.Plist {
	files := make([]sexp.Value, len(in.Files))
	for i, f := range in.Files {
		files[i] = sexp.P(
			sexp.Keyword("ID"), f.ID, sexp.Keyword("NAME"), f.Name, sexp.Keyword("TYPE"), f.Type, sexp.Keyword("SIZE"), f.Size).List()
	}
	return rec(recTaken,
		sexp.Keyword("ID"), in.ID, sexp.Keyword("CURSOR"), in.Cursor, sexp.Keyword("AT"), stamp(at), sexp.Keyword("BEGUN"), begun,
		sexp.Keyword("KIND"), int(in.Kind), sexp.Keyword("FROM"), in.From.ID, sexp.Keyword("NAME"), in.From.Name, sexp.Keyword("CHAT"), in.Chat,
		sexp.Keyword("GROUP"), in.Group, sexp.Keyword("ADDRESSED"), in.Addressed, sexp.Keyword("FORWARDED"), in.Forwarded,
		sexp.Keyword("TEXT"), in.Text, sexp.Keyword("FILES"), sexp.NewList(files...), sexp.Keyword("REF"), in.Ref, sexp.Keyword("TOUCH"), in.Touch)
}

func incomingOf(p sexp.Plist) Incoming {
	in := Incoming{
		ID: p.Text("ID"), Cursor: p.Text("CURSOR"), Kind: Kind(p.Number("KIND")), From: Sender{ID: p.Text("FROM"), Name: p.Text("NAME")},
		Chat: p.Text("CHAT"), Group: p.Flag("GROUP"), Addressed: p.Flag("ADDRESSED"), Forwarded: p.Flag("FORWARDED"),
		Text: p.Text("TEXT"), Ref: p.Text("REF"), Touch: p.Text("TOUCH"),
	}
	v, _ := p.Get("FILES")
	l, _ := v.(sexp.List)
	for _, item := range l.Items() {
		fl, _ := item.(sexp.List)
		f, err := sexp.AsPlist(fl)
		if err != nil {
			continue // not written by this program
		}
		in.Files = append(in.Files, File{ID: f.Text("ID"), Name: f.Text("NAME"), Type: f.Text("TYPE"), Size: int64(f.Number("SIZE"))})
	}
	return in
}

func postRecord(o post) sexp.Plist {
	return rec(recPost,
		sexp.Keyword("ID"), o.ID, sexp.Keyword("CHAT"), o.Chat, sexp.Keyword("REF"), o.Ref,
		sexp.Keyword("TEXT"), o.Text, sexp.Keyword("ASK"), o.Ask)
}

func askedRecord(a asked) sexp.Plist {
	return rec(recAsked,
		sexp.Keyword("TOKEN"), a.Token, sexp.Keyword("CHAT"), a.Chat, sexp.Keyword("FOR"), a.For, sexp.Keyword("POST"), a.Post, sexp.Keyword("REF"), a.Ref,
		sexp.Keyword("TURN"), a.Turn, sexp.Keyword("SHOWN"), a.Shown, sexp.Keyword("AT"), stamp(a.At), sexp.Keyword("OVER"), a.Over)
}

func peerRecord(p Peer) sexp.Plist {
	return rec(recPeer,
		sexp.Keyword("ID"), p.ID, sexp.Keyword("NAME"), p.Name, sexp.Keyword("ROLE"), p.Role.String(), sexp.Keyword("CHAT"), p.Chat,
		sexp.Keyword("SESSION"), p.Session, sexp.Keyword("AT"), stamp(p.Since))
}

func strangerRecord(x Stranger) sexp.Plist {
	return rec(recStranger,
		sexp.Keyword("ID"), x.ID, sexp.Keyword("NAME"), x.Name, sexp.Keyword("FIRST"), stamp(x.First), sexp.Keyword("AT"), stamp(x.Last),
		sexp.Keyword("COUNT"), x.Count, sexp.Keyword("WHY"), x.Why)
}

func codeRecord(c code) sexp.Plist {
	return rec(recCode,
		sexp.Keyword("DIGEST"), c.Digest, sexp.Keyword("ROLE"), c.Role.String(), sexp.Keyword("EXPIRES"), stamp(c.Expires), sexp.Keyword("TRIES"), c.Tries)
}
