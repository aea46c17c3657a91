package store

import (
	"context"
	"time"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// Upstreams holds the upstream providers of projects, and the links between accounts at these
// providers and subscribers.
type Upstreams struct{ *core }

var upstreamTable = table[idp.Upstream]{
	name:    "upstreams",
	thing:   "upstream provider",
	columns: `id, project_id, name, issuer, client_id, secret, settings, enabled, created, updated`,
	fields: func(u *idp.Upstream) []any {
		return []any{
			&u.ID, &u.ProjectID, &u.Name, &u.Issuer, &u.ClientID, &u.Secret,
			asJSON{v: &u.UpstreamSettings}, &u.Enabled, &u.Created, &u.Updated,
		}
	},
}

var upstreamLinkTable = table[idp.UpstreamLink]{
	name:    "upstream_links",
	thing:   "link",
	columns: `id, upstream_id, project_id, subscriber_id, issuer, subject, created`,
	fields: func(l *idp.UpstreamLink) []any {
		return []any{&l.ID, &l.UpstreamID, &l.ProjectID, &l.SubscriberID, &l.Issuer, &l.Subject, &l.Created}
	},
}

// CreateUpstream inserts an upstream provider, unless the project has a provider of the same name.
func (s *Upstreams) CreateUpstream(ctx context.Context, u idp.Upstream) error {
	e := audit.Of("upstream.created", u.ProjectID, "upstream", u.ID).With("name", u.Name, "issuer", u.Issuer)
	return s.change(ctx, e, func(t tx) error {
		return upstreamTable.insertNew(ctx, t, &u, "project", nameTaken())
	})
}

// FindUpstream finds an upstream provider by its project and id.
func (s *Upstreams) FindUpstream(ctx context.Context, projectID, id string) (idp.Upstream, error) {
	return upstreamTable.find(ctx, s.read(), `id = $2 AND project_id = $1`, projectID, id)
}

// ListUpstreams returns a page of a project's upstream providers whose names, issuers, client ids
// or ids contain each word of text. If text is "", all providers match.
func (s *Upstreams) ListUpstreams(
	ctx context.Context, projectID, text string, q page.Query,
) (page.Page[idp.Upstream], error) {
	l := upstreamTable.listing(q.From)
	l.where.and(`project_id = $%d`, projectID)
	l.checks = containing(`name || ' ' || issuer || ' ' || client_id || ' ' || id`, text)
	return l.page(ctx, s.read(), q)
}

// UpdateUpstream writes an upstream provider, unless it has changed since the caller read it. old
// is the time of the last change that the caller has seen.
func (s *Upstreams) UpdateUpstream(ctx context.Context, u idp.Upstream, old time.Time) error {
	settings, err := jsonText(u.UpstreamSettings)
	if err != nil {
		return err
	}

	e := audit.Of("upstream.updated", u.ProjectID, "upstream", u.ID).With("name", u.Name, "issuer", u.Issuer)
	return s.change(ctx, e, func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE upstreams SET name = $3, issuer = $4, client_id = $5, secret = $6,
				settings = $7, enabled = $8, updated = $9
			WHERE id = $1 AND updated = $2`,
			u.ID, micros(old), u.Name, u.Issuer, u.ClientID, u.Secret, settings, flag(u.Enabled), micros(u.Updated))
		if isUnique(err) {
			return nameTaken()
		}
		return requireUnchanged(res, err, "upstream provider")
	})
}

// DeleteUpstream deletes an upstream provider and its links.
func (s *Upstreams) DeleteUpstream(ctx context.Context, projectID, id string) error {
	return s.change(ctx, audit.Of("upstream.deleted", projectID, "upstream", id), func(t tx) error {
		var name string
		err := t.Row(ctx, `DELETE FROM upstreams WHERE id = $1 AND project_id = $2 RETURNING name`, id, projectID).
			Scan(&name)
		t.event.Add("name", name)
		return checkRow(err, "upstream provider")
	})
}

// FindUpstreamLink finds the link of an account at an upstream provider.
func (s *Upstreams) FindUpstreamLink(ctx context.Context, upstreamID, issuer, subject string) (
	idp.UpstreamLink, error,
) {
	return upstreamLinkTable.find(ctx, s.read(), `upstream_id = $1 AND issuer = $2 AND subject = $3`,
		upstreamID, issuer, subject)
}

// CreateUpstreamLink inserts a link, unless the account is linked already.
func (s *Upstreams) CreateUpstreamLink(ctx context.Context, l idp.UpstreamLink) error {
	e := audit.Of("upstream.linked", l.ProjectID, "subscriber", l.SubscriberID).
		By(audit.Subscriber, l.SubscriberID).With("upstream", l.UpstreamID)
	return s.change(ctx, e, func(t tx) error {
		return upstreamLinkTable.insertNew(ctx, t, &l, "upstream provider or subscriber",
			problem.New(problem.Conflict, "linked", "the account is linked already"))
	})
}
