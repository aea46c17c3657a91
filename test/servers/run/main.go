// Command run starts the servers that tests use, once, and runs a command with their URLs in its
// environment: go run ./test/servers/run -- COMMAND [ARGUMENT…]
//
// Unless TMPDIR is set, the servers and the tests keep their files in memory if enough of it is
// free.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"

	"github.com/selvage/selvage/test/servers"
)

func main() {
	args := os.Args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: go run ./test/servers/run -- COMMAND [ARGUMENT…]")
		os.Exit(2)
	}
	os.Exit(run(args))
}

// run starts the servers, runs the command and returns its exit status.
func run(args []string) int {
	if dir := memory(); dir != "" && os.Getenv("TMPDIR") == "" {
		_ = os.Setenv("TMPDIR", dir) // cannot fail for a valid name
	}

	p := &program{}
	defer p.cleanUp()

	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = os.Environ()

	for name, url := range map[string]func() string{
		"SELVAGE_TEST_POSTGRES": func() string { return servers.OwnPostgres(p).URL },
		"SELVAGE_TEST_REDIS":    func() string { return servers.OwnRedis(p).URL },
		"SELVAGE_TEST_CLUSTER":  func() string { return servers.OwnCluster(p, 0).URL },
		"SELVAGE_TEST_SENTINEL": func() string { return servers.OwnSentinel(p).URL },
	} {
		if os.Getenv(name) == "" {
			if got := p.try(url); got != "" {
				cmd.Env = append(cmd.Env, name+"="+got)
			}
		}
	}

	if p.failed {
		return 1
	}
	// The command gets an interrupt too, and ends. Ignore it here, so that the servers outlive the
	// command.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)

	var status *exec.ExitError
	err := cmd.Run()
	if err == nil {
		return 0
	}

	fmt.Fprintf(os.Stderr, "%s: %v\n", args[0], err)
	if errors.As(err, &status) && status.ExitCode() > 0 {
		return status.ExitCode()
	}
	return 1
}

// A program is the [servers.T] of this command.
type program struct {
	cleanups []func()
	failed   bool
}

// ended is the panic value that ends an attempt to start a server.
type ended struct{}

// try starts a server and returns its URL. It returns "" if the server is not installed or did not
// start.
func (p *program) try(start func() string) string {
	defer func() {
		if r := recover(); r != nil && r != (ended{}) {
			panic(r)
		}
	}()
	return start()
}

func (p *program) cleanUp() {
	for _, do := range slices.Backward(p.cleanups) {
		do()
	}
}

func (p *program) Helper() {}

func (p *program) Cleanup(do func()) { p.cleanups = append(p.cleanups, do) }

func (p *program) Skipf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	panic(ended{})
}

func (p *program) Fatalf(format string, args ...any) {
	p.failed = true
	p.Skipf(format, args...)
}
