package server

import (
	"context"
	"errors"
	"net/url"
	"path/filepath"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
)

// setupFile holds the link for the first operator, for servers started without a terminal.
const setupFile = "setup-link.txt"

// owner is the membership of the first operator.
var owner = operator.Membership{Role: operator.Owner}

// inviteOwner creates a link for the first operator and writes it to a file. It returns "" if an
// operator or a link already exists, or if this node does not serve the dashboard.
func (a *App) inviteOwner(ctx context.Context) (link string, err error) {
	if !a.serves(config.Dashboard) {
		return "", nil
	}
	link, err = a.setupLink(ctx)
	if err != nil {
		return "", err
	}
	if link == "" {
		return "", nil
	}
	return link, datadir.Replace(filepath.Join(a.Config.Data, setupFile), []byte(link+"\n"), 0o600)
}

// setupLink creates the link for the first operator. It returns "" if an operator or a link already
// exists.
func (a *App) setupLink(ctx context.Context) (string, error) {
	_, token, err := a.Operators.First(ctx)
	if errors.Is(err, problem.Conflict) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return a.SetupURL(token), nil
}

// SetupURL returns the link for a setup token.
func (a *App) SetupURL(token string) string {
	return a.Where.Public + "/dashboard/setup?" + url.Values{"token": {token}}.Encode()
}

// bootstrap creates the owner that the configuration describes, and the API key if one is
// configured. It does nothing if an operator exists. It therefore creates the key first, so that the
// next start continues after an interruption. If several nodes start at the same time, only one of them
// creates the owner.
func (a *App) bootstrap(ctx context.Context) error {
	c := a.Config
	if c.BootstrapAdminEmail+c.BootstrapAdminPassword+c.BootstrapAdminAPIToken == "" {
		return nil
	}

	operators, err := a.Operators.List(ctx, page.Query{Size: 1})
	if err != nil {
		return err
	}
	if len(operators.Items) > 0 {
		return nil
	}

	if c.BootstrapAdminEmail == "" || c.BootstrapAdminPassword == "" { // a file that was emptied too early
		return errors.New("there is no operator yet, and bootstrap_admin_email or bootstrap_admin_password is empty: " +
			"set both")
	}
	if err := a.policy.Weak(ctx, "password", c.BootstrapAdminPassword, c.BootstrapAdminEmail); err != nil {
		return err // before anything is created
	}
	if c.BootstrapAdminAPIToken != "" {
		if err := a.adoptKey(ctx); err != nil {
			return err
		}
	}

	_, err = a.Operators.Create(ctx, operator.Input{
		Email:    &c.BootstrapAdminEmail,
		Password: &c.BootstrapAdminPassword,
		Roles:    []operator.Membership{owner},
	})
	if errors.Is(err, problem.Conflict) {
		return nil // another node created the owner first
	}
	return err
}

// adoptKey creates the configured API key, unless it exists. If adoptKey has created a project for the
// key, but another node has created the key first, adoptKey deletes this project.
func (a *App) adoptKey(ctx context.Context) error {
	p, made, err := a.firstProject(ctx)
	if err != nil {
		return err
	}
	name := "bootstrap"
	in := fabric.APIKeyInput{Name: &name, Scopes: fabric.Scopes()}
	err = a.Fabric.APIKeys.Adopt(ctx, p.ID, in, a.Config.BootstrapAdminAPIToken)
	if err != nil && !errors.Is(err, problem.Conflict) {
		return err
	}
	if !made {
		return nil
	}

	found, err := a.Fabric.APIKeys.List(ctx, p.ID, page.Query{Size: 1})
	if err != nil || len(found.Items) > 0 {
		return err
	}
	return a.Fabric.Projects.Delete(ctx, p.ID)
}

// firstProject returns the oldest project. If there is none, it creates one, and made is true.
func (a *App) firstProject(ctx context.Context) (p fabric.Project, made bool, err error) {
	found, err := a.Fabric.Projects.List(ctx, page.Query{Size: 1})
	if err != nil {
		return p, false, err
	}
	if len(found.Items) > 0 {
		return found.Items[0], false, nil
	}
	p, err = a.Fabric.Projects.Create(ctx, "Default")
	return p, true, err
}
