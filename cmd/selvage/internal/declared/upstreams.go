package declared

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// An upstream is an upstream provider in a file. Files do not contain the secrets of providers.
type upstream struct {
	idp.Upstream
	Claims json.RawMessage
}

// upstreams describes upstream providers.
func (d *Declarer) upstreams() noun[upstream] {
	return noun[upstream]{
		kind: "upstream",
		by:   "name",
		fields: func(u *upstream) []field {
			return []field{
				{"name", &u.Name},
				{"issuer", &u.Issuer},
				{"client_id", &u.ClientID},
				{"scopes", &u.Scopes},
				{"claims", &u.Claims},
				{"sign_up", &u.SignUp},
				{"logout", &u.Logout},
				{"enabled", &u.Enabled},
			}
		},

		id:     func(u upstream) string { return u.ID },
		name:   func(u upstream) string { return u.Name },
		fresh:  func() upstream { return upstream{Upstream: idp.Upstream{Enabled: true}} },
		list:   d.listUpstreams,
		settle: (*upstream).settle,

		check: func(_ context.Context, u upstream, _ bool) error {
			return d.c.IDP.Upstreams.Check(idp.Upstream{}, u.input(upstream{}))
		},

		create: func(ctx context.Context, projectID string, u upstream) (made, error) {
			created, err := d.c.IDP.Upstreams.Create(ctx, projectID, u.input(upstream{}))
			if err != nil {
				return made{}, err
			}
			return made{id: created.ID}, nil
		},

		update: func(ctx context.Context, projectID string, old, u upstream) error {
			_, err := d.c.IDP.Upstreams.Update(ctx, projectID, u.ID, u.input(old))
			return err
		},

		remove: func(ctx context.Context, projectID string, u upstream) error {
			return d.c.IDP.Upstreams.Delete(ctx, projectID, u.ID)
		},
	}
}

// listUpstreams returns the upstream providers of a project.
func (d *Declarer) listUpstreams(ctx context.Context, projectID string) (all []upstream, err error) {
	found, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[idp.Upstream], error) {
		return d.c.IDP.Upstreams.List(ctx, projectID, q)
	})
	if err != nil {
		return nil, err
	}
	for _, provider := range found {
		u := upstream{Upstream: provider}
		if len(provider.Claims) > 0 {
			u.Claims, _ = json.Marshal(provider.Claims) // encoding a map of strings cannot fail
		}
		all = append(all, u)
	}
	return all, nil
}

// settle normalizes the claims to the form in which listUpstreams returns them.
func (u *upstream) settle() error {
	u.Upstream.Claims = nil
	if len(u.Claims) == 0 {
		return nil
	}
	if json.Unmarshal(u.Claims, &u.Upstream.Claims) != nil {
		return problem.BadParam("claims", "must name the claim of each field, such as {email: mail}")
	}
	u.Claims = nil
	if len(u.Upstream.Claims) > 0 {
		u.Claims, _ = json.Marshal(u.Upstream.Claims) // encoding a map of strings cannot fail
	}
	return nil
}

// input returns the changes from old to u, which must be settled.
func (u upstream) input(old upstream) idp.UpstreamInput {
	in := idp.UpstreamInput{
		Name:     changed(old.Name, u.Name),
		Issuer:   changed(old.Issuer, u.Issuer),
		ClientID: changed(old.ClientID, u.ClientID),
		SignUp:   changed(old.SignUp, u.SignUp),
		Logout:   changed(old.Logout, u.Logout),
		Enabled:  &u.Enabled,
	}
	if !slices.Equal(old.Scopes, u.Scopes) {
		in.Scopes = &u.Scopes
	}
	if string(old.Claims) != string(u.Claims) {
		in.Claims = &u.Upstream.Claims
	}
	return in
}
