package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"passepartout/internal/acp"
)

func (a *app) acpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "acp", Short: "Be an agent for editors that speak the Agent Client Protocol", Args: cobra.NoArgs,
		Long: `Speak the Agent Client Protocol on standard input and output, for Zed, JetBrains,
Neovim, Emacs's agent-shell and other editors. Sessions are the daemon's own. What the
gates ask becomes a permission request in the editor. See docs/acp.md.`,
		Example: `  passepartout acp        # as the agent's command in the editor's settings`,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.acp(cmd.Context()) },
	}
}

func (a *app) acp(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := acp.Serve(ctx, acp.Options{
		Dial: func(ctx context.Context) (acp.Conn, error) {
			c, err := a.connect(ctx, "acp")
			if err != nil {
				return nil, err
			}
			return screenConn{c}, nil
		},
		Version: buildVersion()["version"], In: a.in, Out: a.out,
	})
	if ctx.Err() != nil {
		return nil // it was asked to end
	}
	return err
}
