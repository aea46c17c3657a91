package command

import (
	"context"
	"fmt"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/suggest"
	"github.com/selvage/selvage/operator"
	"github.com/spf13/cobra"
	"strings"
	"time"
)

var operatorView = cli.View[operator.Operator]{
	ID: func(o operator.Operator) string { return o.ID },
	JSON: func(o operator.Operator) any {
		type role struct {
			Role      operator.Role `json:"role"`
			ProjectID string        `json:"project_id,omitempty"`
		}
		roles := make([]role, len(o.Roles))
		for i, m := range o.Roles {
			roles[i] = role{m.Role, m.ProjectID}
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
		}{o.ID, o.Email, o.Name, roles, o.PasswordHash != "", o.Disabled, cli.UTC(o.Created), cli.UTC(o.Updated)}
	},
	Facts: []cli.Fact[operator.Operator]{
		{Name: "ID", Value: func(o operator.Operator) string { return o.ID }},
		{Name: "E-mail", Value: func(o operator.Operator) string { return o.Email }},
		{Name: "Disabled", Value: func(o operator.Operator) string {
			return cli.YesOnly(o.Disabled)
		}},
		{Name: "Name", Value: func(o operator.Operator) string { return o.Name }},
		{Name: "Roles", Value: rolesOf},
		{Name: "Password", Detail: true, Value: func(o operator.Operator) string {
			return cli.YesNo(o.PasswordHash != "")
		}},
		{Name: "Created", Minor: true, Value: func(o operator.Operator) string { return cli.FormatTime(o.Created) }},
		{Name: "Updated", Detail: true, Value: func(o operator.Operator) string { return cli.FormatTime(o.Updated) }},
	},
}

// rolesOf writes roles as --role takes them.
func rolesOf(o operator.Operator) string {
	var all []string
	for _, m := range o.Roles {
		text := string(m.Role)
		if m.ProjectID != "" {
			text += "@" + m.ProjectID
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

func (c *commands) operatorCommand() *cobra.Command {
	create := &cobra.Command{Use: "create", Short: "Make an operator", Args: cli.NoArguments,
		RunE: c.with(c.createOperator)}
	ls := &cobra.Command{Use: "list", Short: "List operators", Args: cli.NoArguments, RunE: c.with(c.listOperators)}
	show := cli.Command("show EMAIL", "Show an operator, by e-mail or id", c.with(c.showOperator))
	update := cli.Command("update EMAIL", "Change an operator's roles or name; what is not given stays", c.with(c.updateOperator))
	disable := cli.Command("disable EMAIL", "Lock an operator out and end their sessions", c.with(c.disableOperator))
	enable := cli.Command("enable EMAIL", "Let an operator in again", c.with(c.enableOperator))
	reset := cli.Command("reset-password EMAIL", "Set an operator's password, typed or from stdin, or print a link by which they do", c.with(c.resetOperator))
	setup := &cobra.Command{
		Use: "setup-link", Short: "Print a link that makes an operator: good once, for a day",
		Args: cli.NoArguments, RunE: c.with(c.printSetupLink),
	}
	invitations := &cobra.Command{Use: "invitations", Short: "List invitations that nobody has taken yet",
		Args: cli.NoArguments, RunE: c.with(c.listInvitations)}
	renew := cli.Command("renew ID", "Print another link for an invitation; the one before it ends", c.with(c.renewInvitation))
	withdraw := cli.Command("withdraw ID", "Withdraw an invitation: its link lets nobody in", c.with(c.withdrawInvitation))
	remove := cli.Command("delete EMAIL", "Delete an operator", c.with(c.deleteOperator))
	cli.AddYes(remove)
	for _, cmd := range []*cobra.Command{create, update} {
		cmd.Flags().String("name", "", "their `name`")
	}
	for _, cmd := range []*cobra.Command{create, setup} {
		cmd.Flags().String("email", "", "their e-mail `address`")
	}
	for _, cmd := range []*cobra.Command{create, update, setup} {
		cmd.Flags().StringSlice("role", nil,
			"a `role`: owner, admin or viewer everywhere, or in one project with its id behind, such as viewer@ID; any number")
	}
	for _, cmd := range []*cobra.Command{create, reset} {
		cmd.Flags().Bool("password-stdin", false, "read the password from stdin")
	}
	reset.Flags().Bool("link", false, "print a link by which they set their password themselves")
	return cli.Noun("operator", "Operators: who runs this installation", create, ls, show, update, disable,
		enable, reset, setup, invitations, renew, withdraw, remove)
}

// roles reads --role; nil where it was not given.
func roles(cmd *cobra.Command) ([]operator.Membership, error) {
	given, err := cmd.Flags().GetStringSlice("role")
	if err != nil || !cmd.Flags().Changed("role") {
		return nil, err
	}
	all := []operator.Membership{}
	for _, text := range given {
		name, project, _ := strings.Cut(text, "@")
		r, ok := operator.ParseRole(name)
		if !ok {
			return nil, cli.Usagef("--role: there is no role %q%s", name,
				suggest.MeantOr(name, []string{"owner", "admin", "viewer"}, "there are owner, admin, viewer"))
		}
		all = append(all, operator.Membership{ProjectID: project, Role: r})
	}
	return all, nil
}

func (c *commands) createOperator(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	if err := cli.Need(cmd, "email", "role"); err != nil {
		return err
	}
	in := operator.Input{Email: cli.Text(cmd, "email"), Name: cli.Text(cmd, "name")}
	var err error
	if in.Roles, err = roles(cmd); err != nil {
		return err
	}
	if in.Password, err = c.ReadPassword(cmd, true); err != nil {
		return err
	}
	o, err := a.Operators.Create(ctx, in)
	if err != nil {
		return err
	}
	return cli.Show(c.Env, operatorView, o)
}

func (c *commands) listOperators(ctx context.Context, a *app, _ *cobra.Command, _ []string) error {
	all, err := page.Every(ctx, a.Operators.List)
	if err != nil {
		return err
	}
	return cli.List(c.Env, operatorView, all)
}

func (c *commands) showOperator(ctx context.Context, a *app, _ *cobra.Command, args []string) error {
	o, err := a.Operators.Find(ctx, args[0])
	if err != nil {
		return err
	}
	return cli.Show(c.Env, operatorView, o)
}

func (c *commands) updateOperator(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	in := operator.Input{Name: cli.Text(cmd, "name")}
	var err error
	if in.Roles, err = roles(cmd); err != nil {
		return err
	}
	return c.changeOperator(ctx, a, args[0], in)
}

func (c *commands) changeOperator(ctx context.Context, a *app, name string, in operator.Input) error {
	o, err := a.Operators.Update(ctx, name, in, "")
	if err != nil {
		return err
	}
	return cli.Show(c.Env, operatorView, o)
}

func (c *commands) disableOperator(ctx context.Context, a *app, _ *cobra.Command, args []string) error {
	yes := true
	return c.changeOperator(ctx, a, args[0], operator.Input{Disabled: &yes})
}

func (c *commands) enableOperator(ctx context.Context, a *app, _ *cobra.Command, args []string) error {
	no := false
	return c.changeOperator(ctx, a, args[0], operator.Input{Disabled: &no})
}

func (c *commands) resetOperator(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	if link, _ := cmd.Flags().GetBool("link"); link {
		l, token, err := a.Operators.Recover(ctx, args[0], "")
		if err != nil {
			return err
		}
		return cli.Show(c.Env, setupLinks, setupLink{l, a.SetupURL(token)})
	}
	if _, err := a.Operators.Find(ctx, args[0]); err != nil {
		return err
	}
	secret, err := c.ReadPassword(cmd, true)
	if err != nil {
		return err
	}
	if secret == nil {
		return problem.Missing("password")
	}
	return c.changeOperator(ctx, a, args[0], operator.Input{Password: secret})
}

func (c *commands) deleteOperator(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	o, err := a.Operators.Find(ctx, args[0])
	if err != nil {
		return err
	}
	if err := c.Confirm(cmd, "This deletes the operator "+o.Email+".", o.Email); err != nil {
		return err
	}
	if err := a.Operators.Delete(ctx, o.ID); err != nil {
		return err
	}
	fmt.Fprintf(c.Stderr, "what they made stays good: selvage audit list --actor %s --action api_key\n", o.ID)
	return nil
}

// A setupLink is a link as it is printed.
type setupLink struct {
	operator.Link
	url string
}

var setupLinks = cli.View[setupLink]{
	ID: func(l setupLink) string { return l.url },
	JSON: func(l setupLink) any {
		return struct {
			URL       string    `json:"url"`
			Email     string    `json:"email,omitempty"`
			ExpiresAt time.Time `json:"expires_at"`
		}{l.url, l.Email, l.Expires}
	},
	Facts: []cli.Fact[setupLink]{
		{Name: "Link", Value: func(l setupLink) string { return l.url }},
		{Name: "For", Value: func(l setupLink) string { return l.Email }},
		{Name: "Good until", Value: func(l setupLink) string { return cli.FormatTime(l.Expires) + ", once" }},
	},
}

func (c *commands) printSetupLink(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	all, err := roles(cmd)
	if err != nil {
		return err
	}
	switch len(all) {
	case 0:
		all = []operator.Membership{{Role: operator.Owner}}
	case 1:
	default:
		return cli.Usagef("%s takes one --role: give it others with `selvage operator update`", cli.Name(cmd))
	}
	email := ""
	if given := cli.Text(cmd, "email"); given != nil {
		email = *given
	}
	l, token, err := a.Operators.Invite(ctx, email, all[0], "")
	if err != nil {
		return err
	}
	return cli.Show(c.Env, setupLinks, setupLink{l, a.SetupURL(token)})
}
