package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/internal/datadir"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

func (c *cli) demoCommand() *cobra.Command {
	show := &cobra.Command{Use: "show", Short: "Print the demo's ids, secrets and curl lines again", Args: positional(), RunE: c.showDemo}
	reset := &cobra.Command{
		Use: "reset", Short: "Delete the demo with everything in it, and make it anew, with other ids and secrets", Args: positional(), RunE: c.withMedia(c.resetDemo),
	}
	addYes(reset)
	return noun("demo", "The demo project of the first start", show, reset)
}

// noDemo is the error of a data directory without a demo.
func noDemo(dir string) error {
	return notFoundf("there is no demo in %s: `selvage serve` makes one when it starts on an empty data directory that only this machine can reach", dir)
}

func (c *cli) showDemo(cmd *cobra.Command, _ []string) error {
	config, _, err := c.loadConfig(cmd.Flags())
	if err != nil {
		return err
	}
	f, err := os.Open(filepath.Join(config.Data, firstRunFile))
	if errors.Is(err, fs.ErrNotExist) {
		return noDemo(config.Data)
	}
	if err != nil {
		return fmt.Errorf("reading the demo: %w", err)
	}
	defer f.Close()
	_, err = io.Copy(c.stdout, f)
	return err
}

// resetDemo makes the demo anew, beside a running server or without one. Where it is
// interrupted it goes on from there.
func (c *cli) resetDemo(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	file := filepath.Join(a.config.Data, firstRunFile)
	old, err := os.ReadFile(file)
	_, begun := os.Stat(a.unfinished())
	switch {
	case errors.Is(err, fs.ErrNotExist) && begun != nil:
		return noDemo(a.config.Data)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("reading the demo: %w", err)
	case !a.local() || !a.config.Services.All():
		return usagef("there is a demo only where nobody but this machine reaches the server, and it serves everything")
	}
	if err := c.ask(cmd, "This deletes the demo project with its subscribers, clients, keys and recordings, and makes another.", `Type "Demo" to go on: `, "Demo"); err != nil {
		return err
	}
	if err := a.undo(ctx); err != nil {
		return fmt.Errorf("removing an unfinished demo: %w", err)
	}
	if err := a.deleteDemo(ctx, old); err != nil {
		return fmt.Errorf("deleting the demo: %w", err)
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("deleting the demo: %w", err)
	}
	d, err := a.seed(ctx)
	if err != nil {
		return fmt.Errorf("making the demo: %w", err)
	}
	if d.setup, err = a.oldSetupLink(ctx, old); err != nil {
		return err
	}
	if err := a.keepDemo(d); err != nil {
		return err
	}
	text := a.describe(d)
	if err := errors.Join(datadir.Replace(file, []byte(text), 0o600), os.Remove(a.unfinished())); err != nil {
		return err
	}
	_, err = io.WriteString(c.stdout, text)
	return err
}

// What is read back of first-run.txt: the project, which stands first, and the link.
var (
	demoProject = regexp.MustCompile(`(?m)^  id +([0-9a-f-]{36})$`)
	demoSetup   = regexp.MustCompile(`(?m)^  setup link +(\S+)$`)
)

// deleteDemo deletes the project that the text of a first start tells of, be it there
// or not.
func (a *app) deleteDemo(ctx context.Context, text []byte) error {
	m := demoProject.FindSubmatch(text)
	if m == nil {
		return nil
	}
	if err := a.fabric.DeleteProject(ctx, string(m[1])); !errors.Is(err, problem.NotFound) {
		return err
	}
	return nil
}

// oldSetupLink gives the link for the first operator, which only the text of the first
// start has; "" where there is an operator.
func (a *app) oldSetupLink(ctx context.Context, text []byte) (string, error) {
	some, err := a.operators.List(ctx, page.Query{Size: 1})
	if err != nil || len(some.Items) > 0 {
		return "", err
	}
	if m := demoSetup.FindSubmatch(text); m != nil {
		return string(m[1]), nil
	}
	return a.setupLink(ctx)
}
