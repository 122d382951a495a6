package gate

import (
	"slices"
	"strings"

	"passepartout/internal/sexp"
)

// A Code is one thing a gate can say.
type Code struct {
	Name     string
	Gate     string
	Decision Decision // the strictest it comes with
	Lift     bool     // whether an allow rule may answer it
	Doc      string   // when it is said
}

// Codes lists what the chain and the standard gates say, in the order of the
// gates. Codes that begin with "shell." come from package shell.
func Codes() []Code { return slices.Clone(codes) }

var codes = []Code{
	{"chain.empty", "chain", Deny, false, "no gate is installed"},
	{"chain.unknown-effect", "chain", Deny, false, "nobody declared what the action does"},
	{"chain.swapped", "chain", Deny, false, "a gate replaced the action by one of another kind or cause"},
	{"chain.restless", "chain", Deny, false, "gates kept replacing the action"},
	{"gate.panic", "any", Deny, false, "a gate failed"},
	{"gate.invalid", "any", Deny, false, "a gate gave an answer that is no decision"},
	{"gate.silent", "any", Deny, false, "a gate gave no code"},
	{"person.denied", "person", Deny, false, "the person asked said no"},
	{"origin.mismatch", "origin", Deny, false, "action and signal name different origins"},
	{"origin.denied", "origin", Deny, false, "this role may not cause this effect"},
	{"origin.ask", "origin", Ask, true, "this role may cause this effect if the owner agrees"},
	{"permissions.deny", "permissions", Deny, false, "the table of tools forbids it"},
	{"permissions.ask", "permissions", Ask, true, "the table of tools says to ask, or says nothing"},
	{"vault.literal", "vault", Deny, false, "a value of the vault stands in the action"},
	{"vault.leaves", "vault", Deny, false, "a reference to the vault stands in text that leaves or is stored"},
	{"vault.unknown", "vault", Deny, false, "the vault has no such entry"},
	{"vault.reference", "vault", Deny, false, "the action names a credential, which only settings can"},
	{"guide.outside", "guide", Deny, false, "the guide that is followed names other tools"},
	{"rule.deny", "rules", Deny, false, "a rule of the user's forbids it"},
	{"rule.ask", "rules", Ask, false, "a rule of the user's says to ask"},
	{"policy.explanation", "policy", Deny, false, "the explanation is missing or too short"},
	{"lisp.unreadable", "dispatcher/lisp", Deny, false, "Lisp to be stored or evaluated does not read"},
	{"secret-path.read", "dispatcher/secret-path", Deny, false, "the file holds credentials or private histories"},
	{"secret-path.write", "dispatcher/secret-path", Deny, false, "the file is where credentials are kept"},
	{"self-build.own", "dispatcher/self-build", Deny, false, "the path belongs to the journal, the policy or the vault"},
	{"self-build.agent", "dispatcher/self-build", Deny, false, "the file tells another agent or an editor what to run"},
	{"self-build.steering", "dispatcher/self-build", Ask, false, "the file is a skill, the schedule or the identity"},
	{"exposure.credential", "dispatcher/exposure", Deny, false, "there is a credential in the action"},
	{"exposure.hidden-text", "dispatcher/exposure", Deny, false, "the text holds what its reader does not see"},
	{"vault-value.found", "dispatcher/vault", Deny, false, "a value of the vault stands in the action, in any encoding"},
	{"privacy.tag", "dispatcher/privacy-tags", Deny, false, "a heading or file tagged private would be shown to others"},
	{"privacy.text", "dispatcher/privacy-text", Deny, false, "a text that leaves still carries a privacy tag"},
	{"shell.silent", "dispatcher/shell", Deny, false, "the analysis refused a command without saying why"},
	{"network.unclear", "dispatcher/network", Deny, false, "the address does not name one host to everybody"},
	{"network.scheme", "dispatcher/network", Deny, false, "the address is not fetched by http or https"},
	{"network.metadata", "dispatcher/network", Deny, false, "the host hands out a machine's credentials"},
	{"network.private", "dispatcher/network", Deny, false, "the host is this machine or in its own network"},
	{"network.user", "dispatcher/network", Ask, false, "the address names a user before the host"},
	{"network.unlisted", "dispatcher/network", Ask, true, "the host is not on the list"},
	{"network.embedded", "dispatcher/network", Deny, false, "the text makes its reader's program fetch from a host that is not on the list"},
	{"network.solicits", "dispatcher/network", Ask, false, "the text wants credentials, or something run, and links elsewhere"},
	{"network.link", "dispatcher/network", Ask, false, "a link carries data away, or is not what it seems"},
	{"impact.rewrite", "dispatcher/impact", Ask, false, "the action changes what the agent is or may do"},
	{"impact.recipient", "dispatcher/impact", Ask, true, "somebody new would be written to"},
	{"impact.message", "dispatcher/impact", Ask, true, "the action speaks to somebody and does not say to whom"},
	{"impact.execute", "dispatcher/impact", Ask, true, "what would run cannot be judged beforehand"},
	{"impact.network", "dispatcher/impact", Ask, true, "where it connects to cannot be judged beforehand"},
	{"impact.write", "dispatcher/impact", Ask, true, "what it writes cannot be judged beforehand"},
	{"repl-lint.untried", "dispatcher/repl-lint", Allow, false, "a warning: a note defines functions nobody tried"},
	{"flow.untrusted", "flow", Ask, false, "text from outside took part, and this was not asked for in these words"},
	{"flow.private", "flow", Deny, false, "private text took part, and somebody else would learn of it"},
	{"confine.unclear", "confine", Deny, false, "the path does not name one file to everybody"},
	{"confine.device", "confine", Deny, false, "the path is hardware, a control socket or a network path"},
	{"confine.startup", "confine", Deny, false, "the file is run or obeyed later without anybody asking"},
	{"confine.system", "confine", Deny, false, "the file belongs to the operating system"},
	{"confine.top", "confine", Deny, false, "the path is a whole home, root or top-level directory"},
	{"confine.linked", "confine", Deny, false, "the file is another name of a protected one"},
	{"confine.hard-link", "confine", Ask, true, "the file has other names, and they are not known"},
	{"confine.outside", "confine", Ask, true, "the path lies outside the allowed directories"},
	{"validator.empty", "validator", Deny, false, "the action names no verb"},
	{"validator.cause", "validator", Deny, false, "the action answers no signal, or another one"},
	{"validator.depth", "validator", Deny, false, "signals caused signals too often"},
	{"validator.verb", "validator", Deny, false, "the verb is not in the vocabulary"},
	{"validator.text", "validator", Deny, false, "an argument is no text: a record of it would be another one"},
	{"validator.args", "validator", Deny, false, "an argument is unknown or of the wrong type"},
}

// unliftableShell are questions about commands that no rule can answer: what
// would run, or on what, is not known when the rule is read.
var unliftableShell = map[string]bool{
	"shell.delete-unknown": true, "shell.dynamic": true, "shell.dynamic-assignment": true, "shell.dynamic-option": true, "shell.glob-command": true,
	"shell.host-unknown": true, "shell.indirect": true, "shell.invisible": true, "shell.no-sandbox": true, "shell.odd-space": true,
	"shell.privilege": true, "shell.run-download": true, "shell.run-unread": true, "shell.run-written": true, "shell.script-unknown": true,
	"shell.script-unread": true, "shell.write-unknown": true,
}

// Unforeseen reports a code that asks about what is not known beforehand. A person
// answers it each time.
func Unforeseen(code string) bool { return unliftableShell[code] }

// whyNotLiftable says why an allow rule may not name a code, "" when it may.
func whyNotLiftable(code string) string {
	if unliftableShell[code] {
		return "what would run is not known beforehand"
	}
	if strings.HasPrefix(code, "shell.") && code != "shell.silent" {
		return ""
	}
	names := make([]string, len(codes))
	for i, c := range codes {
		if c.Name != code {
			names[i] = c.Name
			continue
		}
		switch {
		case c.Lift:
			return ""
		case c.Decision == Deny:
			return "it is a refusal, and a refusal stands"
		}
		return "it must be answered by a person each time"
	}
	if near, ok := sexp.Nearest(code, names); ok {
		return "there is no such code; did you mean " + near + "?"
	}
	return "there is no such code"
}
