package command

import (
	"context"
	"errors"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/cmd/selvage/internal/demo"
	"github.com/spf13/cobra"
	"io"
	"io/fs"
)

func (c *commands) demoCommand() *cobra.Command {
	show := &cobra.Command{Use: "show", Short: "Print the demo's ids, secrets and curl lines again",
		Args: cli.NoArguments, RunE: c.showDemo}
	reset := &cobra.Command{
		Use: "reset", Short: "Delete the demo with everything in it, and make it anew, with other ids and secrets", Args: cli.NoArguments, RunE: c.withMedia(c.resetDemo),
	}
	cli.AddYes(reset)
	return cli.Noun("demo", "The demo project of the first start", show, reset)
}

// noDemo is the error of a data directory without a demo.
func noDemo(dir string) error {
	return cli.NotFoundf("there is no demo in %s: `selvage serve` makes one when it starts on an empty data directory that only this machine can reach", dir)
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

// resetDemo makes the demo anew, beside a running server or without one. Where it is
// interrupted it goes on from there.
func (c *commands) resetDemo(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	there, err := a.Demo.Exists()
	switch {
	case err != nil:
		return err
	case !there:
		return noDemo(a.Config.Data)
	case !a.Local() || !a.Config.Services.All():
		return cli.Usagef("there is a demo only where nobody but this machine reaches the server, and it serves everything")
	}
	if err := c.Ask(cmd, "This deletes the demo project with its subscribers, clients, keys and recordings, and makes another.", `Type "Demo" to go on: `, "Demo"); err != nil {
		return err
	}
	text, err := a.Demo.Reset(ctx)
	if err != nil {
		return err
	}
	_, err = io.WriteString(c.Stdout, text)
	return err
}
