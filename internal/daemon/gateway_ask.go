package daemon

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"passepartout/internal/channel"
	"passepartout/internal/gate"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// gateway is the gateway of a channel that is linked, or was.
func (d *Daemon) gateway(name string) (*channel.Gateway, error) {
	if l := d.lines.find(name); l != nil {
		return l.gateway, nil
	}
	if slices.Contains(d.remote(), name) {
		return nil, fmt.Errorf("%s is not linked: passepartout gateway link %s", name, name)
	}
	return nil, d.noChannel(name)
}

// answerGateways describes every channel, linked or not.
func answerGateways(_ context.Context, d *Daemon, _ asking) (sexp.Plist, error) {
	var out []sexp.Value
	for _, name := range d.remote() {
		out = append(out, gatewayPlist(d.lines.status(name), d.policy.allows(name+".message")).List())
	}
	return sexp.P(sexp.Keyword("GATEWAYS"), sexp.NewList(out...)), nil
}

func gatewayPlist(st channel.Status, answers bool) sexp.Plist {
	when := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(time.RFC3339)
	}
	peers, strangers := make([]sexp.Value, len(st.Peers)), make([]sexp.Value, len(st.Strangers))
	for i, p := range st.Peers {
		peers[i] = sexp.P(
			sexp.Keyword("WHO"), st.Name+":"+p.ID, sexp.Keyword("NAME"), p.Name, sexp.Keyword("ROLE"), p.Role.String(),
			sexp.Keyword("SESSION"), p.Session, sexp.Keyword("SINCE"), when(p.Since)).List()
	}
	for i, x := range st.Strangers {
		strangers[i] = sexp.P(
			sexp.Keyword("WHO"), st.Name+":"+x.ID, sexp.Keyword("NAME"), x.Name, sexp.Keyword("COUNT"), x.Count,
			sexp.Keyword("FIRST"), when(x.First), sexp.Keyword("LAST"), when(x.Last), sexp.Keyword("WHY"), x.Why).List()
	}
	return sexp.P(
		sexp.Keyword("NAME"), st.Name, sexp.Keyword("STATE"), st.State, sexp.Keyword("PROBLEM"), st.Problem, sexp.Keyword("SINCE"), when(st.Since),
		sexp.Keyword("FAILURE"), st.Failure, sexp.Keyword("FAILED"), when(st.Failed),
		sexp.Keyword("HEARD"), when(st.Heard), sexp.Keyword("WAITING"), st.Waiting, sexp.Keyword("UNSENT"), st.Unsent,
		sexp.Keyword("MAY-ANSWER"), answers, sexp.Keyword("PAIRING"), when(st.Pairing),
		sexp.Keyword("PEERS"), sexp.NewList(peers...), sexp.Keyword("STRANGERS"), sexp.NewList(strangers...))
}

// answerGatewayLink takes up what was linked or unlinked since the daemon began.
func answerGatewayLink(_ context.Context, d *Daemon, a asking) (sexp.Plist, error) {
	name := a.message.Payload.Text("CHANNEL")
	linked, err := d.relink(name, a.conn.origin)
	return sexp.P(sexp.Keyword("CHANNEL"), name, sexp.Keyword("LINKED"), linked), err
}

// answerGatewayPair makes a code that pairs whoever sends it first.
func answerGatewayPair(_ context.Context, d *Daemon, a asking) (sexp.Plist, error) {
	name := a.message.Payload.Text("CHANNEL")
	g, err := d.gateway(name)
	if err != nil {
		return sexp.Plist{}, err
	}
	if d.lines.status(name).State == channel.Unlinked {
		return sexp.Plist{}, fmt.Errorf("%s is not linked: passepartout gateway link %s", name, name)
	}
	role := proto.ParseRole(a.message.Payload.Text("ROLE"))
	code, until, err := g.Pair(role)
	if err != nil {
		return sexp.Plist{}, err
	}
	if err := d.noteGateway("PAIRING", name, a.conn.origin, role.String()); err != nil {
		return sexp.Plist{}, err
	}
	return sexp.P(sexp.Keyword("CODE"), code, sexp.Keyword("UNTIL"), until.UTC().Format(time.RFC3339)), nil
}

// answerGatewayUnpair forgets somebody who was paired.
func answerGatewayUnpair(_ context.Context, d *Daemon, a asking) (sexp.Plist, error) {
	who := a.message.Payload.Text("WHO")
	name, id, _ := strings.Cut(who, ":")
	g, err := d.gateway(name)
	if err != nil {
		return sexp.Plist{}, err
	}
	known, err := g.Unpair(id)
	if err == nil && !known {
		err = fmt.Errorf("%s is not paired", who)
	}
	if err == nil {
		err = d.noteGateway("UNPAIRED", name, a.conn.origin, who)
	}
	return sexp.P(sexp.Keyword("TEXT"), who+" is forgotten."), err
}

// answerGatewayTest asks the service whether it knows us, and says something to
// the owners who are paired.
func answerGatewayTest(ctx context.Context, d *Daemon, a asking) (sexp.Plist, error) {
	name := a.message.Payload.Text("CHANNEL")
	g, err := d.gateway(name)
	if err != nil {
		return sexp.Plist{}, err
	}
	as, err := g.Probe(ctx)
	if err != nil {
		return sexp.Plist{}, err
	}
	told, err := g.Greet(fmt.Sprintf("This is a test of %s, asked for on your machine.", d.s.Assistant))
	return sexp.P(sexp.Keyword("TEXT"), fmt.Sprintf("%s knows us as %s. A message goes to %d paired owners.", name, as, told)), err
}

// noteGateway records, on disk, that somebody changed who is trusted.
func (d *Daemon) noteGateway(event sexp.Keyword, name string, by proto.Origin, what string) error {
	_, err := d.journal.Append(sexp.P(
		sexp.Keyword("KIND"), sexp.Keyword("CHANNEL"), sexp.Keyword("CHANNEL"), name, sexp.Keyword("EVENT"), event,
		sexp.Keyword("AT"), d.now().UTC().Format(time.RFC3339Nano), sexp.Keyword("BY"), by.Plist(), sexp.Keyword("WHAT"), what))
	return err
}

// allows reports whether the permissions let a verb pass without a question.
func (p *policySource) allows(name string) bool {
	p.chain() // as the files say now
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range []string{name, "*"} {
		if d, ok := p.tools[n]; ok {
			return d == gate.Allow
		}
	}
	return false
}
