package command

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/cmd/selvage/internal/demo"
)

func (c *commands) demoCommand() *cobra.Command {
	show := cli.Command("show", "Print the ids, secrets and curl commands of the demo again", c.showDemo)
	reset := cli.Command("reset",
		"Replace the demo and everything in it with a fresh one, which has new ids and secrets",
		c.withMedia(c.resetDemo))
	cli.AddYes(reset)
	return cli.Noun("demo", "The demo project that the first start creates", show, reset)
}

// noDemo returns the error for a data directory without a demo.
func noDemo(dir string) error {
	return cli.NotFoundf("no demo in %s: `selvage serve` creates one when it starts with an empty data "+
		"directory and only this machine can reach it", dir)
}

func (c *commands) showDemo(cmd *cobra.Command, _ []string) error {
	conf, _, err := c.loadConfig(cmd.Flags())
	if err != nil {
		return err
	}
	text, err := demo.Text(conf.Data)
	if errors.Is(err, fs.ErrNotExist) {
		return noDemo(conf.Data)
	}
	if err != nil {
		return err
	}
	_, err = c.Stdout.Write(text)
	return err
}

// resetDemo replaces the demo, even while a server is running. If resetDemo is interrupted, running
// it again completes the replacement.
func (c *commands) resetDemo(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	exists, err := a.Demo.Exists()
	switch {
	case err != nil:
		return err
	case !exists:
		return noDemo(a.Config.Data)
	case !a.Local() || !a.Config.Services.All():
		return cli.Usagef("a demo needs a server that only this machine can reach and that runs all services")
	}

	const what = "This deletes the demo project with its subscribers, clients, keys and recordings, " +
		"and creates another."
	if err := c.Ask(cmd, what, `Type "Demo" to continue: `, "Demo"); err != nil {
		return err
	}
	text, err := a.Demo.Reset(ctx)
	if err != nil {
		return err
	}
	_, err = io.WriteString(c.Stdout, text)
	return err
}
