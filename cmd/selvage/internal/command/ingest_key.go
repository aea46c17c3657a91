package command

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
)

// An ingestKey is an ingest key to print. The secret, and the URL that contains it, are known only
// for a new key.
type ingestKey struct {
	fabric.IngestKey
	secret string
	url    string
}

var ingestKeyView = cli.View[ingestKey]{
	ID:     func(k ingestKey) string { return k.ID },
	Secret: func(k ingestKey) string { return k.secret },
	JSON: func(k ingestKey) any {
		return struct {
			ID         string   `json:"id"`
			ProjectID  string   `json:"project_id"`
			Key        string   `json:"key,omitempty"`
			URL        string   `json:"url,omitempty"`
			Name       string   `json:"name,omitempty"`
			Prefix     string   `json:"prefix"`
			CreatedAt  cli.Time `json:"created_at"`
			ExpiresAt  cli.Time `json:"expires_at,omitempty"`
			LastUsedAt cli.Time `json:"last_used_at,omitempty"`
			RevokedAt  cli.Time `json:"revoked_at,omitempty"`
		}{
			ID:         k.ID,
			ProjectID:  k.ProjectID,
			Key:        k.secret,
			URL:        k.url,
			Name:       k.Name,
			Prefix:     k.Prefix,
			CreatedAt:  cli.UTC(k.Created),
			ExpiresAt:  cli.UTC(k.Expires),
			LastUsedAt: cli.UTC(k.LastUsed),
			RevokedAt:  cli.UTC(k.Revoked),
		}
	},
	Facts: []cli.Fact[ingestKey]{
		{Name: "ID", Value: func(k ingestKey) string { return k.ID }},
		{Name: "Project", Detail: true, Value: func(k ingestKey) string { return k.ProjectID }},
		{Name: "Name", Value: func(k ingestKey) string { return k.Name }},
		{Name: "Revoked", Value: func(k ingestKey) string { return cli.FormatTime(k.Revoked) }},
		{Name: "Expires", Value: func(k ingestKey) string { return formatExpiry(k.Expires) }},
		{Name: "Secret", Value: func(k ingestKey) string { return k.Prefix + "…" }},
		{Name: "Created", Minor: true, Value: func(k ingestKey) string { return cli.FormatTime(k.Created) }},
		{Name: "Last used", Minor: true, Value: func(k ingestKey) string { return cli.FormatTime(k.LastUsed) }},
		{Name: "URL", Detail: true, Value: func(k ingestKey) string { return cli.Once(k.url) }},
	},
}

func (c *commands) ingestKeyCommand() *cobra.Command {
	n := noun[ingestKey]{commands: c, view: ingestKeyView, list: listIngestKeys}
	create := n.projectCommand("create", "Create an ingest key; it is printed once", nil, createIngestKey)
	create.Flags().String("name", "", "`name` shown in lists")
	ls := n.listCommand("list", "List the ingest keys of a project")
	revoke := cli.Command("revoke ID", "Revoke an ingest key", c.with(revokeIngestKey))
	addProject(create, ls, revoke)
	return cli.Noun("ingest-key", "Ingest keys: how switches store recordings", create, ls, revoke)
}

func createIngestKey(ctx context.Context, a *app, cmd *cobra.Command, p fabric.Project) (ingestKey, error) {
	name, _ := cmd.Flags().GetString("name")
	k, secret, err := a.Fabric.IngestKeys.Create(ctx, p.ID, name, nil)
	if err != nil {
		return ingestKey{}, err
	}
	return ingestKey{IngestKey: k, secret: secret, url: a.Where.Public + "/ingest/" + secret + "/"}, nil
}

func listIngestKeys(ctx context.Context, a *app, cmd *cobra.Command) ([]ingestKey, error) {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return nil, err
	}
	found, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[fabric.IngestKey], error) {
		return a.Fabric.IngestKeys.List(ctx, p.ID, q)
	})
	if err != nil {
		return nil, err
	}

	keys := make([]ingestKey, len(found))
	for i, k := range found {
		keys[i] = ingestKey{IngestKey: k}
	}
	return keys, nil
}

func revokeIngestKey(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	return tryProjects(ctx, a, cmd, func(projectID string) error {
		return a.Fabric.IngestKeys.Revoke(ctx, projectID, args[0])
	})
}
