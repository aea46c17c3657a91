package command

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/suggest"
)

// A resource is a [fabric.Resource] together with its kind, which formats it.
type resource struct {
	fabric.Resource
	kind *kinds.Kind
}

var resourceView = cli.View[resource]{
	ID:   func(r resource) string { return r.ID },
	JSON: func(r resource) any { return fabric.Document(r.kind, r.Resource) },
	Facts: []cli.Fact[resource]{
		{Name: "ID", Value: func(r resource) string { return r.ID }},
		{Name: "Project", Detail: true, Value: func(r resource) string { return r.ProjectID }},
		{Name: "Kind", Value: func(r resource) string { return r.Type }},
		{Name: "Name", Value: func(r resource) string { return r.DisplayName }},
		{Name: "Created", Minor: true, Value: func(r resource) string { return cli.FormatTime(r.Created) }},
		{Name: "Updated", Detail: true, Value: func(r resource) string { return cli.FormatTime(r.Updated) }},
		{Name: "Fields", Detail: true, Value: func(r resource) string {
			text, _ := json.MarshalIndent(r.kind.Document(nil, r.Fields), "", "  ") // the fields come from stored JSON
			return string(text)
		}},
	},
}

func (c *commands) resourceCommand() *cobra.Command {
	n := noun[resource]{commands: c, view: resourceView, find: findResource, list: listResources}
	ls := n.listCommand("list", "List the resources of a project, without subscribers")
	ls.Flags().String("kind", "", "only resources of this `kind`, such as swml_script")
	show := n.showCommand("show ID", "Show a resource")
	create := n.command("create KIND FILE.json", "Create a resource from a JSON object; - is stdin", c.createResource)
	remove := n.deleteCommand("delete ID", "Delete a resource and its addresses",
		func(r resource) (what, name string) {
			return "This deletes the " + r.Type + " " + r.DisplayName + " and its addresses.", r.DisplayName
		},
		func(ctx context.Context, a *app, r resource) error {
			return a.Fabric.Resources.DeleteThing(ctx, r.ProjectID, r.ID)
		})
	password := c.passwordCommand()
	addProject(ls, show, create, remove, password)
	return cli.Noun("resource", "Resources: everything that has an address", ls, show, create, remove, password)
}

// kindNamed returns a kind by its type or path.
func (a *app) kindNamed(name string) (*kinds.Kind, error) {
	known := a.Fabric.Resources.Kinds()
	if k := known.ByType(name); k != nil {
		return k, nil
	}
	for _, path := range []string{name, name + "s"} {
		if k := known.ByPath(path); k != nil {
			return k, nil
		}
	}

	if name == "subscriber" || name == "subscribers" {
		return nil, cli.Usagef("subscribers have their own command: `selvage subscriber --help`")
	}
	var types []string
	for _, k := range known.All() {
		types = append(types, k.Type)
	}
	hint := suggest.MeantOr(name, types, "use "+strings.Join(types, ", "))
	return nil, cli.Usagef("unknown kind %q%s", name, hint)
}

func listResources(ctx context.Context, a *app, cmd *cobra.Command) ([]resource, error) {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return nil, err
	}
	wanted := ""
	if name, _ := cmd.Flags().GetString("kind"); name != "" {
		k, err := a.kindNamed(name)
		if err != nil {
			return nil, err
		}
		wanted = k.Type
	}

	found, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[fabric.Thing], error) {
		return a.Fabric.Resources.ListThings(ctx, p.ID, q)
	})
	if err != nil {
		return nil, err
	}
	var listed []resource
	for _, thing := range found {
		r := thing.Resource
		if r != nil && (wanted == "" || wanted == r.Type) {
			listed = append(listed, resource{*r, a.Fabric.Resources.KindOf(*r)})
		}
	}
	return listed, nil
}

func findResource(ctx context.Context, a *app, cmd *cobra.Command, id string) (resource, error) {
	t, err := searchProjects(ctx, a, cmd, func(projectID string) (fabric.Thing, error) {
		return a.Fabric.Resources.FindThing(ctx, projectID, id)
	})
	if err != nil {
		return resource{}, err
	}
	if t.Subscriber != nil {
		return resource{}, cli.NotFoundf("%s is a subscriber: see it with `selvage subscriber show`", id)
	}
	return resource{*t.Resource, a.Fabric.Resources.KindOf(*t.Resource)}, nil
}

// maxResource is the maximum size of a resource's file. The limit of the API is half as high.
const maxResource = 1 << 20

func (c *commands) createResource(ctx context.Context, a *app, cmd *cobra.Command, args []string) (resource, error) {
	k, err := a.kindNamed(args[0])
	if err != nil {
		return resource{}, err
	}

	object, err := c.readObject(args[1])
	if err != nil {
		return resource{}, err
	}

	p, err := a.project(ctx, cmd)
	if err != nil {
		return resource{}, err
	}

	created, err := a.Fabric.Resources.Create(ctx, p.ID, k, object)
	if err != nil {
		return resource{}, inFile(args[1], err)
	}
	return resource{created, k}, nil
}

// inFile adds the name of a file to err, because err names members of the file, not flags.
func inFile(name string, err error) error {
	var errs []error
	for _, p := range problem.All(err) {
		if p.Param == "" {
			return err
		}
		errs = append(errs, cli.Usagef("%s: %s", cli.InputName(name), p.Message))
	}
	if errs == nil {
		return err
	}
	return errors.Join(errs...)
}

// readObject reads a JSON object from a file or stdin.
func (c *commands) readObject(name string) (object map[string]json.RawMessage, err error) {
	text, err := c.ReadInput(name, maxResource)
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(text, &object)
	var other *json.UnmarshalTypeError
	if errors.As(err, &other) {
		return nil, cli.Usagef("%s needs a JSON object, but it contains a JSON %s", cli.InputName(name), other.Value)
	}
	if err != nil {
		return nil, cli.Usagef("%s needs a JSON object: %w", cli.InputName(name), err)
	}
	return object, nil
}
