package command

import (
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/cmd/selvage/internal/server"
	"github.com/selvage/selvage/internal/password"
	"github.com/spf13/cobra"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
)

func (c *commands) serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve identity, fabric tokens and recordings",
		Long: "Serves everything on one HTTP and one HTTPS listener, and health, metrics and profiles on a third.\n" +
			"On an empty data directory it makes keys, a local certificate authority and, if only this machine\n" +
			"can reach it, a demo project.",
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.serve(cmd) },
	}
	config.AddFlags(cmd.Flags(), false)
	return cmd
}

func (c *commands) serve(cmd *cobra.Command) error {
	conf, _, err := c.loadConfig(cmd.Flags())
	if err != nil {
		return err
	}
	return server.Serve(cmd.Context(), server.Config{
		Config: conf, Version: c.build.version(), Getenv: c.Getenv, Hashes: c.hashes, Stdout: c.Stdout, Stderr: c.Stderr,
		Reload: func() (config.Config, error) {
			conf, _, err := c.loadConfig(cmd.Flags())
			return conf, err
		},
	})
}

// hashesCommand is what a server starts beside itself, and nobody else: it makes hashes of
// passwords for it. It ends when the server has closed its standard input, or has ended in
// whatever way; what a terminal or a service manager tells all processes is for the server.
func (c *commands) hashesCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "hashes",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			debug.SetGCPercent(100) // a hash needs 19 MiB: five times that would be for nothing
			signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			return password.New(0).Serve(standard{c.Stdin, c.Stdout})
		},
	}
}

// standard is standard input and output as one connection.
type standard struct {
	io.Reader
	io.Writer
}

func (standard) Close() error { return nil }

// hashes returns the process that runs hashesCommand. It is this very program, even if
// another version lies where it was started from.
func (c *commands) hashes() *exec.Cmd {
	path := "/proc/self/exe"
	if runtime.GOOS != "linux" {
		path, _ = os.Executable() // where it is not known, starting it says so
	}
	return &exec.Cmd{Path: path, Args: []string{c.Program, "hashes"}, Env: []string{}, Stderr: c.Stderr}
}
