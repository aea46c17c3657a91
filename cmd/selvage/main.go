// Command selvage serves identity, fabric tokens and call recordings, and administers them. The
// server and all administrative tasks are commands of this one binary.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/cmd/selvage/internal/command"
	_ "github.com/selvage/selvage/cmd/selvage/internal/heap" // sets how often garbage is collected
)

// The linker sets these variables: the output of `git describe`, the commit, and its time in RFC
// 3339.
var build, buildCommit, buildDate string

func main() {
	syscall.Umask(0o077) // make new files readable by this user only

	env := &cli.Env{
		Program: os.Args[0],
		Getenv:  os.Getenv,
		Environ: os.Environ(),
		Stdin:   os.Stdin,
		Stdout:  os.Stdout,
		Stderr:  os.Stderr,
	}
	b := command.Build{Version: build, Commit: buildCommit, Date: buildDate}
	if err := command.Run(context.Background(), env, b, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "selvage: "+strings.ReplaceAll(cli.Explain(err), "\n", "\nselvage: "))
		os.Exit(cli.ExitStatus(err))
	}
}
