package main

import (
	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/cmd/selvage/internal/server"
)

func (c *cli) serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve identity, fabric tokens and recordings",
		Long: "Serves everything on one HTTP and one HTTPS listener, and health, metrics and profiles on a third.\n" +
			"On an empty data directory it makes keys, a local certificate authority and, if only this machine\n" +
			"can reach it, a demo project.",
		Args: positional(),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.serve(cmd) },
	}
	config.AddFlags(cmd.Flags(), false)
	return cmd
}

func (c *cli) serve(cmd *cobra.Command) error {
	conf, _, err := c.loadConfig(cmd.Flags())
	if err != nil {
		return err
	}
	return server.Serve(cmd.Context(), server.Config{
		Config: conf, Version: version(), Getenv: c.getenv, Hashes: c.hashes, Stdout: c.stdout, Stderr: c.stderr,
		Reload: func() (config.Config, error) {
			conf, _, err := c.loadConfig(cmd.Flags())
			return conf, err
		},
	})
}
