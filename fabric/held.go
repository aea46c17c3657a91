package fabric

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// A Login is a sign-in of a subscriber, as its project sees it.
type Login struct {
	ID        string // the sid of the tokens born of it
	Began     time.Time
	AMR       []string // how it was proven (RFC 8176): "pwd"
	UserAgent string
	Address   string    // where it came from
	Expires   time.Time // of the browser's cookie; tokens may live on
	Ended     time.Time // zero while it has not been ended
	Grants    []Grant   // oldest first
}

// A Grant is what an OAuth client has got of a login.
type Grant struct {
	ClientID   string
	ClientName string
	Scope      []string
	Created    time.Time
	Expires    time.Time // when its refresh token dies, if it is not used
	Revoked    time.Time // zero while it is good
}

// A Consent is what a subscriber has agreed to for an OAuth client.
type Consent struct {
	ClientID   string
	ClientName string
	Scope      []string
	Updated    time.Time // when it agreed to something new
}

// A Family is a refresh token that was used, with all that came from it. One that
// never was is known to nobody but its holder: issuing tokens writes nothing.
type Family struct {
	ID        string
	ClientID  string    // the OAuth client or application; "" for none
	Created   time.Time // when its first token was made; zero if that is not known any more
	Used      time.Time // when it was refreshed last
	Refreshes int64
	Expires   time.Time // when the last of its tokens has expired
	Revoked   bool
}

// SubscriberLogins returns a page of a subscriber's logins, newest first, those that
// have ended included.
func (f *Fabric) SubscriberLogins(ctx context.Context, projectID, id string, q page.Query) (page.Page[Login], error) {
	return heldBy(ctx, f, projectID, id, q, f.c.Store.ListLogins)
}

// SubscriberConsents returns a page of what a subscriber has agreed to.
func (f *Fabric) SubscriberConsents(ctx context.Context, projectID, id string, q page.Query) (page.Page[Consent], error) {
	return heldBy(ctx, f, projectID, id, q, f.c.Store.ListConsents)
}

// SubscriberFamilies returns a page of the refresh tokens of a subscriber that were
// used, newest first.
func (f *Fabric) SubscriberFamilies(ctx context.Context, projectID, id string, q page.Query) (page.Page[Family], error) {
	return heldBy(ctx, f, projectID, id, q, f.c.Store.ListFamilies)
}

// SubscriberDevices returns a page of a subscriber's devices.
func (f *Fabric) SubscriberDevices(ctx context.Context, projectID, id string, q page.Query) (page.Page[Device], error) {
	return heldBy(ctx, f, projectID, id, q, f.c.Store.ListDevices)
}

// heldBy lists what a subscriber has, if there is such a one.
func heldBy[T any](
	ctx context.Context, f *Fabric, projectID, id string, q page.Query,
	list func(context.Context, string, string, page.Query) (page.Page[T], error),
) (page.Page[T], error) {
	s, err := f.FindSubscriber(ctx, projectID, id)
	if err != nil {
		return page.Page[T]{}, err
	}
	return list(ctx, s.ProjectID, s.ID, q)
}

// EndLogin ends a login of a subscriber: its cookie, its grants, the tokens and
// sockets that were born of it. Ending it again changes nothing.
func (f *Fabric) EndLogin(ctx context.Context, projectID, subscriberID, sid string) error {
	noSuch := problem.NoSuch("login")
	s, err := f.FindSubscriber(ctx, projectID, subscriberID)
	if err != nil {
		return err
	}
	sid, ok := canonical(sid)
	if !ok || f.c.EndLogin == nil {
		return noSuch
	}
	p, err := f.c.Store.ListLogins(ctx, s.ProjectID, s.ID, page.Query{Size: 1, From: sid})
	if err != nil {
		return fmt.Errorf("finding login: %w", err)
	}
	if len(p.Items) == 0 || p.Items[0].ID != sid {
		return noSuch
	}
	return f.c.EndLogin(ctx, sid)
}

// RevokeConsent takes back what a subscriber has agreed to for a client, and ends what
// the client has got by it.
func (f *Fabric) RevokeConsent(ctx context.Context, projectID, subscriberID, clientID string) error {
	s, err := f.FindSubscriber(ctx, projectID, subscriberID)
	if err != nil {
		return err
	}
	clientID, ok := canonical(clientID)
	if !ok || f.c.RevokeConsent == nil {
		return problem.NoSuch("consent")
	}
	return f.c.RevokeConsent(ctx, s.ID, clientID)
}

// RevokeFamily ends a refresh token of a subscriber that was used, and all that came
// from it.
func (f *Fabric) RevokeFamily(ctx context.Context, projectID, subscriberID, id string) error {
	subscriberID, ok := canonical(subscriberID)
	id, ok2 := canonical(id)
	if !ok || !ok2 {
		return problem.NoSuch("token")
	}
	if err := f.c.Store.RevokeFamily(ctx, projectID, subscriberID, gone(revocation.Family, id, f.now())); err != nil {
		return err
	}
	return f.c.Revocations.Sync(ctx)
}

// RevokeSubscriber ends all that a subscriber holds by now: its logins and grants,
// its tokens, known or not, those of guests it has asked for, and their sockets. It
// may get new ones at once.
func (f *Fabric) RevokeSubscriber(ctx context.Context, projectID, id string) error {
	s, err := f.FindSubscriber(ctx, projectID, id)
	if err != nil {
		return err
	}
	now := f.now()
	end := ended(revocation.Subscriber, s.ID, now)
	defer f.lately.forget() // tokens are made after the row's last change
	if _, err := f.c.Store.UpdateSubscriber(ctx, s.ProjectID, s.ID, SubscriberChange{}, now, &end); err != nil {
		return fmt.Errorf("revoking subscriber: %w", err)
	}
	return f.c.Revocations.Sync(ctx)
}

// DeleteDeviceOf forgets a device of a subscriber of a project.
func (f *Fabric) DeleteDeviceOf(ctx context.Context, projectID, subscriberID, id string) error {
	s, err := f.FindSubscriber(ctx, projectID, subscriberID)
	if err != nil {
		return err
	}
	return f.DeleteDevice(ctx, Token{SubscriberID: s.ID}, id)
}

// RevokeToken ends a token of the project that somebody presents: a refresh token
// with all that came from it, an embed key with all that it gave, any other alone.
func (f *Fabric) RevokeToken(ctx context.Context, projectID, raw string) error {
	if raw == "" {
		return problem.Missing("token")
	}
	if k, err := f.FindEmbedKey(ctx, raw); err == nil && k.ProjectID == projectID {
		return f.RevokeEmbedKey(ctx, k)
	} else if err != nil && !errors.Is(err, problem.Forbidden) {
		return err
	}
	t, ok := f.Inspect(raw, SAT, Guest, Invite, Refresh)
	if !ok || t.ProjectID != projectID || t.Issuer != f.c.Issuer {
		return &problem.Error{Kind: problem.Invalid, Code: "token_invalid", Param: "token",
			Message: "token is none of the project's"}
	}
	return f.Revoke(ctx, t)
}
