package idp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// UpstreamMethod is the AMR value of logins with an upstream provider.
const UpstreamMethod = "fed"

// An UpstreamAttempt is a login that a browser has begun at an upstream provider. The session store
// keeps it under the attempt's state.
type UpstreamAttempt struct {
	State      string `json:"-"`
	RequestID  string `json:"request"` // authorization request that the login answers
	ProjectID  string `json:"project"`
	UpstreamID string `json:"upstream"`
	Nonce      string `json:"nonce"`
	Verifier   string `json:"verifier"` // RFC 7636

	Began  time.Time `json:"began"`
	MaxAge *int64    `json:"max_age,omitempty"` // maximum time between the sign-in and Began, in seconds
}

// Accepts reports whether the attempt's MaxAge permits a sign-in to the provider at the given time.
func (a UpstreamAttempt) Accepts(at time.Time) bool {
	return a.MaxAge == nil || !at.Before(a.Began.Add(-skew-time.Duration(*a.MaxAge)*time.Second))
}

// IsFresh reports whether the person signed in to the provider during the attempt. at is the time
// of the sign-in, or zero if the provider does not report it. In that case, selvage trusts the
// provider to sign the person in if the request demanded it.
func (a UpstreamAttempt) IsFresh(at time.Time) bool {
	if at.IsZero() {
		return a.MaxAge != nil && *a.MaxAge == 0
	}
	return !at.Before(a.Began.Add(-skew))
}

func attemptKey(state string) session.Key {
	return session.Key{Kind: "upstream", ID: session.Digest(state)}
}

// Begin begins an attempt to sign in with u, in order to answer a request.
func (us *Upstreams) Begin(ctx context.Context, u Upstream, req AuthRequest) (UpstreamAttempt, error) {
	a := UpstreamAttempt{
		State:      randomToken(),
		RequestID:  req.ID,
		ProjectID:  u.ProjectID,
		UpstreamID: u.ID,
		Nonce:      randomToken(),
		Verifier:   randomToken(),
		Began:      us.Now(),
		MaxAge:     req.MaxAge,
	}
	if req.Has("login") {
		a.MaxAge = new(int64)
	}
	value, err := json.Marshal(a)
	if err != nil {
		return a, err
	}
	return a, us.Sessions.Put(ctx, attemptKey(a.State), value, us.Lifetimes().Request)
}

// Take removes and returns the attempt with the given state. If there is no such attempt, it
// returns problem.NotFound.
func (us *Upstreams) Take(ctx context.Context, state string) (a UpstreamAttempt, err error) {
	if len(state) != tokenLength {
		return a, problem.NoSuch("attempt")
	}
	value, err := us.Sessions.Take(ctx, attemptKey(state))
	if err != nil {
		return a, err
	}
	a.State = state
	return a, json.Unmarshal(value, &a)
}

// An Identity is an account at an upstream provider, as the provider describes it.
type Identity struct {
	UpstreamID string `json:"upstream"`
	Issuer     string `json:"iss"`
	Subject    string `json:"sub"`
	Email      string `json:"email,omitempty"`
	Verified   bool   `json:"verified,omitempty"` // whether the provider says that Email belongs to the person
	FirstName  string `json:"first_name,omitempty"`
	LastName   string `json:"last_name,omitempty"`

	Fresh    bool      `json:"-"` // whether the person signed in to the provider during the attempt
	SignedIn time.Time `json:"-"` // time of the sign-in to the provider; zero if not reported
}

// IdentityOf returns the identity in the claims of an upstream provider.
func (u Upstream) IdentityOf(subject string, claims map[string]any) Identity {
	text := func(field string) string {
		value, _ := claims[u.Claim(field)].(string)
		return truncate(value, 320)
	}
	person := func(field string) string {
		if name := text(field); fabric.CheckPersonName(field, name) == nil {
			return name
		}
		return ""
	}
	verified := claims[u.Claim("email_verified")]
	return Identity{
		UpstreamID: u.ID,
		Issuer:     u.Issuer,
		Subject:    subject,
		Email:      fabric.NormalizeEmail(text("email")),
		Verified:   verified == true || verified == "true",
		FirstName:  person("first_name"),
		LastName:   person("last_name"),
	}
}

// The sign-in page shows these errors for a refused login with an upstream provider. The audit
// trail records their codes.
var (
	// ErrUpstreamUnknown is the error for an identity whose account here is disabled, or that has
	// no account here and may not get one.
	ErrUpstreamUnknown = problem.New(problem.Forbidden, "upstream_unknown", "no account has this identity")
	// ErrUpstreamEmail is the error for an email address that the provider does not confirm.
	ErrUpstreamEmail = problem.New(problem.Forbidden, "upstream_email", "the provider does not confirm an email")
)

// Unlinked is the error for an identity that is not linked to the selvage account with the same
// email address. The person must sign in to the account first, and then agree to the link.
type Unlinked struct{ Identity Identity }

func (u *Unlinked) Error() string { return "the account is not linked" }

// LogIn signs in the person whose identity an upstream provider has just confirmed:
//
//   - If the identity is linked to a subscriber, it creates a login. If the subscriber has a second
//     factor, it returns [Unfinished].
//   - If it is not linked, but a subscriber has the identity's email, it returns [Unlinked].
//   - Otherwise it creates a subscriber and a login. If u or the project does not permit that, it
//     returns [ErrUpstreamUnknown].
//
// If the identity is not linked and the provider has not verified its email, LogIn returns
// [ErrUpstreamEmail]. If the subscriber is disabled, it returns [ErrUpstreamUnknown].
func (us *Upstreams) LogIn(ctx context.Context, u Upstream, id Identity, from Visitor) (Login, error) {
	began := us.Now()
	if !id.Fresh {
		from.silent, from.signedIn = true, id.SignedIn
	}
	l, err := us.store.FindUpstreamLink(ctx, u.ID, id.Issuer, id.Subject)
	if errors.Is(err, problem.NotFound) {
		return us.logInUnlinked(ctx, u, id, from)
	}
	if err != nil {
		return Login{}, fmt.Errorf("finding link: %w", err)
	}

	sub, err := us.Subscribers.FindSubscriber(ctx, u.ProjectID, l.SubscriberID)
	if err != nil {
		return Login{}, fmt.Errorf("finding subscriber: %w", err)
	}
	if sub.Disabled {
		return Login{}, us.refuse(ctx, u, sub.ID, ErrUpstreamUnknown)
	}
	return us.begin(ctx, sub, began, from)
}

// begin creates the login of a subscriber. If a second factor is needed, it returns [Unfinished].
func (us *Upstreams) begin(ctx context.Context, sub fabric.Subscriber, began time.Time, from Visitor) (Login, error) {
	set, err := us.logins.FactorsOf(ctx, sub.ID)
	if err != nil {
		return Login{}, err
	}
	amr := []string{UpstreamMethod}
	if set.Any() {
		return Login{}, &Unfinished{Proof{
			SubscriberID: sub.ID,
			AMR:          amr,
			Began:        began,
			Password:     session.Digest(sub.PasswordHash),
		}}
	}
	return us.logins.enter(ctx, sub, began, amr, from)
}

// logInUnlinked handles an identity that is not linked to a subscriber.
func (us *Upstreams) logInUnlinked(ctx context.Context, u Upstream, id Identity, from Visitor) (Login, error) {
	if id.Email == "" || !id.Verified || fabric.CheckEmail("email", id.Email) != nil {
		return Login{}, us.refuse(ctx, u, "", ErrUpstreamEmail)
	}
	existing, err := us.Subscribers.FindSubscriberByEmail(ctx, u.ProjectID, id.Email)
	if err != nil && !errors.Is(err, problem.NotFound) {
		return Login{}, fmt.Errorf("finding subscriber: %w", err)
	}
	if err == nil {
		if existing.Disabled {
			return Login{}, us.refuse(ctx, u, existing.ID, ErrUpstreamUnknown)
		}
		return Login{}, &Unlinked{id}
	}

	open, err := us.MayRegister(ctx, u.ProjectID)
	if err != nil {
		return Login{}, err
	}
	if !open || !u.SignUp {
		return Login{}, us.refuse(ctx, u, "", ErrUpstreamUnknown)
	}
	return us.register(ctx, u, id, from)
}

// register creates a subscriber for an identity, and the subscriber's first login. It continues if the browser
// disconnects, and deletes the subscriber if the link cannot be stored. Otherwise, a subscriber without
// a link could remain, and nobody could sign in as this subscriber.
func (us *Upstreams) register(ctx context.Context, u Upstream, id Identity, from Visitor) (Login, error) {
	if err := us.Limits.TakeNetwork(ctx, limit.RegisterPerNetwork, from.Network); err != nil {
		return Login{}, err
	}
	ctx = context.WithoutCancel(ctx)
	verified := true
	sub, err := us.Fabric.Subscribers.Create(ctx, u.ProjectID, fabric.SubscriberInput{
		Email:    &id.Email,
		Verified: &verified,
		Profile:  fabric.Profile{FirstName: &id.FirstName, LastName: &id.LastName},
	})
	if errors.Is(err, problem.Conflict) { // somebody has created an account with this email in the meantime
		return Login{}, &Unlinked{id}
	}
	if err != nil {
		return Login{}, err
	}

	if err := us.link(ctx, u, id, sub.ID); err != nil { // the person can then try again
		return Login{}, errors.Join(err, us.Fabric.Subscribers.Delete(ctx, u.ProjectID, sub.ID))
	}
	us.Observe("registered")
	from.known = true
	return us.begin(ctx, sub, us.Now(), from)
}

// Link links an identity to the subscriber of a login. The subscriber must have agreed. If the
// provider has not verified the subscriber's email for the identity, Link returns problem.Conflict.
func (us *Upstreams) Link(ctx context.Context, u Upstream, id Identity, s Login) error {
	sub, err := us.Subscribers.FindSubscriber(ctx, u.ProjectID, s.SubscriberID)
	if err != nil {
		return fmt.Errorf("finding subscriber: %w", err)
	}
	if id.UpstreamID != u.ID || s.ProjectID != u.ProjectID || !id.Verified || sub.Email != id.Email {
		return problem.New(problem.Conflict, "other_account", "the account has another email")
	}
	return us.link(ctx, u, id, sub.ID)
}

func (us *Upstreams) link(ctx context.Context, u Upstream, id Identity, subscriberID string) error {
	key, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("creating link id: %w", err)
	}
	return us.store.CreateUpstreamLink(ctx, UpstreamLink{
		ID:           key.String(),
		UpstreamID:   u.ID,
		ProjectID:    u.ProjectID,
		SubscriberID: subscriberID,
		Issuer:       id.Issuer,
		Subject:      id.Subject,
		Created:      us.Now(),
	})
}

// refuse records a refused login, and returns the given reason as the error to show.
func (us *Upstreams) refuse(ctx context.Context, u Upstream, subscriberID string, why *problem.Error) error {
	if err := us.logins.attempts.RefuseFactor(ctx, u.ProjectID, subscriberID, why); err != nil {
		return err
	}
	return why
}

// An upstreamSession is the data for signing out at an upstream provider. The session store keeps
// it for a login. If the data is lost, signing out of selvage does not sign out at the provider.
type upstreamSession struct {
	UpstreamID string `json:"upstream"`
	ProjectID  string `json:"project"`
	IDToken    string `json:"id_token"`
}

func upstreamSessionKey(sid string) session.Key { return session.Key{Kind: "upstream-login", ID: sid} }

// Remember stores the ID token of a login, for signing out at the provider.
func (us *Upstreams) Remember(ctx context.Context, u Upstream, s Login, idToken string) error {
	if !u.Logout {
		return nil
	}
	value, err := json.Marshal(upstreamSession{UpstreamID: u.ID, ProjectID: u.ProjectID, IDToken: idToken})
	if err != nil {
		return err
	}
	return us.Sessions.Put(ctx, upstreamSessionKey(s.ID), value, us.Lifetimes().BrowserAbsolute)
}

// RememberProof is like Remember, for a login that was completed with a second factor. It does nothing
// if no provider confirmed the identity, or if the provider was deleted in the meantime.
func (us *Upstreams) RememberProof(ctx context.Context, proof Proof, s Login) error {
	if proof.UpstreamID == "" {
		return nil
	}
	u, err := us.Find(ctx, s.ProjectID, proof.UpstreamID)
	if errors.Is(err, problem.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return us.Remember(ctx, u, s, proof.IDToken)
}

// Forget removes and returns what Remember stored for one of these logins. ok is false if none of
// them needs a logout at its provider.
func (us *Upstreams) Forget(ctx context.Context, sids ...string) (u Upstream, idToken string, ok bool) {
	for _, sid := range sids {
		value, err := us.Sessions.Take(ctx, upstreamSessionKey(sid))
		var kept upstreamSession
		if err != nil || json.Unmarshal(value, &kept) != nil {
			continue
		}
		if u, err := us.Find(ctx, kept.ProjectID, kept.UpstreamID); err == nil && u.Logout && u.Enabled {
			return u, kept.IDToken, true
		}
	}
	return u, "", false
}
