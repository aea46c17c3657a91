package idp

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/keys"
)

// The scopes of OpenID Connect that a client may ask beside those of the fabric.
var loginScopes = []string{"openid", "profile", "email", "address", "phone", "offline_access"}

// defaultScopes are those that a client may ask which is registered without any.
var defaultScopes = []string{"openid", "profile", "email", "offline_access"}

// Scopes lists every scope there is, as the discovery document prints them.
func Scopes() []string {
	all := slices.Clone(loginScopes)
	for _, s := range fabric.Scopes() {
		all = append(all, string(s))
	}
	return all
}

// CreateClient registers a client by its settings: empty ones take the defaults
// of the Type; the id, the secret and the times are made here. A confidential
// client's secret is given now and never again.
func (p *Provider) CreateClient(ctx context.Context, c Client) (made Client, secret string, err error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Client{}, "", fmt.Errorf("making client id: %w", err)
	}
	c.ID, c.SecretHash, c.Created = id.String(), "", p.Now()
	c.Updated = c.Created
	c.fill()
	if err := p.check(ctx, &c); err != nil {
		return Client{}, "", err
	}
	if c.AuthMethod.bySecret() {
		secret, c.SecretHash = newSecret()
	}
	return c, secret, p.Store.CreateClient(ctx, c)
}

// CheckClient reports everything that is wrong with the settings of a client that is to
// be registered, or changed, and changes nothing.
func (p *Provider) CheckClient(ctx context.Context, c Client, isNew bool) error {
	if isNew {
		c.fill()
	}
	return p.check(ctx, &c)
}

// FindClient finds a client, as it was within the last 300 ms. An id that cannot
// be one is not found either.
func (p *Provider) FindClient(ctx context.Context, id string) (Client, error) {
	if len(id) > 64 || !utf8.ValidString(id) || strings.ContainsRune(id, 0) {
		return Client{}, problem.NoSuch("client")
	}
	return p.clients.Load(id, func() (Client, error) { return p.Store.FindClient(ctx, id) })
}

// ListClients lists a project's clients in the order of creation.
func (p *Provider) ListClients(ctx context.Context, projectID string, q page.Query) (page.Page[Client], error) {
	return p.Store.ListClients(ctx, projectID, q)
}

// UpdateClient changes those of a client's settings in which now differs from was, a client as
// somebody has read it; the project and the secret stay, and so does what somebody else has
// changed since.
func (p *Provider) UpdateClient(ctx context.Context, was, now Client) error {
	return p.ChangeClient(ctx, was.ID, func(c *Client) { c.adopt(was, now) })
}

// ChangeClient changes some of a client's settings as they are now, not as they were within
// the last 300 ms: what somebody else takes from it meanwhile does not come back. The change
// may be made more than once.
func (p *Provider) ChangeClient(ctx context.Context, id string, change func(*Client)) error {
	defer p.clients.Drop(id)
	for tries := 1; ; tries++ {
		c, err := p.Store.FindClient(ctx, id)
		if err != nil {
			return err
		}
		before := c.Updated
		change(&c)
		if err := p.check(ctx, &c); err != nil {
			return err
		}
		if c.Updated = p.Now(); !c.Updated.After(before) {
			c.Updated = before.Add(time.Microsecond)
		}
		if err = p.Store.ReplaceClient(ctx, c, before); tries == 5 || !errors.Is(err, problem.Conflict) {
			return err
		}
	}
}

// DeleteClient removes a client; its tokens are dead everywhere within a second.
func (p *Provider) DeleteClient(ctx context.Context, id string) error {
	defer p.clients.Drop(id)
	if err := p.Store.DeleteClient(ctx, p.ending(revocation.Client, id)); err != nil {
		return err
	}
	return p.Revocations.Sync(ctx)
}

// fill sets the defaults of the type.
func (c *Client) fill() {
	if c.Profile == "" {
		c.Profile = Default
	}
	if c.IDTokenAlg == "" {
		c.IDTokenAlg = keys.RS256
	}
	method, grants, token := AuthNone, []string{GrantCode, GrantRefresh}, FabricToken
	scopes := defaultScopes
	switch c.Type {
	case Web:
		method = AuthBasic
	case Service:
		method, grants, scopes, token = AuthBasic, []string{GrantClientCredentials}, nil, JWTToken
	}
	if c.AuthMethod == "" {
		c.AuthMethod = method
	}
	if len(c.Grants) == 0 {
		c.Grants = grants
	}
	if len(c.Scopes) == 0 {
		c.Scopes = slices.Clone(scopes)
	}
	if c.AccessToken == "" {
		c.AccessToken = token
	}
}

// check gathers what is wrong with a client.
func (p *Provider) check(ctx context.Context, c *Client) error {
	err := errors.Join(c.check(), c.checkBrand(), c.checkACR(), p.checkBackchannel(*c), p.checkAddresses(*c))
	if err == nil && c.SectorURI != "" {
		err = p.checkSector(ctx, *c)
	}
	return err
}

// check gathers what is wrong with a client by itself, and writes its scopes as they are
// printed everywhere.
func (c *Client) check() error {
	var errs []error
	bad := func(param, format string, args ...any) { errs = append(errs, problem.BadParam(param, format, args...)) }
	oneOf(bad, "type", c.Type, SPA, Native, Web, Service)
	oneOf(bad, "profile", c.Profile, Default, MobileLegacy)
	oneOf(bad, "auth_method", c.AuthMethod, AuthNone, AuthBasic, AuthPost, AuthPrivateKeyJWT)
	oneOf(bad, "access_token", c.AccessToken, FabricToken, JWTToken)
	oneOf(bad, "id_token_alg", c.IDTokenAlg, keys.Algorithms()...)
	for _, g := range c.Grants {
		oneOf(bad, "grant", g, GrantCode, GrantRefresh, GrantClientCredentials, GrantDevice)
	}
	if utf8.RuneCountInString(c.Name) > 100 || !utf8.ValidString(c.Name) || strings.ContainsFunc(c.Name, isControl) {
		bad("name", "a name has at most 100 characters, none of them a control character")
	}
	for _, t := range c.ResponseTypes {
		oneOf(bad, "response_type", t, ResponseTypes()...)
	}
	if (c.May(GrantCode) || c.Answers(ResponseIDToken)) && len(c.RedirectURIs) == 0 {
		bad("redirect_uri", "a client that people sign in to needs a redirect URI")
	}
	if c.May(GrantClientCredentials) && c.AuthMethod == AuthNone {
		bad("grant", "client_credentials needs a client that proves itself, with a secret or a key")
	}
	if c.PKCEOptional && c.AuthMethod == AuthNone {
		bad("pkce", "PKCE is optional only for a client that proves itself, with a secret or a key")
	}
	c.checkKeys(bad)
	c.checkSubjects(bad)
	c.checkResources(bad)
	if c.UserinfoAlg != "" {
		oneOf(bad, "userinfo_signed_response_alg", c.UserinfoAlg, keys.Algorithms()...)
	}
	for _, uri := range c.RedirectURIs {
		c.checkURI(bad, "redirect_uri", uri)
	}
	for _, uri := range c.LogoutURIs {
		c.checkURI(bad, "post_logout_redirect_uri", uri)
	}
	scopes, unknown := canonicalScopes(c.Scopes)
	for _, s := range unknown {
		bad("scope", "%q is not a scope; there are %s", s, strings.Join(Scopes(), ", "))
	}
	c.Scopes = scopes
	return errors.Join(errs...)
}

func oneOf[T ~string](bad func(param, format string, args ...any), param string, got T, allowed ...T) {
	if !slices.Contains(allowed, got) {
		bad(param, "%q is not one of %s", string(got), strings.Trim(fmt.Sprint(allowed), "[]"))
	}
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }

// maxURI bounds an address of a client's.
const maxURI = 2000

// checkURI refuses what may not be registered: relative addresses, fragments
// (RFC 6749, section 3.1.2), what is no URI (RFC 3986, section 2), http beyond
// loopback, wildcards, and schemes that a browser would run.
func (c *Client) checkURI(bad func(param, format string, args ...any), param, uri string) {
	u, err := url.Parse(uri)
	switch {
	case err != nil || len(uri) > maxURI || !u.IsAbs() || strings.ContainsAny(uri, "#*\\ \t\r\n") ||
		u.User != nil || !isASCII(uri):
		bad(param, "%q is not an absolute address without fragment, wildcard, user or spaces", uri)
	case strings.ContainsAny(uri, "\"<>^`{|}"):
		bad(param, "%q has characters that a URI has only as %%XX, such as %%22 for a quote (RFC 3986, section 2)", uri)
	case u.Scheme == "https" && u.Host != "", u.Scheme == "http" && isLocal(u.Hostname()):
	case u.Scheme == "http":
		bad(param, "%q must be https; http is only for localhost, 127.0.0.1 and [::1]", uri)
	case c.Type != Native || !strings.Contains(u.Scheme, "."):
		bad(param, "%q must be https; a private scheme is only for native clients and is a domain name turned round, such as com.example.app (RFC 8252, section 7.1)", uri)
	}
}

func isLocal(host string) bool {
	return host == "localhost" || host == "127.0.0.1" || host == "::1" || strings.HasSuffix(host, ".localhost")
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 || isControl(r) })
}

// CanonicalScope writes a scope as it is printed everywhere, and what is none as it is.
func CanonicalScope(name string) string {
	if known, _ := canonicalScopes([]string{name}); len(known) == 1 {
		return known[0]
	}
	return name
}

// canonicalScopes writes scopes as they are printed everywhere, each once, in
// order, and sets apart those that do not exist. Fabric scopes are compared
// without case.
func canonicalScopes(scopes []string) (known, unknown []string) {
	for _, s := range scopes {
		name := s
		if !slices.Contains(loginScopes, s) {
			f, ok := fabric.ParseScope(s)
			if !ok {
				unknown = append(unknown, s)
				continue
			}
			name = string(f)
		}
		if !slices.Contains(known, name) {
			known = append(known, name)
		}
	}
	return known, unknown
}
