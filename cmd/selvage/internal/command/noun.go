package command

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// A noun builds the commands that most kinds of items have, such as list and delete. T is the type
// of the items that are printed.
type noun[T any] struct {
	*commands
	view  cli.View[T]
	media bool // whether the commands use the media of recordings

	// find returns the item that an argument names.
	find func(ctx context.Context, a *app, cmd *cobra.Command, id string) (T, error)

	// list returns all items that the flags select.
	list func(ctx context.Context, a *app, cmd *cobra.Command) ([]T, error)
}

// command returns a command that prints the item that do returns.
func (n noun[T]) command(
	use, short string,
	do func(ctx context.Context, a *app, cmd *cobra.Command, args []string) (T, error),
) *cobra.Command {
	show := func(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
		item, err := do(ctx, a, cmd, args)
		if err != nil {
			return err
		}
		return cli.Show(n.Env, n.view, item)
	}
	return cli.Command(use, short, n.run(show, n.media))
}

// projectCommand returns a command that calls do with the project of --project and prints the
// returned item. flags names the required flags.
func (n noun[T]) projectCommand(
	use, short string,
	flags []string,
	do func(ctx context.Context, a *app, cmd *cobra.Command, p fabric.Project) (T, error),
) *cobra.Command {
	return n.command(use, short,
		func(ctx context.Context, a *app, cmd *cobra.Command, _ []string) (item T, err error) {
			if err := cli.Need(cmd, flags...); err != nil {
				return item, err
			}
			p, err := a.project(ctx, cmd)
			if err != nil {
				return item, err
			}
			return do(ctx, a, cmd, p)
		})
}

// listCommand returns a command that prints all items selected by its flags.
func (n noun[T]) listCommand(use, short string) *cobra.Command {
	list := func(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
		items, err := n.list(ctx, a, cmd)
		if err != nil {
			return err
		}
		return cli.List(n.Env, n.view, items)
	}
	return cli.Command(use, short, n.run(list, n.media))
}

// showCommand returns a command that prints the item named by its argument.
func (n noun[T]) showCommand(use, short string) *cobra.Command {
	return n.command(use, short,
		func(ctx context.Context, a *app, cmd *cobra.Command, args []string) (T, error) {
			return n.find(ctx, a, cmd, args[0])
		})
}

// changeCommand returns a command that finds the item named by its first argument, calls do with it
// and prints the result.
func (n noun[T]) changeCommand(
	use, short string,
	do func(ctx context.Context, a *app, cmd *cobra.Command, item T) (T, error),
) *cobra.Command {
	return n.command(use, short,
		func(ctx context.Context, a *app, cmd *cobra.Command, args []string) (T, error) {
			item, err := n.find(ctx, a, cmd, args[0])
			if err != nil {
				return item, err
			}
			return do(ctx, a, cmd, item)
		})
}

// deleteCommand returns a command that deletes the item named by its argument. At a terminal, the
// user first reads the consequences and types the name of the item; see [cli.Env.Confirm].
func (n noun[T]) deleteCommand(
	use, short string,
	warn func(T) (what, name string),
	do func(ctx context.Context, a *app, item T) error,
) *cobra.Command {
	confirm := func(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
		item, err := n.find(ctx, a, cmd, args[0])
		if err != nil {
			return err
		}
		what, name := warn(item)
		if err := n.Confirm(cmd, what, name); err != nil {
			return err
		}
		return do(ctx, a, item)
	}
	cmd := cli.Command(use, short, n.run(confirm, n.media))
	cli.AddYes(cmd)
	return cmd
}

// addProject adds the flag --project to commands.
func addProject(cmds ...*cobra.Command) {
	for _, cmd := range cmds {
		cmd.Flags().String("project", "", cli.ProjectUsage)
	}
}

// project returns the project that --project names. Without the flag, it returns the only project.
func (a *app) project(ctx context.Context, cmd *cobra.Command) (fabric.Project, error) {
	if id, _ := cmd.Flags().GetString("project"); id != "" {
		p, err := a.Fabric.Projects.Find(ctx, id)
		if errors.Is(err, problem.NotFound) {
			return fabric.Project{}, cli.NotFoundf(
				"--project: no project has the id %q; `selvage project list` lists the ids", id)
		}
		return p, err
	}

	found, err := a.Fabric.Projects.List(ctx, page.Query{Size: 2})
	if err != nil {
		return fabric.Project{}, err
	}
	switch {
	case len(found.Items) == 0:
		return fabric.Project{}, cli.NotFoundf("no project yet; create one with `selvage project create NAME`")
	case len(found.Items) > 1:
		return fabric.Project{}, cli.Usagef(
			"%s needs --project: there are several; `selvage project list` shows them", cli.Name(cmd))
	}
	return found.Items[0], nil
}

// tryProjects calls do with the project that --project names. Without the flag, it tries one project
// after the other until do finds the item. This works because ids are unique across projects.
func tryProjects(ctx context.Context, a *app, cmd *cobra.Command, do func(projectID string) error) error {
	if cmd.Flags().Changed("project") {
		p, err := a.project(ctx, cmd)
		if err != nil {
			return err
		}
		return do(p.ID)
	}

	projects, err := page.Every(ctx, a.Fabric.Projects.List)
	if err != nil {
		return err
	}
	err = problem.NoSuch("project")
	for _, p := range projects {
		err = do(p.ID)
		if first := problem.First(err); first == nil || first.Kind != problem.NotFound {
			return err
		}
	}
	return err
}

// searchProjects returns the item that find finds in the project of --project or, without the flag, in the
// first project that has the item; see tryProjects.
func searchProjects[T any](
	ctx context.Context, a *app, cmd *cobra.Command, find func(projectID string) (T, error),
) (item T, err error) {
	err = tryProjects(ctx, a, cmd, func(projectID string) error {
		var err error
		item, err = find(projectID)
		return err
	})
	return item, err
}

// A finder finds an item in a project by its id.
type finder[T any] func(ctx context.Context, projectID, id string) (T, error)

// inAnyProject returns the find function of a noun whose items belong to projects; see tryProjects.
func inAnyProject[T any](find func(a *app) finder[T]) func(context.Context, *app, *cobra.Command, string) (T, error) {
	return func(ctx context.Context, a *app, cmd *cobra.Command, id string) (T, error) {
		return searchProjects(ctx, a, cmd, func(projectID string) (T, error) {
			return find(a)(ctx, projectID, id)
		})
	}
}

// A lister lists a page of the items of a project.
type lister[T any] func(ctx context.Context, projectID string, q page.Query) (page.Page[T], error)

// inProject returns the list function of a noun whose items belong to the project of --project.
func inProject[T any](list func(a *app) lister[T]) func(context.Context, *app, *cobra.Command) ([]T, error) {
	return func(ctx context.Context, a *app, cmd *cobra.Command) ([]T, error) {
		p, err := a.project(ctx, cmd)
		if err != nil {
			return nil, err
		}
		return page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[T], error) {
			return list(a)(ctx, p.ID, q)
		})
	}
}
