// Package proto is the vocabulary all parts of Passepartout share: what a
// stimulus is, what a proposal is, and how both look on the wire.
//
// The central types:
//
//   - [Signal] is one stimulus: what was perceived, from whom, in which session.
//     Its [Origin] and [Taint] are set by whoever received the bytes and are
//     never decoded from them.
//   - [Action] is one proposal: a verb of a target with checked arguments. It is
//     opaque and has no field that could say "approved".
//   - [Vocabulary] is the closed set of [Verb]s an action can name. Its Decode is
//     the only way from data to an Action; it refuses what it does not know.
//   - [Message] is one frame's content; [Reader] and [AppendFrame] frame it as six hex
//     digits and a printed property list; [Client] speaks it over any stream.
//
// The rule a newcomer will break: control fields (who asked, how deep, whether a
// person agreed, how long it may run) do not travel in an action's arguments.
// In a model's text such keys are unknown keys, and unknown keys are refused.
//
// The package is pure: no clock, no randomness, no goroutine, no sockets.
package proto

import (
	"strings"
	"time"

	"passepartout/internal/sexp"
)

// An ID names a signal, an action or a turn. IDs are made by the daemon.
type ID string

// Kind is the category of a message or signal.
type Kind uint8

// The kinds. The zero Kind is invalid.
const (
	KindInvalid Kind = iota
	Event
	Request
	Response
	Status
	Log
	StreamChunk
)

var kindNames = map[Kind]sexp.Keyword{
	Event: "EVENT", Request: "REQUEST", Response: "RESPONSE",
	Status: "STATUS", Log: "LOG", StreamChunk: "STREAM-CHUNK",
}

// Keyword is the kind as it is written on the wire.
func (k Kind) Keyword() sexp.Keyword {
	if w, ok := kindNames[k]; ok {
		return w
	}
	return "INVALID"
}

func (k Kind) String() string { return strings.ToLower(string(k.Keyword())) }

// ParseKind returns the kind of that name; case does not matter.
func ParseKind(name string) (Kind, bool) {
	for k, w := range kindNames {
		if strings.EqualFold(name, string(w)) {
			return k, true
		}
	}
	return KindInvalid, false
}

// A Role says what an origin is trusted with. The zero Role is trusted with
// nothing.
type Role uint8

// The roles, from least to most trusted.
const (
	RoleNone  Role = iota
	RolePeer       // a program linked by the user: an MCP server, another agent
	RoleJob        // cron, hooks and skills acting on their own
	RoleGuest      // a paired sender who is not the owner
	RoleOwner      // the authenticated user of this machine
)

func (r Role) String() string {
	switch r {
	case RolePeer:
		return "peer"
	case RoleJob:
		return "job"
	case RoleGuest:
		return "guest"
	case RoleOwner:
		return "owner"
	case RoleNone:
	}
	return "none"
}

// ParseRole is the inverse of [Role.String]; an unknown name is RoleNone.
func ParseRole(s string) Role {
	for r := RolePeer; r <= RoleOwner; r++ {
		if r.String() == s {
			return r
		}
	}
	return RoleNone
}

// An Origin is who caused something and over which channel. It is set by the
// code that received the bytes; the zero Origin is trusted with nothing.
type Origin struct {
	Role    Role
	Channel string // "cli", "tui", "emacs", "telegram", "cron", …
	Who     string // the peer as authenticated: "uid:1000", "telegram:4711"
}

// Plist is the origin as it is recorded.
func (o Origin) Plist() sexp.Plist {
	return sexp.P(sexp.Keyword("ROLE"), o.Role.String(), sexp.Keyword("CHANNEL"), o.Channel, sexp.Keyword("WHO"), o.Who)
}

// OriginOf is the inverse of [Origin.Plist], for records this program wrote.
func OriginOf(p sexp.Plist) Origin {
	return Origin{Role: ParseRole(p.Text("ROLE")), Channel: p.Text("CHANNEL"), Who: p.Text("WHO")}
}

// A Taint labels what a turn has read. Labels only ever join.
type Taint struct {
	Untrusted bool // text from outside took part: web, tool output, other people
	Private   bool // text the user marked private took part
}

// Join returns the labels of both.
func (t Taint) Join(u Taint) Taint {
	return Taint{Untrusted: t.Untrusted || u.Untrusted, Private: t.Private || u.Private}
}

func (t Taint) String() string {
	switch {
	case t.Untrusted && t.Private:
		return "untrusted private"
	case t.Untrusted:
		return "untrusted"
	case t.Private:
		return "private"
	}
	return "trusted public"
}

// MaxDepth is the deepest chain of signals caused by signals; a deeper one ends
// its turn.
const MaxDepth = 10

// A Signal is one stimulus: a value without sockets or callbacks.
type Signal struct {
	ID, Parent ID
	Kind       Kind
	Origin     Origin
	Session    string
	Depth      int
	Taint      Taint // joined from everything the turn has read
	At         time.Time
	Body       sexp.Plist // :SENSOR :TEXT …
}

// Sensor is what perceived the signal, in lower case: "user-input", "tool-output".
func (s Signal) Sensor() string { return strings.ToLower(string(s.Body.Word("SENSOR"))) }

// Text is the signal's text, "" when it has none.
func (s Signal) Text() string { return s.Body.Text("TEXT") }

// An Effect is what carrying out an action can do. The zero Effect is unknown,
// and unknown is denied.
type Effect uint8

// The effects, from harmless to far-reaching.
const (
	EffectUnknown Effect = iota
	Speak                // a reply to the person who asked
	ReadLocal            // reads files or memory
	WriteMemory          // changes the memex
	WriteLocal           // changes other files
	Execute              // runs a program
	Network              // reaches another machine
	SendMessage          // speaks to somebody else
	Rewrite              // changes policy, skills, schedule: what the agent may do
)

var effectNames = [...]string{"unknown", "speak", "read", "write-memory", "write", "execute", "network", "message", "rewrite"}

func (e Effect) String() string {
	if int(e) < len(effectNames) {
		return effectNames[e]
	}
	return effectNames[EffectUnknown]
}
