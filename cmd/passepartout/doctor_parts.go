package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"passepartout/internal/channel"
	"passepartout/internal/config"
	"passepartout/internal/daemon"
	"passepartout/internal/flight"
	"passepartout/internal/gate"
	"passepartout/internal/journal"
	"passepartout/internal/llm"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
	"passepartout/internal/skill"
)

// policyFindings load the policy, which runs its examples, and see who can change
// it.
func (a *app) policyFindings(cfg *config.Config) []finding {
	var out []finding
	for _, name := range []string{"permissions.org", "rules.org", "identity.org", "schedule.org"} {
		if f, found := private("policy.mode", filepath.Join(cfg.MemexDir, "system", name), writers, "others can change what the agent may do"); found {
			out = append(out, f)
		}
	}
	b, err := a.bench()
	if err != nil {
		return append(out, bad("policy", "%v", err))
	}
	c, err := gate.Standard(b.Policy, b.Vocabulary)
	if err != nil {
		return append(out, bad("policy", "%v", err))
	}
	if mute(b.Policy.Permissions) {
		out = append(out, weak("policy.mute", "system/permissions.org does not list cli.message, so the agent must ask before it answers; `passepartout policy permissions --built-in` prints a table to begin with"))
	}
	return append(out, well("policy", "loads: %d gates, %d permissions, %d rules, digest %s", len(c.Gates()), len(b.Policy.Permissions), len(b.Policy.Rules), c.Policy()))
}

// mute reports whether a table of tools forgets that answering is one too.
func mute(table []gate.Permission) bool {
	for _, p := range table {
		if p.Name == "cli.message" || p.Name == "*" && p.Decision == gate.Allow {
			return false
		}
	}
	return true
}

func clockFinding(now time.Time) finding {
	if now.Year() < 2025 {
		return bad("clock", "%s: that is in the past", now.Format(time.RFC1123))
	}
	return well("clock", "%s", now.Format(time.RFC1123))
}

// journalFindings verify the record, and with it the clock: time that ran
// backwards would confuse what expires.
func journalFindings(dir string, now time.Time) []finding {
	clock := clockFinding(now)
	sum, err := journal.Verify(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []finding{well("journal", "not begun yet"), clock}
	case err != nil:
		return []finding{bad("journal", "%v", err), clock}
	case sum.Last.After(now.Add(time.Minute)):
		clock = bad("clock", "%s, but the journal's last entry is from %s", now.Format(time.RFC1123), sum.Last.Format(time.RFC1123))
	}
	if sum.Torn != nil {
		return []finding{weak("journal", "whole up to a torn end, which the daemon repairs: %v", sum.Torn), clock}
	}
	return []finding{well("journal", "whole: %d entries, head %s", sum.Entries, sum.Head), clock}
}

// skillFindings load the skills as the daemon does.
func (a *app) skillFindings(cfg *config.Config) []finding {
	grants := daemon.SkillGrants(cfg.StateDir)
	if _, err := skill.LoadGrants(grants); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return []finding{bad("skills.grants", "%v", err)}
	}
	l, _, _, err := a.skills()
	if err != nil {
		return []finding{bad("skills", "%v", err)}
	}
	set := l.Set()
	if len(set.Problems) > 0 {
		f := bad("skills", "%d of them are not in force as they stand", len(set.Problems))
		f.More = problemTexts(set)
		return []finding{f}
	}
	return []finding{well("skills", "%d load", len(set.Skills))}
}

// modelFindings see whether the settings about models make sense, and whether who
// is named answers.
func (a *app) modelFindings(ctx context.Context, cfg *config.Config, online bool) []finding {
	var out []finding
	full := a.withKeys(cfg)
	if _, err := modelSettings(full); err != nil {
		out = append(out, bad("models", "%v", err))
	}
	if !cfg.Origin("PROVIDER_CASCADE").IsDefault() {
		for _, name := range cfg.Cascade {
			if name != "reflex" && name != "ollama" && name != "local" && !full.Keys[name].IsSet() {
				out = append(out, weak("models.key", "%s is in PROVIDER_CASCADE and has no key: passepartout vault set %s", name, keyName(name)))
			}
		}
	}
	if err := readable(filepath.Join(cfg.StateDir, "models"), func(line string) error {
		if line == "" || strings.HasPrefix(line, "cascade=") {
			return nil
		}
		_, err := llm.ParseRoute(line)
		return err
	}); err != nil {
		out = append(out, bad("models.routes", "%v", err))
	}
	if err := readable(filepath.Join(cfg.StateDir, "costs.jsonl"), func(line string) error {
		var e llm.Entry
		return json.Unmarshal([]byte(line), &e)
	}); err != nil {
		out = append(out, bad("models.costs", "the daemon does not start, because money that was spent must not be forgotten: %v", err))
	}
	if len(out) > 0 {
		return out
	}
	return a.answeringModels(ctx, full, online)
}

// answeringModels asks servers on this machine, and with online everybody who has
// a key.
func (a *app) answeringModels(ctx context.Context, cfg *config.Config, online bool) []finding {
	var names []string
	for _, m := range a.localModels(ctx, cfg) {
		names = append(names, m.Provider+"/"+m.ID)
	}
	out := []finding{well("models", "rules answer, and %d models on this machine", len(names))}
	out[0].More = names
	if !online {
		return out
	}
	for name, key := range cfg.Keys {
		if name == "local" || !key.IsSet() {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, tryTime)
		answered, err := tryModel(ctx, llm.Provider{Name: name, Key: key.Reveal()}, "")
		cancel()
		if err != nil {
			out = append(out, bad("models."+name, "%v", err))
			continue
		}
		out = append(out, well("models."+name, "%s answers", answered))
	}
	return out
}

// readable checks a file line by line; the last line may be one that a crash cut
// short.
func readable(path string, check func(string) error) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReader(f)
	for n := 1; ; n++ {
		line, err := r.ReadString('\n')
		if err != nil {
			return nil //nolint:nilerr // the end, or a last line that a crash cut short
		}
		if err := check(strings.TrimSpace(line)); err != nil {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
}

// helloTime is how long a daemon may take to say who it is.
const helloTime = 5 * time.Second

// daemonFindings ask a daemon that runs how it is, and see what one that does not
// has left.
func (a *app) daemonFindings(ctx context.Context, cfg *config.Config) []finding {
	held := noDaemon(cfg.StateDir) != nil
	st, err := os.Lstat(cfg.SocketPath)
	switch {
	case errors.Is(err, fs.ErrNotExist) && held:
		return []finding{bad("daemon", "one runs, but its socket %s is gone: nobody can reach it", cfg.SocketPath)}
	case errors.Is(err, fs.ErrNotExist):
		return append(plansFindings(cfg, held), well("daemon", "not running; it starts when it is needed"))
	case err != nil:
		return []finding{bad("daemon.socket", "%v", err)}
	case st.Mode()&fs.ModeSocket == 0:
		return []finding{bad("daemon.socket", "%s is in the way and is no socket", cfg.SocketPath)}
	}
	r, err := a.health(ctx, cfg.SocketPath)
	switch {
	case err != nil && notRunning(err) && !held:
		return append(plansFindings(cfg, held), weak("daemon.socket", "%s was left behind by a daemon that is gone", cfg.SocketPath).by("remove "+cfg.SocketPath, func() error {
			if noDaemon(cfg.StateDir) != nil {
				return errors.New("a daemon has started meanwhile")
			}
			return os.Remove(cfg.SocketPath)
		}))
	case err != nil:
		return []finding{bad("daemon", "%s: %v", cfg.SocketPath, err)}
	}
	if problem := r.Payload.Text("POLICY-PROBLEM"); problem != "" {
		return []finding{bad("daemon", "runs with its last good policy, because the files do not load: %s", problem)}
	}
	pid, _ := r.Payload.Get("PID")
	return []finding{well("daemon", "process %v, since %s", pid, r.Payload.Text("STARTED"))}
}

// plansFindings read what waits for a person, while no daemon holds it.
func plansFindings(cfg *config.Config, held bool) []finding {
	dir := filepath.Join(cfg.StateDir, "flight")
	if held || !exists(dir) {
		return nil
	}
	if err := tryPlans(dir); err != nil {
		return []finding{bad("plans", "what waits for your answer cannot be read: %v", err)}
	}
	return nil
}

// tryPlans opens a copy: opening the record itself would tidy it.
func tryPlans(dir string) (err error) {
	tmp, err := os.MkdirTemp("", "passepartout-doctor-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	if err := os.CopyFS(filepath.Join(tmp, "flight"), os.DirFS(dir)); err != nil {
		return err
	}
	l, err := flight.Open(flight.Options{Dir: filepath.Join(tmp, "flight"), Now: time.Now})
	if err != nil {
		return err
	}
	return l.Close()
}

// health asks whoever listens on the socket, for a bounded time.
func (a *app) health(ctx context.Context, socket string) (proto.Message, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return proto.Message{}, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(helloTime)); err != nil {
		return proto.Message{}, err
	}
	pc, err := proto.Connect(conn, "cli", nil)
	if err != nil {
		return proto.Message{}, fmt.Errorf("who listens there does not answer as a daemon: %w", err)
	}
	c := &client{Client: pc, conn: conn}
	return c.exchange(proto.Message{Kind: proto.Request, Payload: sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("HEALTH-CHECK"))}, nil)
}

// tryChannel looks at a channel's settings, and whether what it needs on this
// machine is there.
func tryChannel(ctx context.Context, s channel.Service, cfg *config.Config) error {
	if s.Check != nil {
		if err := s.Check(cfg.Channel); err != nil {
			return err
		}
	}
	if !s.Linked(cfg.Channel) {
		return nil
	}
	c, err := s.Open(cfg.Channel)
	if err != nil {
		return err
	}
	p, ok := c.(channel.Prober)
	if !ok || !s.Local {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, helloTime)
	defer cancel()
	if _, err := p.Probe(ctx); err != nil {
		return fmt.Errorf("%s is set, and nobody answers: %w", s.Keys[0].Name, err)
	}
	return nil
}

// gatewayFindings look at the channels that are configured.
func gatewayFindings(ctx context.Context, cfg *config.Config) []finding {
	var out []finding
	for _, s := range channel.Services() {
		if err := tryChannel(ctx, s, cfg); err != nil {
			out = append(out, bad("gateways."+s.Name, "%v", err))
		}
	}
	if len(out) == 0 {
		return []finding{well("gateways", "nothing is wrong with their settings; passepartout gateway list says who is linked")}
	}
	return out
}

func (a *app) serviceFinding() finding {
	m, state, err := a.serviceState()
	switch {
	case err != nil:
		return well("service", "none: %v", err)
	case state == "outdated":
		return weak("service", "%s is not what this program would write; it may start another one", m.path).by("write it anew", func() error {
			return config.WriteFile(m.path, []byte(m.text))
		})
	case state == "foreign":
		return well("service", "%s is your own", m.path)
	}
	return well("service", "%s", state)
}

func (a *app) localeFinding() finding {
	if !utf8Locale(a.getenv) {
		return well("locale", "not UTF-8: the terminal client draws in ASCII")
	}
	return well("locale", "UTF-8")
}
