// Command selvage serves subscribers' identity, fabric tokens and recordings,
// and keeps them: the server and everything an operator does to it are
// sub-commands of this one binary.
//
// A command reads the configuration (cmd/selvage/internal/config), has the services put together
// (cmd/selvage/internal/server), and asks them. What it prints, and how, is here.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	_ "github.com/selvage/selvage/cmd/selvage/internal/heap" // which sets how often garbage is collected
	"github.com/selvage/selvage/internal/problem"
)

// The exit statuses. That of a drift is the one that others have for it, too.
const (
	exitDrift        = 2
	exitFailed       = 1
	exitUsage        = 2
	exitNotFound     = 3
	exitUnauthorised = 4
)

func main() {
	syscall.Umask(0o077) // what is kept here is nobody else's
	err := run(context.Background(), os.Args, os.Getenv, os.Environ(), os.Stdin, os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "selvage: "+strings.ReplaceAll(explain(err), "\n", "\nselvage: "))
		os.Exit(exitStatus(err))
	}
}

// run runs a command line, whose first word is the program. Nothing of the process is used but what is passed.
func run(ctx context.Context, args []string, getenv func(string) string, environ []string, stdin io.Reader, stdout, stderr io.Writer) error {
	c := &cli{program: args[0], getenv: getenv, environ: environ, stdin: stdin, stdout: stdout, stderr: stderr}
	root := c.rootCommand()
	if len(args) > 1 && strings.HasPrefix(
		args[1], cobra.ShellCompRequestCmd) { // somebody types, and a shell completes it
		completeFlags(root)
	}
	root.SetArgs(args[1:])
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return root.ExecuteContext(ctx)
}

// A usageError is a command line or a configuration that cannot be meant.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func exitStatus(err error) int {
	var usage usageError
	switch {
	case errors.As(err, new(driftError)):
		return exitDrift
	case errors.As(err, &usage), errors.Is(err, problem.Invalid), errors.Is(err, problem.Malformed):
		return exitUsage
	case errors.Is(err, problem.NotFound):
		return exitNotFound
	case errors.Is(err, problem.Unauthenticated), errors.Is(err, problem.Forbidden):
		return exitUnauthorised
	}
	return exitFailed
}

// explain writes an error for who typed the command: parameters are the flags
// they were given by.
func explain(err error) string {
	problems := problem.All(err)
	if len(problems) == 0 {
		return err.Error()
	}
	var lines []string
	for _, p := range problems {
		lines = append(lines, sayOfFlag(p)+lookUp(p))
	}
	return strings.Join(lines, "\n")
}

// givenBy tells how parameters are given here that are not flags of their own
// name.
var givenBy = map[string]string{
	"password":          "the password (typed, or from --password-stdin)",
	"allowed_addresses": "--address",
	"address_id":        "--address",
	"expire_at":         "--expires-in",
	"expires_at":        "--expires-in",
	"events":            "--event",
}

// sayOfFlag puts the flag in place of the parameter that a message is about.
func sayOfFlag(p *problem.Error) string {
	if p.Param == "" {
		return p.Message
	}
	flag, ok := givenBy[p.Param]
	if !ok {
		flag = "--" + strings.ReplaceAll(p.Param, "_", "-")
	}
	n := len(p.Param)
	if len(p.Message) > n && strings.EqualFold(p.Message[:n], p.Param) && p.Message[n] == ' ' {
		return flag + p.Message[n:]
	}
	return flag + ": " + p.Message
}

// lookUp tells where to look for the id of a thing that there is not.
func lookUp(p *problem.Error) string {
	switch {
	case p.Param == "allowed_addresses":
		return "; `selvage address list` shows those there are"
	case p.Code == "not_published":
		return "; --now does not wait for them"
	}
	thing, missing := strings.CutSuffix(p.Message, " not found")
	noun := strings.ToLower(strings.TrimPrefix(thing, "API "))
	switch noun {
	case "ring key":
		noun = "ring"
	case "project", "operator", "key", "client", "subscriber", "address", "recording", "webhook":
	default:
		return ""
	}
	if p.Kind != problem.NotFound || !missing {
		return ""
	}
	return fmt.Sprintf("; `selvage %s list` shows those there are", noun)
}
