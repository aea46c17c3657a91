package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
	"github.com/selvage/selvage/cmd/selvage/internal/declared"
	"github.com/selvage/selvage/cmd/selvage/internal/server"
	"github.com/selvage/selvage/internal/suggest"
	"github.com/selvage/selvage/store"
)

var _ declared.Store = (*store.Store)(nil)

// maxApplied is the maximum size of a file to apply.
const maxApplied = 8 << 20

// A driftError reports that the state differs from a file.
type driftError struct {
	file  string
	steps int
}

func (e driftError) Error() string {
	return fmt.Sprintf("the state differs from %s in %s", cli.InputName(e.file), cli.Plural(e.steps, "place"))
}

// ExitStatus returns 2, which other tools also use to report a difference.
func (e driftError) ExitStatus() int { return 2 }

// applyCommands implements the command apply.
type applyCommands struct{ *commands }

func (c applyCommands) command() *cobra.Command {
	cmd := cli.Command("apply", "Create and update projects and their contents to match a file", c.apply)
	cmd.Use = "apply -f FILE"
	cmd.Args = cli.NoArguments
	cmd.Long = `Create, update and delete projects, keys, clients, subscribers, resources and webhooks until they match
a file.

The file is YAML or JSON; docs/apply.md has an example of everything. Differences are printed and
applied; everything the file does not mention is left unchanged. If a file is applied twice, the second
time changes nothing.

With --dry-run nothing is changed. The exit status is then 0 if nothing differs, 2 if something differs,
and 1 after an error.`
	f := cmd.Flags()
	f.StringP("file", "f", "", "the `file` to apply; - is stdin")
	f.Bool("dry-run", false, "only print differences; the exit status is 2 if there are any")
	f.Bool("prune", false, "also remove things an earlier apply created that are no longer in the file; "+
		"never projects or subscribers")
	f.String("secrets", "", "append the secrets of new things to a `file`, a JSON object a line, "+
		"instead of printing them")
	f.SortFlags = false
	cli.AddYes(cmd)
	return cmd
}

// apply reads a file and applies it. With --dry-run, the database must already exist.
func (c applyCommands) apply(cmd *cobra.Command, _ []string) error {
	if err := cli.Need(cmd, "file"); err != nil {
		return err
	}
	name, _ := cmd.Flags().GetString("file")
	text, err := c.ReadInput(name, maxApplied)
	if err != nil {
		return err
	}
	conf, _, err := c.loadConfig(cmd.Flags())
	if err != nil {
		return err
	}

	dry, _ := cmd.Flags().GetBool("dry-run")
	switch {
	case dry:
		err = checkRows(conf, false)
	case !conf.Database.Shared():
		err = datadir.Make(conf.Data)
	}
	if err != nil {
		return err
	}
	return c.open(cmd.Context(), conf, server.Options{}, func(a *app) error {
		return c.applyText(cmd, a, name, text, dry)
	})
}

// applyText parses a file, plans the steps and takes them. If dry is true, it only prints the steps.
func (c applyCommands) applyText(cmd *cobra.Command, a *app, name string, text []byte, dry bool) error {
	ctx := cmd.Context()
	d := declared.New(declared.Config{
		Fabric:  a.Fabric,
		IDP:     a.IDP,
		Store:   a.Store,
		Suggest: suggest.Meant,
		ReadFile: func(path string) ([]byte, error) {
			if !filepath.IsAbs(path) {
				path = filepath.Join(filepath.Dir(name), path) // name is "-" for stdin
			}
			return os.ReadFile(path)
		},
	})
	file, err := d.Parse(cli.InputName(name), text)
	if err != nil {
		return err
	}
	prune, _ := cmd.Flags().GetBool("prune")
	steps, err := d.Plan(ctx, file, prune)
	if err != nil {
		return err
	}

	out := &applyReport{
		c:      c.commands,
		dry:    dry,
		total:  len(steps),
		counts: make(map[declared.Action]int),
	}
	if dry || len(steps) == 0 {
		for _, s := range steps {
			out.add(declared.Done{Step: s})
		}
		if err := out.end(); err != nil {
			return err
		}
		if len(steps) == 0 {
			return nil
		}
		return driftError{name, len(steps)}
	}
	if err := c.confirmRemovals(cmd, steps); err != nil {
		return err
	}
	return takeSteps(ctx, cmd, d, steps, out)
}

// confirmRemovals asks before anything is deleted.
func (c applyCommands) confirmRemovals(cmd *cobra.Command, steps []declared.Step) error {
	var removed []string
	for _, s := range steps {
		if s.Action == declared.Delete {
			removed = append(removed, s.Kind+" "+s.Name)
		}
	}
	if removed == nil {
		return nil
	}
	what := fmt.Sprintf("This removes %s.", strings.Join(removed, ", "))
	return c.Ask(cmd, what, `Type "remove" to continue: `, "remove")
}

// takeSteps takes the steps and reports each one afterwards.
func takeSteps(
	ctx context.Context, cmd *cobra.Command, d *declared.Declarer, steps []declared.Step, out *applyReport,
) error {
	if path, _ := cmd.Flags().GetString("secrets"); path != "" {
		f, err := openSecrets(path)
		if err != nil {
			return fmt.Errorf("--secrets: %w; nothing was changed", err)
		}
		defer f.Close()
		out.secrets = f
	}

	err := d.Apply(ctx, steps, func(s declared.Done) error {
		err := out.saveSecret(s)
		if err != nil {
			out.secrets = nil // print this secret, because the file does not contain it
		}
		out.add(s)
		return errors.Join(err, out.err)
	})
	if err == nil {
		return out.end()
	}

	err = fmt.Errorf("%w\n%d of %d changes were made; apply the file again to make the others",
		err, out.done, len(steps))
	if out.c.Output != "json" {
		return err
	}
	return errors.Join(err, out.end()) // neither the completed steps nor their secrets are printed yet
}

// openSecrets opens a file to append secrets to. It must be a regular file that only its owner
// can read.
func openSecrets(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if err := checkSecrets(f, path); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// checkSecrets checks that f is the private file at path, and not the target of a link.
func checkSecrets(f *os.File, path string) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	named, _ := os.Lstat(path) // nil if the file was removed after it was opened
	if named == nil || !os.SameFile(info, named) || !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", path)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("others can read %s: run chmod 600 %s, or name another file", path, path)
	}
	return nil
}
