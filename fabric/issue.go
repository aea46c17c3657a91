package fabric

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/selvage/selvage/internal/password"
	"github.com/selvage/selvage/internal/problem"
)

// The default lifetimes of tokens, and the maximum lifetime that a caller may set for a token.
const (
	TokenLifetime = 2 * time.Hour
	MaxLifetime   = 30 * 24 * time.Hour

	refreshMargin   = 5 * time.Minute // how much longer a refresh token lives than its access token
	unboundLifetime = time.Minute     // lifetime of a SAT with RefreshingScope and no bound key
)

// RefreshingScope is the scope that lets the holder of a SAT exchange it for another SAT. The
// holder must prove possession of the key that the SAT is bound to.
const RefreshingScope = "sat:refresh"

// An Issuer is the requester of a token: a project or a subscriber. A project is represented by an
// API key, an OAuth client or an operator, and a subscriber by a SAT. When the issuer's credentials
// are revoked, the tokens that it has issued are revoked, too.
type Issuer struct {
	ProjectID string
	KeyID     string // the id of the API key, or of the operator who creates the token
	ClientID  string
	SAT       *Token
	Rights    *Rights // rights to pass on to API keys; nil means all rights
}

// token returns a token that is revoked together with its issuer.
func (i Issuer) token(kind TokenKind) Token {
	if i.SAT == nil {
		return Token{
			Kind:      kind,
			ProjectID: i.ProjectID,
			KeyID:     i.KeyID,
			ClientID:  i.ClientID,
			IssuerID:  i.ClientID,
		}
	}
	return Token{
		Kind:         kind,
		ProjectID:    i.ProjectID,
		SubscriberID: i.SAT.SubscriberID,
		SessionID:    i.SAT.SessionID,
		GrantID:      i.SAT.GrantID,
		ClientID:     i.SAT.ClientID,
		KeyID:        i.SAT.KeyID,
		IssuerID:     i.SAT.IssuerID,
		ParentID:     i.SAT.FamilyID,
		RootedAt:     i.SAT.root(),
	}
}

// A TokenPair holds an issued token and its refresh token.
type TokenPair struct {
	SubscriberID string
	Access       string
	Refresh      string // "" for invites
}

// A SubscriberTokenInput requests tokens for a subscriber.
type SubscriberTokenInput struct {
	Reference     string // identifies the subscriber; an unknown subscriber is created
	ExpireAt      *int64 // Unix seconds
	ApplicationID string // an OAuth client of the project
	Password      string // the new password; "" leaves it unchanged
	Fingerprint   string
	Scope         []string
	Ch            string
	Profile
}

// CheckSubscriber returns all errors in the input that can be found without the store.
func (ts *Tokens) CheckSubscriber(in SubscriberTokenInput) error {
	errs := []error{
		checkRequired("reference", in.Reference),
		in.Profile.check(),
		ts.checkExpiry("expire_at", in.ExpireAt),
		ts.checkPlace(in.Ch, in.Region),
	}
	if _, ok := canonical(in.ApplicationID); !ok && in.ApplicationID != "" {
		errs = append(errs, problem.BadParam("application_id", "application_id must be a UUID"))
	}
	if in.Password != "" {
		errs = append(errs, password.Check("password", in.Password))
	}
	if in.Fingerprint != "" && !isFingerprint(in.Fingerprint) {
		errs = append(errs, problem.BadParam(
			"fingerprint", "fingerprint must be 43 characters of base64url: a SHA-256 thumbprint (RFC 7638)"))
	}
	if slices.ContainsFunc(in.Scope, func(s string) bool { return s != RefreshingScope }) {
		errs = append(errs, problem.BadParam("scope", "scope must be %s", RefreshingScope))
	}

	return errors.Join(errs...)
}

// checkExpiry returns an error unless the expiry is missing or within the next thirty days.
func (ts *Tokens) checkExpiry(param string, at *int64) error {
	now := ts.now()
	switch {
	case at == nil:
		return nil
	case *at <= now.Unix():
		return problem.BadParam(param, "%s must be greater than %d", param, now.Unix())
	case *at > now.Add(MaxLifetime).Unix():
		return problem.BadParam(param,
			"%s must be at most %d, which is 30 days ahead", param, now.Add(MaxLifetime).Unix())
	}
	return nil
}

// region is the only region in the API's documentation; it has no effect here.
const region = "us-central"

// checkPlace returns an error for a host or region other than ours. Clients connect to the host in
// a token's header, so it must be our own host. Empty values are accepted, and so is our region in
// place of the host.
func (ts *Tokens) checkPlace(ch string, reg *string) error {
	var errs []error
	if ch != "" && ch != ts.c.Host && ch != region {
		errs = append(errs, problem.BadParam("ch", "ch must be %s", ts.c.Host))
	}
	if reg != nil && *reg != "" && *reg != region {
		errs = append(errs, problem.BadParam("region", "region must be %s", region))
	}
	return errors.Join(errs...)
}

// isFingerprint reports whether text has the form of a JWK thumbprint: 32 bytes in
// base64url.
func isFingerprint(text string) bool {
	return len(text) == 43 && !slices.ContainsFunc([]byte(text), func(c byte) bool {
		return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_')
	})
}

// IssueSubscriber returns a SAT and a refresh token for the subscriber with this reference. If the
// reference is unknown, it creates the subscriber. Otherwise, it updates the fields that differ
// from the input. A new password requires Management.
func (ts *Tokens) IssueSubscriber(
	ctx context.Context, by Issuer, in SubscriberTokenInput,
) (TokenPair, error) {
	if err := ts.CheckSubscriber(in); err != nil {
		return TokenPair{}, err
	}
	in.ApplicationID, _ = canonical(in.ApplicationID)
	if err := ts.checkApplication(ctx, by.ProjectID, in.ApplicationID); err != nil {
		return TokenPair{}, err
	}

	began := ts.now()
	s, err := ts.subscribers.findOrCreate(ctx, by, in)
	if err != nil {
		return TokenPair{}, err
	}
	if s.Disabled {
		return TokenPair{}, problem.BadParam("reference", "the subscriber is disabled")
	}

	t := by.token(SAT)
	t.SubscriberID = s.ID
	t.FamilyID = newID()
	t.Scope = in.Scope
	t.Binding = in.Fingerprint
	t.IssuedAt = issuedAfter(began, s.Updated)
	t.ExpiresAt = ts.expiry(in.ExpireAt)
	if in.ApplicationID != "" {
		t.ClientID = in.ApplicationID
	}
	return ts.issue(t)
}

// checkApplication returns an error for an application that does not belong to the project.
func (ts *Tokens) checkApplication(ctx context.Context, projectID, id string) error {
	if id == "" {
		return nil
	}
	_, err := ts.applications.recent(ctx, projectID, id)
	if errors.Is(err, problem.NotFound) {
		return &problem.Error{
			Kind:    problem.Invalid,
			Code:    "does_not_exist",
			Param:   "application_id",
			Message: "application_id does not exist in the project",
		}
	}
	return err
}

// issuedAfter returns the issue time for a token. This is usually began, the time when issuing
// began, so that later revocations apply to the token. If the subscriber has changed in the
// meantime, issuedAfter returns a time after this change. The reason is that IssueSubscriber may
// have made the change, which may revoke everything that was issued earlier.
func issuedAfter(began, change time.Time) time.Time {
	if began.After(change) {
		return began
	}
	return change.Add(time.Microsecond)
}

// expiry returns the requested expiry of a token, or the usual one if none is requested.
func (ts *Tokens) expiry(at *int64) time.Time {
	if at == nil {
		return ts.now().Add(TokenLifetime)
	}
	return time.Unix(*at, 0).UTC()
}

// issue seals a SAT or guest token and its refresh token. A SAT with RefreshingScope that is not
// bound to a key lives for at most unboundLifetime.
func (ts *Tokens) issue(t Token) (TokenPair, error) {
	refreshToken := t
	refreshToken.Kind = Refresh
	refreshToken.ExpiresAt = t.ExpiresAt.Add(refreshMargin)

	t.Generation = 0
	if slices.Contains(t.Scope, RefreshingScope) && t.Binding == "" {
		latest := t.IssuedAt.Add(unboundLifetime)
		if t.ExpiresAt.After(latest) {
			t.ExpiresAt = latest
		}
	}

	access, err := ts.Seal(t)
	if err != nil {
		return TokenPair{}, err
	}
	refresh, err := ts.Seal(refreshToken)
	if err != nil {
		return TokenPair{}, err
	}
	return TokenPair{SubscriberID: t.SubscriberID, Access: access, Refresh: refresh}, nil
}

// applications finds OAuth clients for the other parts.
type applications struct {
	*core
	store ApplicationStore
}

// An ApplicationStore finds OAuth clients; see [Stores].
type ApplicationStore interface {
	// FindApplication returns an OAuth client of the project.
	FindApplication(ctx context.Context, projectID, id string) (Application, error)
}

// An Application holds the fields of an OAuth client that this package uses.
type Application struct {
	ID     string
	Name   string
	Scopes []string
}

func (as *applications) find(ctx context.Context, projectID, id string) (Application, error) {
	id, ok := canonical(id)
	if !ok {
		return Application{}, problem.NoSuch("client")
	}
	return as.store.FindApplication(ctx, projectID, id)
}

// recent returns an OAuth client of a project. The result may be up to 300 ms old.
func (as *applications) recent(ctx context.Context, projectID, id string) (Application, error) {
	return as.caches.applications.Load(projectID+id, func() (Application, error) {
		return as.store.FindApplication(ctx, projectID, id)
	})
}
