package daemon_test

import (
	"errors"
	"strings"
	"testing"

	"passepartout/internal/daemon"
)

// TestTheVaultIsReadAgainForTheOwnersOwnSocketOnly: what it holds is recognised from
// then on, and what it held still is.
func TestTheVaultIsReadAgainForTheOwnersOwnSocketOnly(t *testing.T) {
	s := overTCP(t, settings(t))
	kept, failure := map[string]string{"DOOR": "lightning-marmalade-41"}, error(nil)
	s.Secrets, s.Vault = map[string]string{"DOOR": "rainy-cucumber-40"}, []string{"DOOR"}
	s.ReadVault = func() (daemon.Kept, error) {
		return daemon.Kept{Values: kept, Later: []string{"something"}}, failure
	}
	h := open(t, s)
	p := h.connect()
	refused := func(value string) bool {
		r := p.request(say("main", "note that the code is "+value))
		return strings.Contains(r.Payload.Text("TEXT"), "vault") && !strings.Contains(r.Payload.String(), value)
	}
	if !refused("rainy-cucumber-40") || refused("lightning-marmalade-41") {
		t.Fatal("before anything is changed")
	}
	if r := h.far(token).request(data(t, `(:TYPE :REQUEST :PAYLOAD (:ACTION :VAULT-RELOAD))`)); r.Payload.Word("STATUS") != "FAILED" || !strings.Contains(r.Payload.Text("TEXT"), "own socket") {
		t.Errorf("over TCP: %s", r.Payload)
	}
	failure = errors.New("the vault is locked")
	if r := p.request(data(t, `(:TYPE :REQUEST :PAYLOAD (:ACTION :VAULT-RELOAD))`)); r.Payload.Word("STATUS") != "FAILED" || !strings.Contains(r.Payload.Text("TEXT"), "what was open stays open") {
		t.Errorf("a vault that is locked: %s", r.Payload)
	}
	if !refused("rainy-cucumber-40") {
		t.Error("after a failure the old value is not recognised")
	}
	failure = nil
	if r := p.view("main", ":VAULT-RELOAD"); r.Number("ENTRIES") != 1 || !strings.Contains(r.String(), `"something"`) || strings.Contains(r.String(), "marmalade") {
		t.Errorf("%s", r)
	}
	if !refused("rainy-cucumber-40") || !refused("lightning-marmalade-41") {
		t.Error("a value the vault holds, or held, is not recognised")
	}
}
