package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"passepartout/internal/channel"
	"passepartout/internal/config"
	"passepartout/internal/daemon"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
	"passepartout/internal/vault"
)

// channelNames are the services that can be linked.
func channelNames() []string {
	var names []string
	for _, s := range channel.Services() {
		names = append(names, s.Name)
	}
	return names
}

// channelNamed is a service by its name.
func channelNamed(name string) (channel.Service, error) {
	for _, s := range channel.Services() {
		if s.Name == name {
			return s, nil
		}
	}
	return channel.Service{}, usageError("there is no channel %q: want %s, or a sender such as telegram:4711", name, strings.Join(channelNames(), " or "))
}

// channelSettings are what the daemon needs to know of the channels, now and when
// one is linked while it runs.
func (a *app) channelSettings(cfg *config.Config) daemon.Channels {
	log := a.logger(cfg)
	return daemon.Channels{
		Get: cfg.Channel, Reread: a.rereadChannels,
		Keep: a.keepBeside(cfg, func(what string, err error) { log.Warn(what, "error", err) }),
	}
}

// rereadChannels reads the settings and the vault as they are now. Nobody can be
// asked for a passphrase then: the daemon has no terminal of its own.
func (a *app) rereadChannels() (func(string) string, map[string]string, error) {
	cfg, err := config.Load(a.environ, config.ReadFile)
	if err != nil {
		return nil, nil, err
	}
	v, err := vault.Open(a.unaskedVault(&cfg))
	if errors.Is(err, vault.ErrNone) {
		return cfg.Channel, channelSecrets(&cfg), nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the vault: %w", err)
	}
	if cfg, err = cfg.WithVault(v.Values()); err != nil {
		return nil, nil, err
	}
	return cfg.Channel, channelSecrets(&cfg), nil
}

// channelSecrets are the credentials of channels, which must never leave.
func channelSecrets(cfg *config.Config) map[string]string {
	secrets := map[string]string{}
	for _, s := range channel.Services() {
		for _, k := range s.Keys {
			if value := cfg.Channel(k.Name); k.Secret && value != "" {
				secrets[k.Name] = value
			}
		}
	}
	return secrets
}

func (a *app) gatewayCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "gateway", Short: "Talk to the agent over Telegram and Signal",
		Long: `Link the agent to Telegram or Signal, and decide who may write to it. Nobody is
heard who was not paired: a code shown here, sent there, pairs its sender. What
strangers write is refused, recorded, and listed by gateway list.`,
		Example: `  passepartout gateway link telegram     # asks for the bot's token
  passepartout gateway pair telegram     # shows a code; send it to the bot
  passepartout gateway list
  passepartout gateway unlink telegram:4711`,
	}
	var guest bool
	pair := &cobra.Command{
		Use: "pair CHANNEL", Short: "Show a code that pairs whoever sends it first",
		Long: `Show a code that pairs whoever sends it first to the agent, alone and within ten
minutes. They are you from then on: what they write counts as written here. With
--guest they may talk, and everything beyond that is put to you.`,
		Example: "  passepartout gateway pair telegram\n  passepartout gateway pair signal --guest",
		Args:    cobra.ExactArgs(1), ValidArgs: channelNames(),
		RunE: func(cmd *cobra.Command, args []string) error { return a.gatewayPair(cmd.Context(), args[0], guest) },
	}
	pair.Flags().BoolVar(&guest, "guest", false, "pair somebody who is not you")
	link := &cobra.Command{
		Use: "link CHANNEL [NUMBER [ADDRESS]]", Short: "Give the agent an account on a service",
		Long: `Give the agent an account on a service. For Telegram the bot's token is typed unseen
or piped in, tried, and kept in the vault. For Signal the number of the agent's own
account and the address of signal-cli are tried and written to the settings file.
A daemon that runs takes it up at once.`,
		Example: "  passepartout gateway link telegram\n  pass show bot | passepartout gateway link telegram\n  passepartout gateway link signal +15550001 127.0.0.1:7583",
		Args:    cobra.RangeArgs(1, 3), ValidArgs: channelNames(),
		RunE: func(cmd *cobra.Command, args []string) error { return a.gatewayLink(cmd.Context(), args[0], args[1:]) },
	}
	c.AddCommand(pair, link, a.gatewayLogCommand(),
		&cobra.Command{
			Use: "list", Short: "List channels, who is paired, and which strangers wrote", Args: cobra.NoArgs,
			Example: "  passepartout gateway list --json",
			RunE:    func(cmd *cobra.Command, _ []string) error { return a.gatewayList(cmd.Context()) },
		},
		&cobra.Command{
			Use: "unlink CHANNEL | CHANNEL:SENDER", Short: "Take an account away, or forget one sender",
			Long:    "Take the agent's account on a service away, at once, or forget one paired sender, who\nis a stranger from then on.",
			Example: "  passepartout gateway unlink telegram:4711\n  passepartout gateway unlink signal",
			Args:    cobra.ExactArgs(1), ValidArgs: channelNames(),
			RunE: func(cmd *cobra.Command, args []string) error { return a.gatewayUnlink(cmd.Context(), args[0]) },
		},
		&cobra.Command{
			Use: "test CHANNEL", Short: "Ask a service whether it knows us, and greet the paired owners",
			Example: "  passepartout gateway test telegram",
			Args:    cobra.ExactArgs(1), ValidArgs: channelNames(),
			RunE: func(cmd *cobra.Command, args []string) error {
				return a.gatewaySay(cmd.Context(), sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("GATEWAY-TEST"), sexp.Keyword("CHANNEL"), args[0]))
			},
		})
	return c
}

// askGateway asks the daemon something about the channels.
func (a *app) askGateway(ctx context.Context, payload sexp.Plist) (sexp.Plist, error) {
	c, err := a.connect(ctx, "cli")
	if err != nil {
		return sexp.Plist{}, err
	}
	defer c.close()
	r, err := c.exchange(proto.Message{Kind: proto.Request, Payload: payload}, nil)
	if err != nil {
		return sexp.Plist{}, err
	}
	if code := codeOf(r); code != exitOK {
		return sexp.Plist{}, &exitError{code, errors.New(printable(r.Payload.Text("TEXT")))}
	}
	return r.Payload, nil
}

// gatewaySay asks, and prints the daemon's one sentence.
func (a *app) gatewaySay(ctx context.Context, payload sexp.Plist) error {
	p, err := a.askGateway(ctx, payload)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]any{"ok": true, "text": p.Text("TEXT")})
	}
	_, err = fmt.Fprintln(a.out, printable(p.Text("TEXT")))
	return err
}

func (a *app) gatewayPair(ctx context.Context, name string, guest bool) error {
	role := proto.RoleOwner
	if guest {
		role = proto.RoleGuest
	}
	p, err := a.askGateway(ctx, sexp.P(
		sexp.Keyword("ACTION"), sexp.Keyword("GATEWAY-PAIR"), sexp.Keyword("CHANNEL"), name, sexp.Keyword("ROLE"), role.String()))
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]any{"channel": name, "code": p.Text("CODE"), "role": role.String(), "until": p.Text("UNTIL")})
	}
	until := p.Text("UNTIL")
	if t, err := time.Parse(time.RFC3339, until); err == nil {
		until = t.Local().Format("15:04")
	}
	fmt.Fprintf(a.errw, "Send this code to the agent over %s, alone, until %s. Whoever sends it first is paired as %s.\n", name, until, role)
	_, err = fmt.Fprintln(a.out, p.Text("CODE"))
	return err
}

func (a *app) gatewayList(ctx context.Context) error {
	p, err := a.askGateway(ctx, sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("GATEWAYS")))
	if err != nil {
		return err
	}
	gateways, err := plistsOf(p, "GATEWAYS")
	if err != nil {
		return err
	}
	var rows []map[string]any
	for _, g := range gateways {
		peers, err := plistsOf(g, "PEERS")
		if err != nil {
			return err
		}
		strangers, err := plistsOf(g, "STRANGERS")
		if err != nil {
			return err
		}
		if !a.json {
			a.printGateway(g, peers, strangers)
			continue
		}
		rows = append(rows, map[string]any{
			"channel": g.Text("NAME"), "state": g.Text("STATE"), "problem": g.Text("PROBLEM"), "since": g.Text("SINCE"), "heard": g.Text("HEARD"),
			"last_problem": g.Text("FAILURE"), "last_problem_at": g.Text("FAILED"),
			"waiting": countOf(g, "WAITING"), "unsent": countOf(g, "UNSENT"), "pairing_until": g.Text("PAIRING"),
			"paired": textRows(peers, "who", "name", "role", "session", "since"), "strangers": textRows(strangers, "who", "name", "why", "first", "last"),
		})
	}
	if a.json {
		return a.printJSON(rows)
	}
	return nil
}

// textRows are property lists as JSON objects.
func textRows(lists []sexp.Plist, keys ...string) []map[string]string {
	out := make([]map[string]string, len(lists))
	for i, p := range lists {
		out[i] = map[string]string{}
		for _, k := range keys {
			out[i][k] = p.Text(sexp.Keyword(strings.ToUpper(k)))
		}
	}
	return out
}

func countOf(p sexp.Plist, key sexp.Keyword) int64 {
	v, _ := p.Get(key)
	n, _ := v.(sexp.Int)
	i, _ := n.Int64()
	return i
}

func (a *app) printGateway(g sexp.Plist, peers, strangers []sexp.Plist) {
	fmt.Fprintf(a.out, "%s: %s", g.Text("NAME"), g.Text("STATE"))
	if since := g.Text("SINCE"); since != "" && g.Text("STATE") != channel.Unlinked {
		fmt.Fprintf(a.out, " since %s", since)
	}
	if heard := g.Text("HEARD"); heard != "" {
		fmt.Fprintf(a.out, ", last heard of %s", heard)
	}
	fmt.Fprintln(a.out)
	if problem := g.Text("PROBLEM"); problem != "" {
		fmt.Fprintf(a.out, "  problem: %s\n", printable(problem))
	} else if failure := g.Text("FAILURE"); failure != "" {
		fmt.Fprintf(a.out, "  works again; last problem at %s: %s\n", g.Text("FAILED"), printable(failure))
	}
	if v, ok := g.Get("MAY-ANSWER"); g.Text("STATE") != channel.Unlinked && ok && sexp.IsNil(v) {
		fmt.Fprintf(a.out, "  problem: system/permissions.org does not allow %s.message, so every reply there needs your approval\n", g.Text("NAME"))
	}
	if w, u := countOf(g, "WAITING"), countOf(g, "UNSENT"); w+u > 0 {
		fmt.Fprintf(a.out, "  %d messages are being worked on, %d are still to be sent\n", w, u)
	}
	for _, p := range peers {
		fmt.Fprintf(a.out, "  %-8s %s  %s\n", p.Text("ROLE"), p.Text("WHO"), printable(p.Text("NAME")))
	}
	for _, x := range strangers {
		fmt.Fprintf(a.out, "  stranger %s  %s  %d times, last %s: %s\n", x.Text("WHO"), printable(x.Text("NAME")), countOf(x, "COUNT"), x.Text("LAST"), printable(x.Text("WHY")))
	}
}

// gatewayLink asks for what a service needs, tries it, keeps it, and lets a daemon
// that runs take it up.
func (a *app) gatewayLink(ctx context.Context, name string, args []string) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	service, err := channelNamed(name)
	if err != nil {
		return err
	}
	given, err := a.linkValues(service, args)
	if err != nil {
		return err
	}
	get := func(key string) string { return cmp.Or(given[key], cfg.Channel(key)) }
	if !service.Linked(get) {
		return usageError("say the %s: passepartout gateway link %s VALUE", service.Keys[0].Asks, name)
	}
	c, err := service.Open(get)
	if err != nil {
		return err
	}
	as := name
	beside := false
	if service.Beside != nil {
		argv, err := service.Beside(get)
		if err != nil {
			return err
		}
		beside = argv != nil // what the daemon runs cannot be tried before it does
	}
	if p, ok := c.(channel.Prober); ok && !beside {
		if as, err = p.Probe(ctx); err != nil {
			if service.Hint != "" {
				err = fmt.Errorf("%w\n%s", err, service.Hint)
			}
			return err
		}
	}
	if err := a.keepLink(service, given); err != nil {
		return err
	}
	took, err := a.relink(ctx, service)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]any{"channel": name, "as": as, "taken_up": took})
	}
	then := "The daemon takes it up when it starts."
	if took {
		then = "The daemon listens there now."
	}
	_, err = fmt.Fprintf(a.out, "Linked %s as %s. %s Pair yourself with: passepartout gateway pair %s\n", name, printable(as), then, name)
	return err
}

// linkValues are the values linking was given: secrets are typed unseen or piped
// in, the others are arguments.
func (a *app) linkValues(service channel.Service, args []string) (map[string]string, error) {
	given := map[string]string{}
	for _, k := range service.Keys {
		switch {
		case k.Secret && len(args) > 0:
			return nil, usageError("the %s is not given as an argument, where others could see it: it is asked for, or piped in", strings.ToLower(k.Asks))
		case k.Secret:
			value, err := a.secretInput(k.Asks)
			if err != nil {
				return nil, err
			}
			given[k.Name] = value
		case len(args) > 0:
			given[k.Name], args = args[0], args[1:]
		}
	}
	if len(args) > 0 {
		return nil, usageError("%s takes %d values, found %d more", service.Name, len(service.Keys), len(args))
	}
	return given, nil
}

// keepLink writes what a service was linked with: secrets to the vault, the rest to
// the settings file.
func (a *app) keepLink(service channel.Service, given map[string]string) error {
	var changes []config.Change
	for _, k := range service.Keys {
		value, ok := given[k.Name]
		switch {
		case !ok:
		case k.Secret:
			v, err := a.openOrCreateVault("")
			if err != nil {
				return err
			}
			if err := v.Set(k.Name, value); err != nil {
				return err
			}
		default:
			changes = append(changes, config.Change{Key: k.Name, Value: value})
		}
	}
	if len(changes) == 0 {
		return nil
	}
	return a.configEdit(changes...)
}

// relink lets a daemon that runs take up what is linked now, and reports whether it
// is. Where none runs there is nothing to do.
func (a *app) relink(ctx context.Context, service channel.Service) (linked bool, err error) {
	starts := a.noStart
	a.noStart = true
	p, err := a.askGateway(ctx, sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("GATEWAY-LINK"), sexp.Keyword("CHANNEL"), service.Name))
	a.noStart = starts
	if notRunning(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("it is kept, and the daemon that runs did not take it up: %w", err)
	}
	v, _ := p.Get("LINKED")
	return v != nil && !sexp.IsNil(v), nil
}

func (a *app) gatewayUnlink(ctx context.Context, what string) error {
	if strings.Contains(what, ":") {
		return a.gatewaySay(ctx, sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("GATEWAY-UNPAIR"), sexp.Keyword("WHO"), what))
	}
	service, err := channelNamed(what)
	if err != nil {
		return err
	}
	if err := a.dropLink(service.Keys[0]); err != nil {
		return err
	}
	still, err := a.relink(ctx, service)
	if err != nil {
		return err
	}
	if still {
		return fmt.Errorf("%s is still linked: %s is set in the settings file or in the environment of the daemon; take it out there", what, service.Keys[0].Name)
	}
	if a.json {
		return a.printJSON(map[string]any{"channel": what, "linked": false})
	}
	_, err = fmt.Fprintf(a.out, "Unlinked %s: nobody is heard there any more. Who was paired stays so for another time; forget them with gateway unlink %s:SENDER.\n", what, what)
	return err
}

// dropLink forgets the value without which a service is not linked.
func (a *app) dropLink(k channel.Key) error {
	if !k.Secret {
		return a.configEdit(config.Change{Key: k.Name})
	}
	v, err := a.openVault()
	if errors.Is(err, vault.ErrNone) {
		return fmt.Errorf("no vault holds it; one in the settings file or the environment is taken out there: %s", k.Name)
	}
	if err != nil {
		return err
	}
	return v.Delete(k.Name)
}
