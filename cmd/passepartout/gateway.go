package main

import (
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

// remoteChannels are those that can be linked.
var remoteChannels = []string{"telegram", "signal"}

const telegramToken = "TELEGRAM_BOT_TOKEN"

// channelSettings are what the daemon needs to know of the channels.
func channelSettings(cfg *config.Config) daemon.Channels {
	return daemon.Channels{
		Telegram: channel.TelegramOptions{
			Token: cfg.TelegramToken.Reveal(), URL: cfg.TelegramURL, Webhook: cfg.TelegramWebhook, Listen: cfg.TelegramListen,
		},
		Signal: channel.SignalOptions{Account: cfg.SignalAccount, Address: cfg.SignalCLI, Name: cfg.Assistant},
	}
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
		Args:    cobra.ExactArgs(1), ValidArgs: remoteChannels,
		RunE: func(cmd *cobra.Command, args []string) error { return a.gatewayPair(cmd.Context(), args[0], guest) },
	}
	pair.Flags().BoolVar(&guest, "guest", false, "pair somebody who is not you")
	link := &cobra.Command{
		Use: "link CHANNEL [NUMBER [ADDRESS]]", Short: "Give the agent an account on a service",
		Long: `Give the agent an account on a service. For Telegram the bot's token is typed unseen
or piped in, tried, and kept in the vault. For Signal the number of the agent's own
account and the address of signal-cli are tried and written to the settings file.
The daemon takes it up when it starts anew.`,
		Example: "  passepartout gateway link telegram\n  pass show bot | passepartout gateway link telegram\n  passepartout gateway link signal +15550001 127.0.0.1:7583",
		Args:    cobra.RangeArgs(1, 3), ValidArgs: remoteChannels,
		RunE: func(cmd *cobra.Command, args []string) error { return a.gatewayLink(cmd.Context(), args[0], args[1:]) },
	}
	c.AddCommand(pair, link,
		&cobra.Command{
			Use: "list", Short: "List channels, who is paired, and which strangers wrote", Args: cobra.NoArgs,
			Example: "  passepartout gateway list --json",
			RunE:    func(cmd *cobra.Command, _ []string) error { return a.gatewayList(cmd.Context()) },
		},
		&cobra.Command{
			Use: "unlink CHANNEL | CHANNEL:SENDER", Short: "Take an account away, or forget one sender",
			Long:    "Take the agent's account on a service away, or forget one paired sender, who is a\nstranger from then on.",
			Example: "  passepartout gateway unlink telegram:4711\n  passepartout gateway unlink signal",
			Args:    cobra.ExactArgs(1), ValidArgs: remoteChannels,
			RunE: func(cmd *cobra.Command, args []string) error { return a.gatewayUnlink(cmd.Context(), args[0]) },
		},
		&cobra.Command{
			Use: "test CHANNEL", Short: "Ask a service whether it knows us, and greet the paired owners",
			Example: "  passepartout gateway test telegram",
			Args:    cobra.ExactArgs(1), ValidArgs: remoteChannels,
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
	if heard := g.Text("HEARD"); heard != "" {
		fmt.Fprintf(a.out, ", last heard of %s", heard)
	}
	fmt.Fprintln(a.out)
	if problem := g.Text("PROBLEM"); problem != "" {
		fmt.Fprintf(a.out, "  problem: %s\n", printable(problem))
	}
	if v, ok := g.Get("MAY-ANSWER"); g.Text("STATE") != "not linked" && ok && sexp.IsNil(v) {
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

func (a *app) gatewayLink(ctx context.Context, name string, args []string) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	switch {
	case name == "telegram" && len(args) == 0:
		return a.linkTelegram(ctx, cfg)
	case name == "telegram":
		return usageError("the token is not given as an argument, where others could see it: it is asked for, or piped in")
	case name == "signal":
		return a.linkSignal(ctx, cfg, args)
	}
	return usageError("there is no channel %q: want %s", name, strings.Join(remoteChannels, " or "))
}

func (a *app) linkTelegram(ctx context.Context, cfg *config.Config) error {
	token, err := a.secretInput("Token of the bot")
	if err != nil {
		return err
	}
	t, err := channel.NewTelegram(channel.TelegramOptions{Token: token, URL: cfg.TelegramURL})
	if err != nil {
		return err
	}
	as, err := t.Probe(ctx)
	if err != nil {
		return err
	}
	v, err := a.openOrCreateVault("")
	if err != nil {
		return err
	}
	if err := v.Set(telegramToken, token); err != nil {
		return err
	}
	return a.linked("telegram", as)
}

func (a *app) linkSignal(ctx context.Context, cfg *config.Config, args []string) error {
	o := channel.SignalOptions{Account: cfg.SignalAccount, Address: cfg.SignalCLI}
	changes := []config.Change{}
	if len(args) > 0 {
		o.Account = args[0]
		changes = append(changes, config.Change{Key: "SIGNAL_ACCOUNT", Value: o.Account})
	}
	if len(args) > 1 {
		o.Address = args[1]
		changes = append(changes, config.Change{Key: "SIGNAL_CLI", Value: o.Address})
	}
	if o.Account == "" {
		return usageError("say the number of the agent's own account: passepartout gateway link signal +15550001")
	}
	s, err := channel.NewSignal(o)
	if err != nil {
		return err
	}
	as, err := s.Probe(ctx)
	if err != nil {
		return fmt.Errorf("%w\nis it running? signal-cli -a %s daemon --tcp %s --receive-mode=manual", err, o.Account, o.Address)
	}
	if len(changes) > 0 {
		if err := a.configEdit(changes...); err != nil {
			return err
		}
	}
	return a.linked("signal", as)
}

// linked says what was linked and what comes next.
func (a *app) linked(name, as string) error {
	if a.json {
		return a.printJSON(map[string]any{"channel": name, "as": as})
	}
	_, err := fmt.Fprintf(a.out, "Linked %s as %s. A daemon that runs takes it up when it starts anew; then: passepartout gateway pair %s\n", name, printable(as), name)
	return err
}

func (a *app) gatewayUnlink(ctx context.Context, what string) error {
	if strings.Contains(what, ":") {
		return a.gatewaySay(ctx, sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("GATEWAY-UNPAIR"), sexp.Keyword("WHO"), what))
	}
	switch what {
	case "telegram":
		v, err := a.openVault()
		if errors.Is(err, vault.ErrNone) {
			return fmt.Errorf("no vault holds a token; one in the settings file or the environment is taken out there: %s", telegramToken)
		}
		if err != nil {
			return err
		}
		if err := v.Delete(telegramToken); err != nil {
			return err
		}
	case "signal":
		if err := a.configEdit(config.Change{Key: "SIGNAL_ACCOUNT"}); err != nil {
			return err
		}
	default:
		return usageError("there is no channel %q: want %s, or a sender such as telegram:4711", what, strings.Join(remoteChannels, " or "))
	}
	if a.json {
		return a.printJSON(map[string]any{"channel": what, "linked": false})
	}
	_, err := fmt.Fprintf(a.out, "Unlinked %s. A daemon that runs goes on until it is started anew. Who was paired stays so for another time; forget them with gateway unlink %s:SENDER.\n", what, what)
	return err
}
