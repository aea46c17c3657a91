package command

import (
	"context"
	"fmt"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
	"github.com/selvage/selvage/cmd/selvage/internal/declared"
	"github.com/selvage/selvage/cmd/selvage/internal/server"
	"github.com/selvage/selvage/internal/suggest"
	"github.com/selvage/selvage/store"
	"github.com/spf13/cobra"
	"os"
	"strings"
)

var _ declared.Store = (*store.Store)(nil)

// maxDeclared bounds a file of declared projects.
const maxDeclared = 8 << 20

// A driftError says that what is there is not as a file says.
type driftError struct {
	file  string
	steps int
}

func (e driftError) Error() string {
	return fmt.Sprintf("what there is differs from %s in %s", cli.InputName(e.file), cli.Plural(e.steps, "place"))
}

// ExitStatus tells differences from failures, as other tools do.
func (e driftError) ExitStatus() int { return 2 }

func (c *commands) applyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "apply -f FILE", Short: "Make projects, keys, clients, subscribers, resources and webhooks what a file says",
		Long: `Make projects, keys, clients, subscribers, resources and webhooks what a file says.

The file is YAML or JSON; docs/apply.md has an example of everything. What differs is
shown and changed, what the file says nothing of stays. Applied again, it changes nothing.

With --dry-run nothing is changed, and the exit status is 0 where nothing differs, 2 where
something does, and 1 where anything is wrong.`,
		Args: cli.NoArguments, RunE: c.apply,
	}
	f := cmd.Flags()
	f.StringP("file", "f", "", "the `file` to apply; - is stdin")
	f.Bool("dry-run", false, "only show what differs; the exit status is 2 where something does")
	f.Bool("prune", false, "remove what was made from a file, too, and is in this one no more; never projects or subscribers")
	f.String("secrets", "", "append the secrets of what is made to a `file`, a JSON object a line, instead of showing them")
	f.SortFlags = false
	cli.AddYes(cmd)
	return cmd
}

func (c *commands) apply(cmd *cobra.Command, _ []string) error {
	if err := cli.Need(cmd, "file"); err != nil {
		return err
	}
	name, _ := cmd.Flags().GetString("file")
	text, err := c.ReadInput(name, maxDeclared)
	if err != nil {
		return err
	}
	conf, _, err := c.loadConfig(cmd.Flags())
	if err != nil {
		return err
	}
	dry, _ := cmd.Flags().GetBool("dry-run")
	if dry {
		err = checkRows(conf)
	} else if !conf.Database.Shared() {
		err = datadir.Make(conf.Data)
	}
	if err != nil {
		return err
	}
	return c.open(cmd.Context(), conf, server.Options{}, func(a *app) error {
		return c.applyText(cmd, a, name, text, dry)
	})
}

// applyText shows what differs, and makes it so.
func (c *commands) applyText(cmd *cobra.Command, a *app, name string, text []byte, dry bool) error {
	ctx := cmd.Context()
	d := declared.New(declared.Config{Fabric: a.Fabric, IDP: a.IDP, Store: a.Store, Suggest: suggest.Meant})
	file, err := d.Parse(cli.InputName(name), text)
	if err != nil {
		return err
	}
	prune, _ := cmd.Flags().GetBool("prune")
	steps, err := d.Plan(ctx, file, prune)
	if err != nil {
		return err
	}
	out := &appliance{c: c, dry: dry, total: len(steps)}
	if dry || len(steps) == 0 {
		for _, s := range steps {
			out.show(declared.Done{Step: s})
		}
		if err := out.end(); err != nil || len(steps) == 0 {
			return err
		}
		return driftError{name, len(steps)}
	}
	if err := c.confirmRemovals(cmd, steps); err != nil {
		return err
	}
	return c.takeSteps(ctx, cmd, d, steps, out)
}

// confirmRemovals asks before something is gone for ever.
func (c *commands) confirmRemovals(cmd *cobra.Command, steps []declared.Step) error {
	var gone []string
	for _, s := range steps {
		if s.Action == declared.Delete {
			gone = append(gone, s.Kind+" "+s.Name)
		}
	}
	if gone == nil {
		return nil
	}
	return c.Ask(cmd, fmt.Sprintf("This removes %s.", strings.Join(gone, ", ")), `Type "remove" to go on: `, "remove")
}

// openSecrets opens a file to append secrets to, which nobody else may read.
func openSecrets(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch named, _ := os.Lstat(path); {
	case err != nil:
	case named == nil || !os.SameFile(info, named) || !info.Mode().IsRegular():
		err = fmt.Errorf("%s is no file of its own, but leads elsewhere", path)
	case info.Mode().Perm()&0o077 != 0:
		err = fmt.Errorf("others may read %s: chmod 600 %s, or name another file", path, path)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// takeSteps makes the changes and shows each as it is done.
func (c *commands) takeSteps(ctx context.Context, cmd *cobra.Command, d *declared.Declarer, steps []declared.Step, out *appliance) error {
	if path, _ := cmd.Flags().GetString("secrets"); path != "" {
		f, err := openSecrets(path)
		if err != nil {
			return fmt.Errorf("--secrets: %w; nothing was done", err)
		}
		defer f.Close()
		out.secrets = f
	}
	err := d.Apply(ctx, steps, func(s declared.Done) error {
		if err := out.keep(s); err != nil {
			return err
		}
		out.show(s)
		return out.err
	})
	if err != nil {
		return fmt.Errorf("%w\n%d of %d changes were made; what is left is made when it is applied again",
			err, out.done, len(steps))
	}
	return out.end()
}
