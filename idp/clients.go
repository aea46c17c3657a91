package idp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/background"
	"github.com/selvage/selvage/internal/brand"
	"github.com/selvage/selvage/internal/cache"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// loginScopes are the OpenID Connect scopes that clients may ask for, in addition to the fabric
// scopes.
var loginScopes = []string{"openid", "profile", "email", "address", "phone", "offline_access"}

// defaultScopes are the scopes of a client that is registered without scopes.
var defaultScopes = []string{"openid", "profile", "email", "offline_access"}

// Scopes returns all scopes, in the order of the discovery document.
func Scopes() []string {
	all := slices.Clone(loginScopes)
	for _, s := range fabric.Scopes() {
		all = append(all, string(s))
	}
	return all
}

// A ClientStore stores clients.
type ClientStore interface {
	// CreateClient writes a client. While the client has a BackchannelLogoutURI, ending a login for
	// which it has a grant also queues a logout for the client, in the same transaction.
	CreateClient(ctx context.Context, c Client) error
	FindClient(ctx context.Context, id string) (Client, error)
	ListClients(ctx context.Context, projectID string, f ClientFilter, q page.Query) (page.Page[Client], error)
	// ReplaceClient writes the settings of a client and the given logos, but not its secret. If the
	// stored client was changed after the given time, ReplaceClient returns problem.Conflict.
	ReplaceClient(ctx context.Context, c Client, logos brand.Logos, since time.Time) error
	// SetClientSecret writes the secrets of a client. If the stored hash of the secret differs from
	// old, it returns problem.Conflict. If the caller has lost the rights in by, it returns
	// problem.Unauthenticated.
	SetClientSecret(ctx context.Context, c Client, old string, by *fabric.Rights) error
	// EndOldSecret deletes the previous secret of a client, if it has the given hash. If this secret
	// is not valid at the given time, it returns problem.Conflict.
	EndOldSecret(ctx context.Context, id, hash string, now time.Time) error
	// TouchOldSecret records that the old secret with this hash was used at the given time.
	TouchOldSecret(ctx context.Context, id, hash string, now time.Time) error
	// SetClientLogos sets logos of a client.
	SetClientLogos(ctx context.Context, id string, all brand.Logos, at time.Time) error
	// DeleteClient deletes a client and its grants, and revokes its tokens.
	DeleteClient(ctx context.Context, r revocation.Revocation) error
}

// Clients manages the registered apps.
type Clients struct {
	*core
	store  ClientStore
	recent *cache.Cache[Client]
	uses   background.Queue // uses of old secrets that have not been recorded yet
}

// Create registers a client. Empty settings get the defaults for its Type. Create sets the id, the
// secret and the times. It returns the secret of a confidential client, which cannot be read again.
func (cs *Clients) Create(ctx context.Context, c Client) (made Client, secret string, err error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Client{}, "", fmt.Errorf("creating client id: %w", err)
	}
	c.ID = id.String()
	c.SecretHash = ""
	c.Created = cs.Now()
	c.Updated = c.Created
	c.fill()

	if err := cs.checkSettings(ctx, &c); err != nil {
		return Client{}, "", err
	}
	if c.AuthMethod.bySecret() {
		secret, c.SecretHash = newSecret()
	}
	if err := cs.store.CreateClient(ctx, c); err != nil {
		return Client{}, "", err
	}
	return c, secret, nil
}

// Check returns an error that lists the problems with the settings of a new or changed client. It
// changes nothing.
func (cs *Clients) Check(ctx context.Context, c Client, isNew bool) error {
	if isNew {
		c.fill()
	}
	return cs.checkSettings(ctx, &c)
}

// Find returns a client, from a cache that is at most 300 ms old. If id does not have the form of a
// client's ID, Find returns problem.NotFound.
func (cs *Clients) Find(ctx context.Context, id string) (Client, error) {
	if len(id) > 64 || !utf8.ValidString(id) || strings.ContainsRune(id, 0) {
		return Client{}, problem.NoSuch("client")
	}
	return cs.recent.Load(id, func() (Client, error) { return cs.store.FindClient(ctx, id) })
}

// List returns a page of a project's clients, in the order in which they were created.
func (cs *Clients) List(ctx context.Context, projectID string, q page.Query) (page.Page[Client], error) {
	return cs.Search(ctx, projectID, ClientFilter{}, q)
}

// Update changes a client from was, which the caller has read, to now. Settings that are the same in
// both keep their stored values, which another caller may have changed in the meantime. Update also
// sets the given logos. It does not change the project or the secret.
func (cs *Clients) Update(ctx context.Context, was, now Client, logos brand.Logos) error {
	return cs.Rebrand(ctx, was.ID, logos, func(c *Client) { c.adopt(was, now) })
}

// Change applies change to the stored settings of a client. It does not use the cache, because
// saving cached settings could undo a concurrent change. It may call change more than once.
func (cs *Clients) Change(ctx context.Context, id string, change func(*Client)) error {
	return cs.Rebrand(ctx, id, nil, change)
}

// Rebrand is like Change, but also sets logos, which must come from [brand.MakeLogo].
func (cs *Clients) Rebrand(ctx context.Context, id string, logos brand.Logos, change func(*Client)) error {
	defer cs.recent.Drop(id)
	if len(logos) > 0 {
		defer cs.Fabric.Projects.ForgetLogos()
	}

	var err error
	for range updateTries {
		err = cs.tryChange(ctx, id, logos, change)
		if !errors.Is(err, problem.Conflict) {
			return err
		}
	}
	return err
}

// tryChange applies change to the stored settings of a client, and sets logos. If another caller has
// changed the client in the meantime, it returns problem.Conflict.
func (cs *Clients) tryChange(ctx context.Context, id string, logos brand.Logos, change func(*Client)) error {
	c, err := cs.store.FindClient(ctx, id)
	if err != nil {
		return err
	}

	read := c.Updated
	change(&c)
	if err := cs.checkSettings(ctx, &c); err != nil {
		return err
	}
	c.Updated = cs.updateTime(read)
	return cs.store.ReplaceClient(ctx, c, logos, read)
}

// Delete deletes a client. All nodes reject its tokens within a second.
func (cs *Clients) Delete(ctx context.Context, id string) error {
	defer cs.recent.Drop(id)
	if err := cs.store.DeleteClient(ctx, cs.revocationOf(revocation.Client, id)); err != nil {
		return err
	}
	return cs.Revocations.Sync(ctx)
}

// fill sets the defaults for the client's type.
func (c *Client) fill() {
	if c.Profile == "" {
		c.Profile = Default
	}
	if c.IDTokenAlg == "" {
		c.IDTokenAlg = c.Profile.idTokenAlg()
	}

	method := AuthNone
	grants := []string{GrantCode, GrantRefresh}
	scopes := defaultScopes
	token := FabricToken
	switch c.Type {
	case Web:
		method = AuthBasic
	case Service:
		method = AuthBasic
		grants = []string{GrantClientCredentials}
		scopes = nil
		token = JWTToken
	}
	if c.Profile == FAPI2 {
		method = AuthPrivateKeyJWT
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

// checkSettings returns an error that lists the problems with a client. If it finds none, it
// fetches the client's sector document and checks that, too. Like check, it also converts lists to
// canonical form.
func (cs *Clients) checkSettings(ctx context.Context, c *Client) error {
	err := errors.Join(
		c.check(),
		c.checkBrand(),
		c.checkACR(),
		cs.checkBackchannel(*c),
		cs.checkAddresses(*c),
	)
	if err != nil {
		return err
	}
	if c.SectorURI != "" {
		return cs.checkSector(ctx, *c)
	}
	return nil
}

// check returns an error that lists the problems that can be found in the settings alone, without
// other data or the network. It also converts the client's grants, response types and scopes to
// canonical form.
func (c *Client) check() error {
	var found problems
	oneOf(&found, "type", c.Type, SPA, Native, Web, Service)
	oneOf(&found, "profile", c.Profile, Default, MobileLegacy, FAPI2)
	oneOf(&found, "auth_method", c.AuthMethod, AuthMethods()...)
	oneOf(&found, "access_token", c.AccessToken, FabricToken, JWTToken)
	oneOf(&found, "id_token_alg", c.IDTokenAlg, c.tokenAlgorithms()...)
	c.checkGrants(&found)

	if utf8.RuneCountInString(c.Name) > 100 || !utf8.ValidString(c.Name) || strings.ContainsFunc(c.Name, isControl) {
		found.add("name", "a name must have at most 100 characters and no control characters")
	}
	c.checkResponseTypes(&found)

	if (c.May(GrantCode) || c.isImplicit()) && len(c.RedirectURIs) == 0 {
		found.add("redirect_uri", "a client that people sign in to needs a redirect URI")
	}
	if c.PKCEOptional && c.AuthMethod == AuthNone {
		found.add("pkce", "PKCE is optional only for a client that authenticates, with a secret or a key")
	}

	c.checkKeys(&found)
	c.checkCertificate(&found)
	c.checkObjects(&found)
	c.checkFAPI(&found)
	c.checkSubjects(&found)
	c.checkResources(&found)
	c.checkFrontchannel(&found)
	c.checkDescription(&found)
	if c.UserinfoAlg != "" {
		oneOf(&found, "userinfo_signed_response_alg", c.UserinfoAlg, c.tokenAlgorithms()...)
	}

	for _, uri := range c.RedirectURIs {
		c.checkURI(&found, "redirect_uri", uri)
	}
	for _, uri := range c.LogoutURIs {
		c.checkURI(&found, "post_logout_redirect_uri", uri)
	}

	scopes, unknown := canonicalScopes(c.Scopes)
	for _, s := range unknown {
		found.add("scope", "%q is not a scope; known are %s", s, strings.Join(Scopes(), ", "))
	}
	c.Scopes = scopes
	return found.err()
}

// checkGrants converts a client's grants to canonical form, and reports grants that the client
// cannot have.
func (c *Client) checkGrants(found *problems) {
	c.NormalizeGrants()
	for _, g := range c.Grants {
		switch g {
		case GrantCode, GrantRefresh, GrantDevice:
		case GrantClientCredentials:
			if c.AuthMethod == AuthNone {
				found.add("grant", "client_credentials needs a client that authenticates, with a secret or a key")
			}
		case GrantImplicit:
			found.add("grant", "implicit needs a response type with id_token or token")
		default:
			oneOf(found, "grant", g, GrantNames()...)
		}
	}
}

// oneOf adds a problem with a setting to found, unless its value is allowed.
func oneOf[T ~string](found *problems, param string, got T, allowed ...T) {
	if !slices.Contains(allowed, got) {
		found.add(param, "%q is not one of %s", string(got), strings.Trim(fmt.Sprint(allowed), "[]"))
	}
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }

// CanonicalScope returns a scope in canonical form. It returns an unknown scope unchanged.
func CanonicalScope(name string) string {
	if known, _ := canonicalScopes([]string{name}); len(known) == 1 {
		return known[0]
	}
	return name
}

// canonicalScopes returns scopes in canonical form, each once and in order. It returns unknown
// scopes separately. It ignores the case of fabric scopes.
func canonicalScopes(scopes []string) (known, unknown []string) {
	for _, scope := range scopes {
		canonical := scope
		if !slices.Contains(loginScopes, scope) {
			parsed, ok := fabric.ParseScope(scope)
			if !ok {
				unknown = append(unknown, scope)
				continue
			}
			canonical = string(parsed)
		}
		if !slices.Contains(known, canonical) {
			known = append(known, canonical)
		}
	}
	return known, unknown
}
