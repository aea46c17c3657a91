package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/suggest"
	"github.com/selvage/selvage/operator"
)

var operatorView = view[operator.Operator]{
	id: func(o operator.Operator) string { return o.ID },
	json: func(o operator.Operator) any {
		type role struct {
			Role      operator.Role `json:"role"`
			ProjectID string        `json:"project_id,omitempty"`
		}
		roles := make([]role, len(o.Roles))
		for i, m := range o.Roles {
			roles[i] = role{m.Role, m.ProjectID}
		}
		return struct {
			ID          string `json:"id"`
			Email       string `json:"email"`
			Name        string `json:"name,omitempty"`
			Roles       []role `json:"roles"`
			HasPassword bool   `json:"has_password"`
			Disabled    bool   `json:"disabled"`
			CreatedAt   moment `json:"created_at"`
			UpdatedAt   moment `json:"updated_at"`
		}{o.ID, o.Email, o.Name, roles, o.PasswordHash != "", o.Disabled, iso(o.Created), iso(o.Updated)}
	},
	facts: []fact[operator.Operator]{
		{name: "ID", value: func(o operator.Operator) string { return o.ID }},
		{name: "E-mail", value: func(o operator.Operator) string { return o.Email }},
		{name: "Disabled", value: func(o operator.Operator) string {
			return strings.TrimPrefix(yesNo(o.Disabled), "no")
		}},
		{name: "Name", value: func(o operator.Operator) string { return o.Name }},
		{name: "Roles", value: rolesOf},
		{name: "Password", detail: true, value: func(o operator.Operator) string {
			return yesNo(o.PasswordHash != "")
		}},
		{name: "Created", aside: true, value: func(o operator.Operator) string { return stamp(o.Created) }},
		{name: "Updated", detail: true, value: func(o operator.Operator) string { return stamp(o.Updated) }},
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

func (c *cli) operatorCommand() *cobra.Command {
	create := &cobra.Command{Use: "create", Short: "Make an operator", Args: positional(),
		RunE: c.with(c.createOperator)}
	ls := &cobra.Command{Use: "list", Short: "List operators", Args: positional(), RunE: c.with(c.listOperators)}
	show := &cobra.Command{Use: "show EMAIL", Short: "Show an operator, by e-mail or id",
		Args: positional("EMAIL"), RunE: c.with(c.showOperator)}
	update := &cobra.Command{Use: "update EMAIL",
		Short: "Change an operator's roles or name; what is not given stays", Args: positional("EMAIL"),
		RunE: c.with(c.updateOperator)}
	disable := &cobra.Command{Use: "disable EMAIL", Short: "Lock an operator out and end their sessions",
		Args: positional("EMAIL"), RunE: c.with(c.disableOperator)}
	enable := &cobra.Command{Use: "enable EMAIL", Short: "Let an operator in again",
		Args: positional("EMAIL"), RunE: c.with(c.enableOperator)}
	reset := &cobra.Command{
		Use: "reset-password EMAIL", Short: "Set an operator's password, typed or from stdin, or print a link by which they do", Args: positional("EMAIL"), RunE: c.with(c.resetOperator),
	}
	setup := &cobra.Command{
		Use: "setup-link", Short: "Print a link that makes an operator: good once, for a day",
		Args: positional(), RunE: c.with(c.printSetupLink),
	}
	invitations := &cobra.Command{Use: "invitations", Short: "List invitations that nobody has taken yet",
		Args: positional(), RunE: c.with(c.listInvitations)}
	renew := &cobra.Command{
		Use: "renew ID", Short: "Print another link for an invitation; the one before it ends",
		Args: positional("ID"), RunE: c.with(c.renewInvitation),
	}
	withdraw := &cobra.Command{Use: "withdraw ID", Short: "Withdraw an invitation: its link lets nobody in",
		Args: positional("ID"), RunE: c.with(c.withdrawInvitation)}
	remove := &cobra.Command{Use: "delete EMAIL", Short: "Delete an operator", Args: positional("EMAIL"),
		RunE: c.with(c.deleteOperator)}
	addYes(remove)
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
	return noun("operator", "Operators: who runs this installation", create, ls, show, update, disable,
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
			return nil, usagef("--role: there is no role %q%s", name,
				suggest.MeantOr(name, []string{"owner", "admin", "viewer"}, "there are owner, admin, viewer"))
		}
		all = append(all, operator.Membership{ProjectID: project, Role: r})
	}
	return all, nil
}

func (c *cli) createOperator(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	if err := need(cmd, "email", "role"); err != nil {
		return err
	}
	in := operator.Input{Email: text(cmd, "email"), Name: text(cmd, "name")}
	var err error
	if in.Roles, err = roles(cmd); err != nil {
		return err
	}
	if in.Password, err = c.password(cmd, true); err != nil {
		return err
	}
	o, err := a.Operators.Create(ctx, in)
	if err != nil {
		return err
	}
	return one(c, operatorView, o)
}

func (c *cli) listOperators(ctx context.Context, a *app, _ *cobra.Command, _ []string) error {
	all, err := page.Every(ctx, a.Operators.List)
	if err != nil {
		return err
	}
	return list(c, operatorView, all)
}

func (c *cli) showOperator(ctx context.Context, a *app, _ *cobra.Command, args []string) error {
	o, err := a.Operators.Find(ctx, args[0])
	if err != nil {
		return err
	}
	return one(c, operatorView, o)
}

func (c *cli) updateOperator(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	in := operator.Input{Name: text(cmd, "name")}
	var err error
	if in.Roles, err = roles(cmd); err != nil {
		return err
	}
	return c.changeOperator(ctx, a, args[0], in)
}

func (c *cli) changeOperator(ctx context.Context, a *app, name string, in operator.Input) error {
	o, err := a.Operators.Update(ctx, name, in, "")
	if err != nil {
		return err
	}
	return one(c, operatorView, o)
}

func (c *cli) disableOperator(ctx context.Context, a *app, _ *cobra.Command, args []string) error {
	yes := true
	return c.changeOperator(ctx, a, args[0], operator.Input{Disabled: &yes})
}

func (c *cli) enableOperator(ctx context.Context, a *app, _ *cobra.Command, args []string) error {
	no := false
	return c.changeOperator(ctx, a, args[0], operator.Input{Disabled: &no})
}

func (c *cli) resetOperator(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	if link, _ := cmd.Flags().GetBool("link"); link {
		l, token, err := a.Operators.Recover(ctx, args[0], "")
		if err != nil {
			return err
		}
		return one(c, setupLinks, setupLink{l, a.SetupURL(token)})
	}
	if _, err := a.Operators.Find(ctx, args[0]); err != nil {
		return err
	}
	secret, err := c.password(cmd, true)
	if err != nil {
		return err
	}
	if secret == nil {
		return problem.Missing("password")
	}
	return c.changeOperator(ctx, a, args[0], operator.Input{Password: secret})
}

func (c *cli) deleteOperator(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	o, err := a.Operators.Find(ctx, args[0])
	if err != nil {
		return err
	}
	if err := c.confirm(cmd, "This deletes the operator "+o.Email+".", o.Email); err != nil {
		return err
	}
	if err := a.Operators.Delete(ctx, o.ID); err != nil {
		return err
	}
	fmt.Fprintf(c.stderr, "what they made stays good: selvage audit list --actor %s --action api_key\n", o.ID)
	return nil
}

// A setupLink is a link as it is printed.
type setupLink struct {
	operator.Link
	url string
}

var setupLinks = view[setupLink]{
	id: func(l setupLink) string { return l.url },
	json: func(l setupLink) any {
		return struct {
			URL       string    `json:"url"`
			Email     string    `json:"email,omitempty"`
			ExpiresAt time.Time `json:"expires_at"`
		}{l.url, l.Email, l.Expires}
	},
	facts: []fact[setupLink]{
		{name: "Link", value: func(l setupLink) string { return l.url }},
		{name: "For", value: func(l setupLink) string { return l.Email }},
		{name: "Good until", value: func(l setupLink) string { return stamp(l.Expires) + ", once" }},
	},
}

func (c *cli) printSetupLink(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	all, err := roles(cmd)
	if err != nil {
		return err
	}
	switch len(all) {
	case 0:
		all = []operator.Membership{{Role: operator.Owner}}
	case 1:
	default:
		return usagef("%s takes one --role: give it others with `selvage operator update`", verb(cmd))
	}
	email := ""
	if given := text(cmd, "email"); given != nil {
		email = *given
	}
	l, token, err := a.Operators.Invite(ctx, email, all[0], "")
	if err != nil {
		return err
	}
	return one(c, setupLinks, setupLink{l, a.SetupURL(token)})
}
