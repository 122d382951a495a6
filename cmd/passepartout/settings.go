package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"passepartout/internal/config"
	"passepartout/internal/daemon"
	"passepartout/internal/flight"
)

// config reads the settings once. With --demo, and where nobody has chosen a
// memex and there is none at the usual place, it makes a throw-away one.
func (a *app) config() (*config.Config, error) {
	if a.cfg != nil {
		return a.cfg, nil
	}
	cfg, err := config.Load(a.environ, config.ReadFile)
	if err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	if a.demo && cfg.Origin("MEMEX_DIR").IsDefault() && !exists(cfg.MemexDir) {
		if cfg, err = a.demoConfig(); err != nil {
			return nil, fmt.Errorf("demo memex: %w", err)
		}
	}
	a.cfg = &cfg
	return a.cfg, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// demoConfig points every path into a throw-away place of this user and day, and
// of this very binary, so that a new build does not meet an old daemon.
func (a *app) demoConfig() (config.Config, error) {
	base := filepath.Join(os.TempDir(), "passepartout-demo-"+strconv.Itoa(os.Getuid()))
	if err := privateDir(base); err != nil {
		return config.Config{}, err
	}
	dir := filepath.Join(base, time.Now().Format(time.DateOnly))
	memex := filepath.Join(dir, "memex")
	if !exists(memex) {
		if err := daemon.WriteDemo(memex, time.Now()); err != nil {
			return config.Config{}, err
		}
		fmt.Fprintf(a.errw, "No memex is configured: this is a demo in %s. Set MEMEX_DIR to use your own.\n", memex)
	}
	run := filepath.Join(dir, buildID())
	a.environ = append(a.environ,
		"MEMEX_DIR="+memex, "PASSEPARTOUT_CONFIG_DIR="+filepath.Join(dir, "config"), "PASSEPARTOUT_DATA_DIR="+filepath.Join(dir, "data"),
		"PASSEPARTOUT_STATE_DIR="+filepath.Join(run, "state"), "PASSEPARTOUT_RUNTIME_DIR="+run)
	return config.Load(a.environ, config.ReadFile)
}

// privateDir makes a directory only this user can enter. One that somebody else
// made first in a shared place is refused.
func privateDir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	st, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); !ok || int(sys.Uid) != os.Getuid() || !st.IsDir() || st.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s exists and is not a private directory of yours", dir)
	}
	return nil
}

// buildID tells this binary from other builds of it.
func buildID() string {
	h := fnv.New32a()
	if self, err := os.Executable(); err == nil {
		if st, err := os.Stat(self); err == nil {
			fmt.Fprintf(h, "%s %d %d", self, st.Size(), st.ModTime().UnixNano())
		}
	}
	return fmt.Sprintf("%08x", h.Sum32())
}

// demoIdle is how long a demo's daemon outlives its last client.
const demoIdle = 2 * time.Minute

func (a *app) daemonCommand() *cobra.Command {
	var idle time.Duration
	var record, replay string
	c := &cobra.Command{
		Use: "daemon", Short: "Run the daemon in the foreground", Args: cobra.NoArgs,
		Long:    "Run the daemon in the foreground until it is interrupted. Clients start it by\nthemselves when it is needed.",
		Example: "  passepartout daemon\n  passepartout daemon --record talk.jsonl    # what is said to and by providers\n  passepartout daemon --replay talk.jsonl    # the same answers again, from nobody",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.daemon(cmd.Context(), idle, record, replay) },
	}
	c.Flags().StringVar(&record, "record", "", "write what is said to and by providers to `FILE`, without credentials (default PASSEPARTOUT_RECORD)")
	c.Flags().StringVar(&replay, "replay", "", "answer from what was recorded in `FILE`; no provider is reached")
	c.Flags().DurationVar(&idle, "idle-exit", 0, "end after so long without a client (0: never)")
	c.AddCommand(a.daemonStopCommand())
	return c
}

func (a *app) daemon(ctx context.Context, idle time.Duration, record, replay string) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	plain := cfg
	cfg, open, locked := a.withVault(cfg)
	settings := a.settings(cfg, idle)
	if open != nil {
		protect(&settings, open.Values())
	}
	settings.ReadVault = a.vaultReader(plain, cfg, open)
	if settings.WebCredentials, err = webCredentials(cfg); err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	if locked != nil {
		settings.Log.Warn("the vault is not used", "error", locked)
	}
	if settings.Models, err = modelSettings(cfg); err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	settings.Models.Record, settings.Models.Replay = cmp.Or(record, settings.Models.Record), replay
	d, err := daemon.Open(ctx, settings)
	if err != nil {
		return err
	}
	return d.Run(ctx)
}

// settings are the parts of the configuration the daemon needs.
func (a *app) settings(cfg *config.Config, idle time.Duration) daemon.Settings {
	secrets := map[string]string{}
	for name, key := range cfg.Keys {
		secrets[name] = key.Reveal()
	}
	maps.Copy(secrets, channelSecrets(cfg))
	return daemon.Settings{
		MemexDir: cfg.MemexDir, StateDir: cfg.StateDir, SkillsDir: filepath.Join(cfg.DataDir, "skills"), SocketPath: cfg.SocketPath,
		TCPAddr: cfg.TCPAddr, TokenFile: cfg.TokenFile, MaxClients: cfg.MaxClients,
		Addressee: cfg.User, Fallback: cfg.DefaultActuator, Diary: cfg.Diary, Notices: cfg.Notices,
		RequireSandbox: cfg.Sandbox == "require", JournalBytes: int64(cfg.JournalBytes),
		Assistant: cfg.Assistant, Home: a.getenv("HOME"), User: a.getenv("USER"),
		PrivacyTags: cfg.PrivacyTags, Hosts: cfg.AllowHosts, WriteRoots: cfg.WriteRoots,
		Hidden: []string{cfg.ConfigDir, cfg.DataDir}, Secrets: secrets,
		Approvers:   flight.Approvers{Channels: cfg.Approvers, Elsewhere: cfg.ApproveFrom == "elsewhere"},
		ApprovalTTL: cfg.ApprovalExpiry, IdleExit: idle, Channels: a.channelSettings(cfg), NotifySocket: a.getenv("NOTIFY_SOCKET"),
		UndoBytes: int64(cfg.UndoMB) << 20, UndoFile: int64(cfg.UndoFileMB) << 20, Trial: time.Duration(cfg.TrySeconds) * time.Second,
		Log: a.logger(cfg),
	}
}

func (a *app) logger(cfg *config.Config) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.LogLevel)); err != nil {
		level = slog.LevelInfo
	}
	return slog.New(slog.NewTextHandler(a.errw, &slog.HandlerOptions{Level: level}))
}

// protect tells the daemon what the vault holds, so that it never leaves.
func protect(s *daemon.Settings, kept map[string]string) {
	for name, value := range kept {
		maps.DeleteFunc(s.Secrets, func(_, same string) bool { return same == value }) // the vault's name for it is the one to use
		s.Secrets[name] = value
		s.Vault = append(s.Vault, name)
	}
}

func (a *app) getenv(key string) string {
	value := ""
	for _, kv := range a.environ {
		if k, v, ok := strings.Cut(kv, "="); ok && k == key {
			value = v
		}
	}
	return value
}
