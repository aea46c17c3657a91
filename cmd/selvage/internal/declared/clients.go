package declared

import (
	"context"
	"errors"
	"slices"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// A client is an OAuth client as files describe it. Its members have the same names as in the
// output of `selvage client show -o json`.
type client struct {
	idp.Client
	PKCE string // "required" or "optional"
}

// clientFields maps the members of a client in files to its fields.
func clientFields(c *client) []field {
	return []field{
		{"name", &c.Name},
		{"type", &c.Type},
		{"profile", &c.Profile},
		{"auth_method", &c.AuthMethod},
		{"first_party", &c.FirstParty},
		{"pkce", &c.PKCE},
		{"redirect_uris", &c.RedirectURIs},
		{"post_logout_redirect_uris", &c.LogoutURIs},

		{"grants", &c.Grants},
		{"scopes", &c.Scopes},
		{"access_token", &c.AccessToken},
		{"id_token_alg", &c.IDTokenAlg},
		{"response_types", &c.ResponseTypes},
		{"jwks", &c.JWKS},
		{"jwks_uri", &c.JWKSURI},
		{"subject_type", &c.SubjectType},
		{"sector_identifier_uri", &c.SectorURI},
		{"userinfo_signed_response_alg", &c.UserinfoAlg},
		{"resources", &c.Resources},
		{"require_acr", &c.RequireACR},

		{"brand_color", &c.BrandColor},
		{"logo", &c.Logo},
		{"dark_logo", &c.DarkLogo},
		{"tos_uri", &c.TermsURI},
		{"policy_uri", &c.PolicyURI},

		{"require_pushed_authorization_requests", &c.RequirePushed},
		{"require_signed_request_object", &c.RequireObject},
		{"request_object_signing_alg", &c.RequestObjectAlg},
		{"request_uris", &c.RequestURIs},
		{"authorization_signed_response_alg", &c.ResponseAlg},
		{"dpop_bound_access_tokens", &c.DPoPBound},
		{"tls_client_certificate_bound_access_tokens", &c.CertificateBound},
		{"tls_client_auth_subject_dn", &c.CertificateSubject.DN},
		{"tls_client_auth_san_dns", &c.CertificateSubject.DNS},
		{"tls_client_auth_san_uri", &c.CertificateSubject.URI},
		{"tls_client_auth_san_ip", &c.CertificateSubject.IP},
		{"tls_client_auth_san_email", &c.CertificateSubject.Email},

		{"backchannel_logout_uri", &c.BackchannelLogoutURI},
		{"backchannel_logout_session_required", &c.BackchannelLogoutSession},
		{"initiate_login_uri", &c.InitiateLoginURI},
		{"frontchannel_logout_uri", &c.FrontchannelLogoutURI},
		{"frontchannel_logout_session_required", &c.FrontchannelLogoutSession},
	}
}

// clients describes clients. Their type cannot be changed.
func (d *Declarer) clients() noun[client] {
	return noun[client]{
		kind:   "client",
		by:     "name",
		fields: clientFields,
		id:     func(c client) string { return c.ID },
		name:   func(c client) string { return c.Name },
		fresh:  func() client { return client{PKCE: "required"} },
		list:   d.listClients,
		settle: (*client).settle,

		check: func(ctx context.Context, c client, isNew bool) error {
			if c.Type == "" {
				return problem.Missing("type")
			}
			return d.c.IDP.Clients.Check(ctx, c.Client, isNew)
		},

		create: func(ctx context.Context, projectID string, c client) (made, error) {
			c.ProjectID = projectID
			return d.createClient(ctx, c.Client)
		},

		update: func(ctx context.Context, _ string, old, c client) error {
			if c.Type != old.Type {
				return problem.BadParam("type",
					"a client's type %s cannot be changed; use another name to create a new client", old.Type)
			}
			logos := d.changedLogos(logoNames(old.Logo, old.DarkLogo), logoNames(c.Logo, c.DarkLogo))
			c.Logo, c.DarkLogo = old.Logo, old.DarkLogo // Update changes them with the parameter logos
			return d.c.IDP.Clients.Update(ctx, old.Client, c.Client, logos)
		},

		remove: func(ctx context.Context, _ string, c client) error {
			return d.c.IDP.Clients.Delete(ctx, c.ID)
		},
	}
}

// createClient creates a client with its logos.
func (d *Declarer) createClient(ctx context.Context, c idp.Client) (made, error) {
	logos := d.changedLogos(nil, logoNames(c.Logo, c.DarkLogo))
	c.Logo, c.DarkLogo = "", ""
	created, secret, err := d.c.IDP.Clients.Create(ctx, c)
	if err != nil {
		return made{}, err
	}
	if len(logos) > 0 {
		_, err := d.c.IDP.Clients.SetLogos(ctx, created.ID, logos)
		if err != nil { // create no client without its logo
			return made{}, errors.Join(err, d.c.IDP.Clients.Delete(ctx, created.ID))
		}
	}
	return made{id: created.ID, secret: secret}, nil
}

// listClients returns the clients of a project, except clients that registered themselves. Such a client
// chooses its own name, so it could pass for a client in the file.
func (d *Declarer) listClients(ctx context.Context, projectID string) (all []client, err error) {
	found, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[idp.Client], error) {
		return d.c.IDP.Clients.List(ctx, projectID, q)
	})
	if err != nil {
		return nil, err
	}
	for _, stored := range found {
		if stored.RegisteredBy != "" {
			continue
		}
		c := client{Client: stored, PKCE: "required"}
		if stored.PKCEOptional {
			c.PKCE = "optional"
		}
		all = append(all, c)
	}
	return all, nil
}

// settle normalizes PKCE, grants and scopes to the form in which they are stored.
func (c *client) settle() error {
	if c.PKCE != "required" && c.PKCE != "optional" {
		return problem.BadParam("pkce", "%q is neither required nor optional", c.PKCE)
	}
	c.PKCEOptional = c.PKCE == "optional"
	c.NormalizeGrants()
	c.Scopes = slices.Clone(c.Scopes)
	for i, s := range c.Scopes {
		c.Scopes[i] = idp.CanonicalScope(s)
	}
	return nil
}
