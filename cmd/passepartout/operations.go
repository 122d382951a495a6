package main

import "github.com/spf13/cobra"

// operations are the commands for those who run it: settings, keys, backups.
func (a *app) operations() []*cobra.Command {
	return []*cobra.Command{
		a.setupCommand(), a.serviceCommand(), a.vaultCommand(), a.backupCommand(), a.restoreCommand(),
		a.importCommand(), a.exportCommand(), a.manCommand(), a.sbomCommand(), a.acpCommand(),
	}
}
