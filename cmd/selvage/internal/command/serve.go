package command

import (
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/cmd/selvage/internal/server"
	"github.com/selvage/selvage/internal/password"
)

func (c *commands) serveCommand() *cobra.Command {
	cmd := cli.Command("serve", "Serve identity, fabric tokens and recordings", c.serve)
	cmd.Long = `Serve everything on one HTTP and one HTTPS listener, and health, metrics and profiles on a third. On an
empty data directory, this creates keys, a local certificate authority and, if only this machine can
reach the server, a demo project.`
	config.AddFlags(cmd.Flags(), false)
	return cmd
}

func (c *commands) serve(cmd *cobra.Command, _ []string) error {
	conf, from, err := c.loadConfig(cmd.Flags())
	if err != nil {
		return err
	}

	return server.Serve(cmd.Context(), server.Config{
		Config:  conf,
		Version: c.build.version(),
		Getenv:  c.Getenv,
		Hashes:  c.hashes,
		Stdout:  c.Stdout,
		Stderr:  c.Stderr,
		IsSet:   func(key string) bool { return from[key] != "" },
		Reload: func() (config.Config, error) {
			conf, _, err := c.loadConfig(cmd.Flags())
			return conf, err
		},
	})
}

// hashesCommand returns the command that hashes passwords. A server starts it as a child process, which
// exits when its standard input is closed, at the latest when the server exits. The child ignores signals
// that a terminal or a service manager sends to the whole process group.
func (c *commands) hashesCommand() *cobra.Command {
	cmd := cli.Command("hashes", "", func(*cobra.Command, []string) error {
		debug.SetGCPercent(100) // a hash needs 19 MiB, and the server's GC setting would keep five times as much
		signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
		return password.New(0).Serve(standardIO{c.Stdin, c.Stdout})
	})
	cmd.Hidden = true
	return cmd
}

// standardIO combines standard input and output into one connection.
type standardIO struct {
	io.Reader
	io.Writer
}

func (standardIO) Close() error { return nil }

// hashes returns a process that runs hashesCommand. On Linux, the process runs the same binary as this
// process, even if the binary's file has been replaced.
func (c *commands) hashes() *exec.Cmd {
	path := "/proc/self/exe"
	if runtime.GOOS != "linux" {
		path, _ = os.Executable() // if the path is unknown, starting the process fails
	}
	return &exec.Cmd{Path: path, Args: []string{c.Program, "hashes"}, Env: []string{}, Stderr: c.Stderr}
}
