package main

import (
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/internal/password"
)

// hashesCommand is what a server starts beside itself, and nobody else: it makes hashes of
// passwords for it. It ends when the server has closed its standard input, or has ended in
// whatever way; what a terminal or a service manager tells all processes is for the server.
func (c *cli) hashesCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "hashes",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			debug.SetGCPercent(100) // a hash needs 19 MiB: five times that would be for nothing
			signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			return password.New(0).Serve(standard{c.stdin, c.stdout})
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
func (c *cli) hashes() *exec.Cmd {
	path := "/proc/self/exe"
	if runtime.GOOS != "linux" {
		path, _ = os.Executable() // where it is not known, starting it says so
	}
	return &exec.Cmd{Path: path, Args: []string{c.program, "hashes"}, Env: []string{}, Stderr: c.stderr}
}
