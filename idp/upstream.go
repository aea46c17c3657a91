package idp

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/cache"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// An Upstream is another OpenID provider with which subscribers of a project can sign in.
type Upstream struct {
	ID, ProjectID string
	Name          string // label of the button on the sign-in page
	Issuer        string
	ClientID      string // client ID of this server at the provider
	Secret        string // sealed; "" for a public client
	Enabled       bool
	UpstreamSettings
	Created, Updated time.Time
}

// UpstreamSettings are the settings of an upstream provider that have defaults.
type UpstreamSettings struct {
	Scopes []string `json:"scopes,omitempty"` // empty means openid, email and profile
	// Claims maps fields of a subscriber (see UpstreamFields) to the provider's claims. A field
	// that is missing here uses its standard claim.
	Claims map[string]string `json:"claims,omitempty"`
	SignUp bool              `json:"sign_up,omitempty"` // whether to create accounts, if the project permits it
	Logout bool              `json:"logout,omitempty"`  // whether signing out here also signs out at the provider
}

// upstreamClaims maps each field of a subscriber that an upstream provider can set to its standard
// claim (OpenID Connect Core, section 5.1).
var upstreamClaims = map[string]string{
	"email":          "email",
	"email_verified": "email_verified",
	"first_name":     "given_name",
	"last_name":      "family_name",
}

// UpstreamFields returns the fields of a subscriber that an upstream provider can set.
func UpstreamFields() []string { return slices.Sorted(maps.Keys(upstreamClaims)) }

// CallbackPath is the beginning of the path to which upstream providers redirect after a login.
const CallbackPath = "/login/upstream/callback/"

// Callback returns the path to which the provider redirects after a login: [CallbackPath], followed
// by the issuer without its scheme and final slash. Each issuer has its own path, so that selvage
// never sends one provider's code to another provider (RFC 9700, section 4.4.2).
func (u Upstream) Callback() string {
	_, name, _ := strings.Cut(u.Issuer, "://")
	return CallbackPath + strings.TrimSuffix(name, "/")
}

// Claim returns the name of the provider's claim for a field of the subscriber.
func (s UpstreamSettings) Claim(field string) string {
	if name := s.Claims[field]; name != "" {
		return name
	}
	return upstreamClaims[field]
}

// AllScopes returns the scopes to request from the provider.
func (s UpstreamSettings) AllScopes() []string {
	if len(s.Scopes) == 0 {
		return []string{"openid", "email", "profile"}
	}
	return s.Scopes
}

// An UpstreamLink is an account at an upstream provider with which a subscriber signs in.
type UpstreamLink struct {
	ID, UpstreamID, ProjectID, SubscriberID string
	Issuer, Subject                         string // iss and sub of the account
	Created                                 time.Time
}

// An UpstreamStore stores upstream providers and their links.
type UpstreamStore interface {
	// CreateUpstream returns problem.Conflict if the project has a provider with the same name.
	CreateUpstream(ctx context.Context, u Upstream) error
	FindUpstream(ctx context.Context, projectID, id string) (Upstream, error)
	// ListUpstreams lists the providers that contain each word of text in their name, issuer, client
	// id or id.
	ListUpstreams(ctx context.Context, projectID, text string, q page.Query) (page.Page[Upstream], error)
	// UpdateUpstream writes an upstream provider. old is the Updated time that the caller has read.
	// UpdateUpstream returns problem.Conflict if the stored time differs, or if the project has
	// another provider with the same name.
	UpdateUpstream(ctx context.Context, u Upstream, old time.Time) error
	// DeleteUpstream deletes an upstream provider and its links.
	DeleteUpstream(ctx context.Context, projectID, id string) error

	// FindUpstreamLink finds the link of an account at a provider. A subject is unique only at its
	// issuer, and a provider's issuer can change.
	FindUpstreamLink(ctx context.Context, upstreamID, issuer, subject string) (UpstreamLink, error)
	// CreateUpstreamLink returns problem.Conflict if the account is linked already, and
	// problem.NotFound if the provider or the subscriber was deleted.
	CreateUpstreamLink(ctx context.Context, l UpstreamLink) error
}

// Upstreams manages upstream providers, and logins through them.
type Upstreams struct {
	*core
	store   UpstreamStore
	logins  *Logins
	offered *cache.Cache[[]Upstream] // enabled providers, by project ID
}

// An UpstreamInput holds the fields of an upstream provider to create or update. nil fields are
// left unchanged. A new provider is enabled unless the input says otherwise.
type UpstreamInput struct {
	Name, Issuer, ClientID *string
	Secret                 *string // "" removes the secret
	Enabled                *bool
	Scopes                 *[]string
	Claims                 *map[string]string // replaces all claims
	SignUp, Logout         *bool
}

// setGiven copies the value of an input field, unless the field is nil.
func setGiven[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

// apply writes the fields of an input, except the secret, into u.
func (in UpstreamInput) apply(u *Upstream) {
	setGiven(&u.Name, in.Name)
	setGiven(&u.Issuer, in.Issuer)
	setGiven(&u.ClientID, in.ClientID)
	setGiven(&u.Enabled, in.Enabled)
	setGiven(&u.Scopes, in.Scopes)
	setGiven(&u.Claims, in.Claims)
	setGiven(&u.SignUp, in.SignUp)
	setGiven(&u.Logout, in.Logout)
}

// Check returns an error that lists all problems with an input for an update of u. If u is the zero
// value, the input is for a new upstream provider.
func (us *Upstreams) Check(u Upstream, in UpstreamInput) error {
	oldIssuer := u.Issuer
	in.apply(&u)

	var found problems
	for param, value := range map[string]string{"name": u.Name, "issuer": u.Issuer, "client_id": u.ClientID} {
		if strings.TrimSpace(value) == "" {
			found = append(found, problem.Missing(param))
		}
	}

	if utf8.RuneCountInString(u.Name) > 60 || !utf8.ValidString(u.Name) || strings.ContainsFunc(u.Name, isControl) {
		found.add("name", "a name must have at most 60 characters and no control characters")
	}
	if len(u.ClientID) > 500 || !isASCII(u.ClientID) {
		found.add("client_id", "a client id must have at most 500 ASCII characters")
	}
	if in.Secret != nil && (len(*in.Secret) > 500 || !isASCII(*in.Secret)) {
		found.add("client_secret", "a secret must have at most 500 ASCII characters")
	}
	if u.Issuer != "" {
		found = append(found, us.checkIssuer(u.Issuer))
	}
	if u.Issuer != oldIssuer && u.Secret != "" && in.Secret == nil {
		// Otherwise an admin could make selvage send the stored secret to a server of their own.
		found.add("client_secret", "the secret must be sent again for another issuer")
	}
	found = append(found, u.checkSettings())
	return found.err()
}

// checkIssuer returns an error unless the provider's configuration can be fetched securely from the
// issuer, and each issuer has its own callback.
func (us *Upstreams) checkIssuer(issuer string) error {
	var found problems
	checkFetched(&found, "issuer", issuer)
	u, err := url.Parse(issuer)
	switch {
	case err != nil: // checkFetched has reported it
	case u.RawQuery != "" || u.Fragment != "":
		found.add("issuer", "%q must have no query and no fragment", issuer)
	case !isClean(u.EscapedPath()):
		found.add("issuer", "the path of %q must have no empty segments and no dots", issuer)
	}
	if issuer == us.Issuer {
		found.add("issuer", "the issuer must be another server")
	}
	if len(found) == 0 {
		return us.CheckURL("issuer", issuer)
	}
	return found.err()
}

// isClean reports whether a URL's path has no empty segments and no dot segments. It may end in a
// slash. The server redirects requests with other paths, so a callback's path cannot contain them.
func isClean(escaped string) bool {
	escaped = strings.TrimPrefix(strings.TrimSuffix(escaped, "/"), "/")
	return path.Clean("/"+escaped) == "/"+escaped
}

// checkSettings returns an error that lists all problems with scopes and claims.
func (s UpstreamSettings) checkSettings() error {
	var found problems

	for _, scope := range s.Scopes {
		if scope == "" || strings.ContainsAny(scope, " \"\\") || !isASCII(scope) || len(scope) > 200 {
			found.add("scopes", "%q is not a scope", scope)
		}
	}

	if len(s.Scopes) > 0 && !slices.Contains(s.Scopes, "openid") {
		found.add("scopes", "openid is missing")
	}
	if len(s.Scopes) > maxScopes {
		found.add("scopes", "there may be at most %d", maxScopes)
	}

	for field, claim := range s.Claims {
		if upstreamClaims[field] == "" {
			found.add("claims", "%q is not one of %s", field, strings.Join(UpstreamFields(), ", "))
		}
		if claim == "" || len(claim) > 200 || !utf8.ValidString(claim) || strings.ContainsFunc(claim, isControl) {
			found.add("claims", "the claim for %q must have 1 to 200 characters", field)
		}
	}
	return found.err()
}

// Create creates an upstream provider.
func (us *Upstreams) Create(ctx context.Context, projectID string, in UpstreamInput) (Upstream, error) {
	if err := us.Check(Upstream{}, in); err != nil {
		return Upstream{}, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return Upstream{}, fmt.Errorf("creating upstream id: %w", err)
	}

	u := Upstream{ID: id.String(), ProjectID: projectID, Enabled: true, Created: us.Now()}
	u.Updated = u.Created
	in.apply(&u)
	if err := us.seal(&u, in.Secret); err != nil {
		return Upstream{}, err
	}

	defer us.offered.Drop(projectID)
	if err := us.store.CreateUpstream(ctx, u); err != nil {
		return Upstream{}, err
	}
	return u, nil
}

// Find returns an upstream provider of a project.
func (us *Upstreams) Find(ctx context.Context, projectID, id string) (Upstream, error) {
	if _, err := uuid.Parse(id); err != nil {
		return Upstream{}, problem.NoSuch("upstream provider")
	}
	return us.store.FindUpstream(ctx, projectID, id)
}

// List returns a page of a project's upstream providers, in the order of creation.
func (us *Upstreams) List(ctx context.Context, projectID string, q page.Query) (page.Page[Upstream], error) {
	return us.store.ListUpstreams(ctx, projectID, "", q)
}

// Search returns a page of a project's upstream providers that contain each word of text in their
// name, issuer, client id or id.
func (us *Upstreams) Search(ctx context.Context, projectID, text string, q page.Query) (page.Page[Upstream], error) {
	return us.store.ListUpstreams(ctx, projectID, text, q)
}

// Update changes the fields of an upstream provider that the input sets.
func (us *Upstreams) Update(ctx context.Context, projectID, id string, in UpstreamInput) (u Upstream, err error) {
	defer us.offered.Drop(projectID)
	for range updateTries {
		u, err = us.tryUpdate(ctx, projectID, id, in)
		p := problem.First(err)
		changedMeanwhile := p != nil && p.Kind == problem.Conflict && p.Param == "" // otherwise a name is taken
		if !changedMeanwhile {
			return u, err
		}
	}
	return u, err
}

// tryUpdate applies an input to a stored upstream provider. If another caller has changed the
// provider in the meantime, it returns problem.Conflict.
func (us *Upstreams) tryUpdate(ctx context.Context, projectID, id string, in UpstreamInput) (Upstream, error) {
	u, err := us.Find(ctx, projectID, id)
	if err != nil {
		return Upstream{}, err
	}
	if err := us.Check(u, in); err != nil {
		return Upstream{}, err
	}

	read := u.Updated
	in.apply(&u)
	if err := us.seal(&u, in.Secret); err != nil {
		return Upstream{}, err
	}
	u.Updated = us.updateTime(read)
	if err := us.store.UpdateUpstream(ctx, u, read); err != nil {
		return Upstream{}, err
	}
	return u, nil
}

// Delete deletes an upstream provider and its links. Logins made with it continue.
func (us *Upstreams) Delete(ctx context.Context, projectID, id string) error {
	if _, err := us.Find(ctx, projectID, id); err != nil {
		return err
	}
	defer us.offered.Drop(projectID)
	return us.store.DeleteUpstream(ctx, projectID, id)
}

// maxOffered limits the upstream providers on the sign-in page: only a project's oldest maxOffered
// providers can appear on it, if they are enabled.
const maxOffered = 20

// Offered returns the upstream providers for the sign-in page: the enabled ones among the project's
// maxOffered oldest. The list comes from a cache.
func (us *Upstreams) Offered(ctx context.Context, projectID string) ([]Upstream, error) {
	return us.offered.Load(projectID, func() ([]Upstream, error) {
		oldest, err := us.store.ListUpstreams(ctx, projectID, "", page.Query{Size: maxOffered})
		if err != nil {
			return nil, fmt.Errorf("listing upstream providers: %w", err)
		}
		return slices.DeleteFunc(oldest.Items, func(u Upstream) bool { return !u.Enabled }), nil
	})
}
