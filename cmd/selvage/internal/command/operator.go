package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/suggest"
	"github.com/selvage/selvage/operator"
)

// operatorView shows an operator in tables, in detail and as JSON.
var operatorView = cli.View[operator.Operator]{
	ID: func(o operator.Operator) string { return o.ID },
	JSON: func(o operator.Operator) any {
		type role struct {
			Role      operator.Role `json:"role"`
			ProjectID string        `json:"project_id,omitempty"`
		}
		roles := make([]role, len(o.Roles))
		for i, m := range o.Roles {
			roles[i] = role{Role: m.Role, ProjectID: m.ProjectID}
		}

		return struct {
			ID          string   `json:"id"`
			Email       string   `json:"email"`
			Name        string   `json:"name,omitempty"`
			Roles       []role   `json:"roles"`
			HasPassword bool     `json:"has_password"`
			Disabled    bool     `json:"disabled"`
			CreatedAt   cli.Time `json:"created_at"`
			UpdatedAt   cli.Time `json:"updated_at"`
		}{
			ID:          o.ID,
			Email:       o.Email,
			Name:        o.Name,
			Roles:       roles,
			HasPassword: o.PasswordHash != "",
			Disabled:    o.Disabled,
			CreatedAt:   cli.UTC(o.Created),
			UpdatedAt:   cli.UTC(o.Updated),
		}
	},
	Facts: []cli.Fact[operator.Operator]{
		{Name: "ID", Value: func(o operator.Operator) string { return o.ID }},
		{Name: "Email", Value: func(o operator.Operator) string { return o.Email }},
		{Name: "Disabled", Value: func(o operator.Operator) string { return cli.YesOnly(o.Disabled) }},
		{Name: "Name", Value: func(o operator.Operator) string { return o.Name }},
		{Name: "Roles", Value: formatRoles},
		{
			Name:   "Password",
			Detail: true,
			Value:  func(o operator.Operator) string { return cli.YesNo(o.PasswordHash != "") },
		},
		{Name: "Created", Minor: true, Value: func(o operator.Operator) string { return cli.FormatTime(o.Created) }},
		{Name: "Updated", Detail: true, Value: func(o operator.Operator) string { return cli.FormatTime(o.Updated) }},
	},
}

// formatRoles formats roles in the form that --role accepts.
func formatRoles(o operator.Operator) string {
	var texts []string
	for _, membership := range o.Roles {
		text := string(membership.Role)
		if membership.ProjectID != "" {
			text += "@" + membership.ProjectID
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}

// operatorCommands builds the commands for operators and their invitations.
type operatorCommands struct{ *commands }

func (c operatorCommands) command() *cobra.Command {
	n := noun[operator.Operator]{
		commands: c.commands,
		view:     operatorView,
		find: func(ctx context.Context, a *app, _ *cobra.Command, id string) (operator.Operator, error) {
			return a.Operators.Find(ctx, id)
		},
		list: func(ctx context.Context, a *app, _ *cobra.Command) ([]operator.Operator, error) {
			return page.Every(ctx, a.Operators.List)
		},
	}

	create := n.command("create", "Create an operator", c.createOperator)
	addOperatorName(create)
	addOperatorEmail(create)
	addOperatorRoles(create)
	addPasswordStdin(create)

	ls := n.listCommand("list", "List operators")
	show := n.showCommand("show EMAIL", "Show an operator, by email or id")

	update := n.command("update EMAIL", "Update an operator: only the given flags change it",
		updateOperator)
	addOperatorName(update)
	addOperatorRoles(update)

	disable := n.command("disable EMAIL", "Disable an operator and end their sessions", disableOperator)
	enable := n.command("enable EMAIL", "Enable a disabled operator", enableOperator)

	reset := cli.Command("reset-password EMAIL",
		"Set an operator's password, typed or from stdin, or print a link to set it", c.with(c.resetPassword))
	addPasswordStdin(reset)
	reset.Flags().Bool("link", false, "print a link with which they set their password themselves")

	remove := n.deleteCommand("delete EMAIL", "Delete an operator",
		func(o operator.Operator) (what, name string) {
			return "This deletes the operator " + o.Email + ".", o.Email
		},
		c.deleteOperator)

	cmd := cli.Noun("operator", "Operators: the people who run this installation", create, ls, show, update,
		disable, enable, reset, remove)
	cmd.AddCommand(c.setupLinkCommand())
	cmd.AddCommand(c.invitationCommands()...)
	return cmd
}

func addOperatorName(cmd *cobra.Command) {
	cmd.Flags().String("name", "", "`name` of the operator")
}

func addOperatorEmail(cmd *cobra.Command) {
	cmd.Flags().String("email", "", "email `address` of the operator")
}

// addOperatorRoles adds the flag --role; see flagRoles.
func addOperatorRoles(cmd *cobra.Command) {
	cmd.Flags().StringSlice("role", nil, "`role`: owner, admin or viewer everywhere, or followed by @ and the id "+
		"of one project, such as viewer@ID; repeatable")
}

// addPasswordStdin adds the flag --password-stdin, which ReadPassword reads.
func addPasswordStdin(cmd *cobra.Command) {
	cmd.Flags().Bool("password-stdin", false, "read the password from stdin")
}

// flagRoles returns the roles of --role, or nil if the flag is not set.
func flagRoles(cmd *cobra.Command) ([]operator.Membership, error) {
	given := cli.Texts(cmd, "role")
	if given == nil {
		return nil, nil
	}

	// An empty --role returns an empty slice, which Operators.Update refuses. If it returned nil, the
	// update would leave the roles unchanged.
	roles := make([]operator.Membership, 0, len(*given))
	for _, text := range *given {
		name, projectID, _ := strings.Cut(text, "@")
		role, ok := operator.ParseRole(name)
		if !ok {
			return nil, cli.Usagef("--role: unknown role %q%s", name,
				suggest.MeantOr(name, []string{"owner", "admin", "viewer"}, "use owner, admin, viewer"))
		}
		roles = append(roles, operator.Membership{ProjectID: projectID, Role: role})
	}
	return roles, nil
}

func (c operatorCommands) createOperator(
	ctx context.Context, a *app, cmd *cobra.Command, _ []string,
) (operator.Operator, error) {
	if err := cli.Need(cmd, "email", "role"); err != nil {
		return operator.Operator{}, err
	}
	roles, err := flagRoles(cmd)
	if err != nil {
		return operator.Operator{}, err
	}

	password, err := c.ReadPassword(cmd, true /* prompt */)
	if err != nil {
		return operator.Operator{}, err
	}

	return a.Operators.Create(ctx, operator.Input{
		Email:    cli.Text(cmd, "email"),
		Name:     cli.Text(cmd, "name"),
		Roles:    roles,
		Password: password,
	})
}

// keepNoSession tells Operators.Update to end all sessions of an operator, if the change ends sessions.
// Elsewhere, the session in which the change is made is kept, but a command does not run in a session.
const keepNoSession = ""

func updateOperator(ctx context.Context, a *app, cmd *cobra.Command, args []string) (operator.Operator, error) {
	roles, err := flagRoles(cmd)
	if err != nil {
		return operator.Operator{}, err
	}
	return a.Operators.Update(ctx, args[0], operator.Input{
		Name:  cli.Text(cmd, "name"),
		Roles: roles,
	}, keepNoSession)
}

func disableOperator(ctx context.Context, a *app, _ *cobra.Command, args []string) (operator.Operator, error) {
	disabled := true
	return a.Operators.Update(ctx, args[0], operator.Input{Disabled: &disabled}, keepNoSession)
}

func enableOperator(ctx context.Context, a *app, _ *cobra.Command, args []string) (operator.Operator, error) {
	disabled := false
	return a.Operators.Update(ctx, args[0], operator.Input{Disabled: &disabled}, keepNoSession)
}

// resetPassword sets the password of an operator, or prints a link with which the operator sets it.
func (c operatorCommands) resetPassword(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	id := args[0]
	if link, _ := cmd.Flags().GetBool("link"); link {
		return c.recoverOperator(ctx, a, id)
	}

	// Report an unknown operator before the user types a password.
	_, err := a.Operators.Find(ctx, id)
	if err != nil {
		return err
	}
	password, err := c.ReadPassword(cmd, true /* prompt */)
	if err != nil {
		return err
	}
	if password == nil {
		return problem.Missing("password")
	}

	o, err := a.Operators.Update(ctx, id, operator.Input{Password: password}, keepNoSession)
	if err != nil {
		return err
	}
	return cli.Show(c.Env, operatorView, o)
}

// recoverOperator prints a link with which an operator sets a new password.
func (c operatorCommands) recoverOperator(ctx context.Context, a *app, id string) error {
	link, token, err := a.Operators.Recover(ctx, id, byCommandLine)
	if err != nil {
		return err
	}
	return cli.Show(c.Env, setupLinkView, setupLink{Link: link, url: a.SetupURL(token)})
}

func (c operatorCommands) deleteOperator(ctx context.Context, a *app, o operator.Operator) error {
	if err := a.Operators.Delete(ctx, o.ID); err != nil {
		return err
	}
	fmt.Fprintf(c.Stderr, "API keys they created stay valid: selvage audit list --actor %s --action api_key\n", o.ID)
	return nil
}
