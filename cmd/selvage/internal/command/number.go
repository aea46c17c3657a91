package command

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
)

var numberView = cli.View[fabric.PhoneNumber]{
	ID: func(n fabric.PhoneNumber) string { return n.ID },
	JSON: func(n fabric.PhoneNumber) any {
		return struct {
			ID         string   `json:"id"`
			ProjectID  string   `json:"project_id"`
			Number     string   `json:"number"`
			ResourceID string   `json:"calling_handler_resource_id,omitempty"`
			CreatedAt  cli.Time `json:"created_at"`
		}{
			ID:         n.ID,
			ProjectID:  n.ProjectID,
			Number:     n.Number,
			ResourceID: n.ResourceID,
			CreatedAt:  cli.UTC(n.Created),
		}
	},
	Facts: []cli.Fact[fabric.PhoneNumber]{
		{Name: "ID", Value: func(n fabric.PhoneNumber) string { return n.ID }},
		{Name: "Project", Detail: true, Value: func(n fabric.PhoneNumber) string { return n.ProjectID }},
		{Name: "Number", Value: func(n fabric.PhoneNumber) string { return n.Number }},
		{Name: "Calls go to", Value: func(n fabric.PhoneNumber) string { return n.ResourceID }},
		{Name: "Created", Minor: true, Value: func(n fabric.PhoneNumber) string { return cli.FormatTime(n.Created) }},
	},
}

func (c *commands) numberCommand() *cobra.Command {
	n := noun[fabric.PhoneNumber]{
		commands: c,
		view:     numberView,
		find:     inAnyProject(func(a *app) finder[fabric.PhoneNumber] { return a.Fabric.PhoneNumbers.Find }),
		list:     inProject(func(a *app) lister[fabric.PhoneNumber] { return a.Fabric.PhoneNumbers.List }),
	}
	create := n.command("create NUMBER", "Add a phone number at which SIP gateways deliver calls", createNumber)
	ls := n.listCommand("list", "List the phone numbers of a project")
	update := n.changeCommand("update ID", "Choose who takes the calls of a phone number", updateNumber)
	remove := n.deleteCommand("delete ID", "Remove a phone number; its calls are refused from then on",
		func(n fabric.PhoneNumber) (what, name string) {
			return "This removes the phone number " + n.Number + ". Its calls are refused from then on.", n.Number
		},
		func(ctx context.Context, a *app, n fabric.PhoneNumber) error {
			return a.Fabric.PhoneNumbers.Delete(ctx, n.ProjectID, n.ID)
		})
	for _, cmd := range []*cobra.Command{create, update} {
		cmd.Flags().String("to", "", "`id` of the resource or subscriber that takes the calls")
	}
	addProject(create, ls, update, remove)
	return cli.Noun("number", "Phone numbers: who takes the calls from SIP gateways", create, ls, update, remove)
}

// createNumber adds a phone number with the target that --to names.
func createNumber(ctx context.Context, a *app, cmd *cobra.Command, args []string) (n fabric.PhoneNumber, err error) {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return n, err
	}
	if to := cli.Text(cmd, "to"); to != nil { // check the target before the number is created
		if _, err := a.Fabric.Resources.FindThing(ctx, p.ID, *to); err != nil {
			return n, noTarget(*to, err)
		}
	}
	n, err = a.Fabric.PhoneNumbers.Create(ctx, p.ID, args[0])
	if err != nil {
		return n, err
	}
	return updateNumber(ctx, a, cmd, n)
}

func updateNumber(ctx context.Context, a *app, cmd *cobra.Command, n fabric.PhoneNumber) (fabric.PhoneNumber, error) {
	to := cli.Text(cmd, "to")
	if to == nil {
		return n, nil
	}
	if _, err := a.Fabric.Routes.AssignPhone(ctx, n.ProjectID, *to, n.ID, "calling"); err != nil {
		return n, noTarget(*to, err)
	}
	return a.Fabric.PhoneNumbers.Find(ctx, n.ProjectID, n.ID)
}

// noTarget replaces a NotFound error with one that names --to and the missing resource.
func noTarget(id string, err error) error {
	if errors.Is(err, problem.NotFound) {
		return cli.NotFoundf("--to: no resource or subscriber %s in the project", id)
	}
	return err
}
