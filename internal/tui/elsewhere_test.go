package tui_test

import (
	"testing"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

func TestWhatOthersSayInTheConversationIsShown(t *testing.T) {
	s := newScreen(t, 80, 24)
	said := status("t7", "PERCEIVED")
	said.Payload = said.Payload.With("SAID", sexp.String("buy \x1b[31mbread")).With("OVER", sexp.String("telegram"))
	s.Feed(said, reply("t7", "DONE", "It is on the list."))
	s.wants("you, over telegram", "buy", "bread", "It is on the list.")
	s.lacks("\x1b[31m")
	said.Meta = said.Meta.With("SESSION-ID", sexp.String("else"))
	said.Payload = said.Payload.With("SAID", sexp.String("in another room"))
	s.Feed(said)
	s.lacks("in another room")
}

func TestTheOwnerIsToldOfRefusalsAndReminders(t *testing.T) {
	s := newScreen(t, 80, 24)
	log := func(action, text string) proto.Message {
		return proto.Message{Kind: proto.Log, Payload: sexp.P(kw("ACTION"), kw(action), kw("TEXT"), text)}
	}
	s.Feed(log("NOTICE", "A message of telegram:666 (Mal\x1b[2Jlory) was refused"), log("MESSAGE", "Call Ana."))
	s.wants("telegram:666", "was refused", "Call Ana.")
	s.lacks("\x1b[2J")
}
