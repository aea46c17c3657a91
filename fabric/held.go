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

// Logins shows and ends the logins of subscribers and the consents they gave.
type Logins struct {
	*core
	store       LoginStore
	subscribers *Subscribers
}

// A LoginStore reads logins and consents; see [Stores].
type LoginStore interface {
	// ListLogins returns a subscriber's logins with their grants, newest first.
	ListLogins(ctx context.Context, projectID, subscriberID string, q page.Query) (page.Page[Login], error)
	// ListConsents returns a subscriber's consents, by client.
	ListConsents(ctx context.Context, projectID, subscriberID string, q page.Query) (page.Page[Consent], error)
}

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

// List returns a page of a subscriber's logins, newest first, those that
// have ended included.
func (ls *Logins) List(ctx context.Context, projectID, id string, q page.Query) (page.Page[Login], error) {
	return listOf(ctx, ls.subscribers, projectID, id, q, ls.store.ListLogins)
}

// ListConsents returns a page of what a subscriber has agreed to.
func (ls *Logins) ListConsents(ctx context.Context, projectID, id string, q page.Query) (page.Page[Consent], error) {
	return listOf(ctx, ls.subscribers, projectID, id, q, ls.store.ListConsents)
}

// ListFamilies returns a page of the refresh tokens of a subscriber that were
// used, newest first.
func (ts *Tokens) ListFamilies(ctx context.Context, projectID, id string, q page.Query) (page.Page[Family], error) {
	return listOf(ctx, ts.subscribers, projectID, id, q, ts.store.ListFamilies)
}

// List returns a page of a subscriber's devices.
func (ds *Devices) List(ctx context.Context, projectID, id string, q page.Query) (page.Page[Device], error) {
	return listOf(ctx, ds.subscribers, projectID, id, q, ds.store.ListDevices)
}

// listOf lists what a subscriber has, or returns problem.NotFound if it is unknown.
func listOf[T any](
	ctx context.Context, ss *Subscribers, projectID, id string, q page.Query,
	list func(context.Context, string, string, page.Query) (page.Page[T], error),
) (page.Page[T], error) {
	s, err := ss.Find(ctx, projectID, id)
	if err != nil {
		return page.Page[T]{}, err
	}
	return list(ctx, s.ProjectID, s.ID, q)
}

// End ends a login of a subscriber: its cookie, its grants, the tokens and
// sockets that were born of it. Ending it again changes nothing.
func (ls *Logins) End(ctx context.Context, projectID, subscriberID, sid string) error {
	noSuch := problem.NoSuch("login")
	s, err := ls.subscribers.Find(ctx, projectID, subscriberID)
	if err != nil {
		return err
	}
	sid, ok := canonical(sid)
	if !ok || ls.c.EndLogin == nil {
		return noSuch
	}
	p, err := ls.store.ListLogins(ctx, s.ProjectID, s.ID, page.Query{Size: 1, From: sid})
	if err != nil {
		return fmt.Errorf("finding login: %w", err)
	}
	if len(p.Items) == 0 || p.Items[0].ID != sid {
		return noSuch
	}
	return ls.c.EndLogin(ctx, sid)
}

// RevokeConsent takes back what a subscriber has agreed to for a client, and ends what
// the client has got by it.
func (ls *Logins) RevokeConsent(ctx context.Context, projectID, subscriberID, clientID string) error {
	s, err := ls.subscribers.Find(ctx, projectID, subscriberID)
	if err != nil {
		return err
	}
	clientID, ok := canonical(clientID)
	if !ok || ls.c.RevokeConsent == nil {
		return problem.NoSuch("consent")
	}
	return ls.c.RevokeConsent(ctx, s.ID, clientID)
}

// RevokeFamily ends a refresh token of a subscriber that was used, and all that came
// from it.
func (ts *Tokens) RevokeFamily(ctx context.Context, projectID, subscriberID, id string) error {
	subscriberID, ok := canonical(subscriberID)
	id, ok2 := canonical(id)
	if !ok || !ok2 {
		return problem.NoSuch("token")
	}
	if err := ts.store.RevokeFamily(ctx, projectID, subscriberID, gone(revocation.Family, id, ts.now())); err != nil {
		return err
	}
	return ts.c.Revocations.Sync(ctx)
}

// Revoke ends all that a subscriber holds by now: its logins and grants,
// its tokens, known or not, those of guests it has asked for, and their sockets. It
// may get new ones at once.
func (ss *Subscribers) Revoke(ctx context.Context, projectID, id string) error {
	s, err := ss.Find(ctx, projectID, id)
	if err != nil {
		return err
	}
	now := ss.now()
	end := ended(revocation.Subscriber, s.ID, now)
	defer ss.caches.forget() // tokens are made after the row's last change
	if _, err := ss.store.UpdateSubscriber(ctx, s.ProjectID, s.ID, SubscriberChange{}, now, &end); err != nil {
		return fmt.Errorf("revoking subscriber: %w", err)
	}
	return ss.c.Revocations.Sync(ctx)
}

// DeleteOf forgets a device of a subscriber of a project.
func (ds *Devices) DeleteOf(ctx context.Context, projectID, subscriberID, id string) error {
	s, err := ds.subscribers.Find(ctx, projectID, subscriberID)
	if err != nil {
		return err
	}
	return ds.Delete(ctx, Token{SubscriberID: s.ID}, id)
}

// RevokeRaw ends a token of the project that somebody presents: a refresh token
// with all that came from it, an embed key with all that it gave, any other alone.
func (ts *Tokens) RevokeRaw(ctx context.Context, projectID, raw string) error {
	if raw == "" {
		return problem.Missing("token")
	}
	if k, err := ts.embedKeys.Find(ctx, raw); err == nil && k.ProjectID == projectID {
		return ts.embedKeys.Revoke(ctx, k)
	} else if err != nil && !errors.Is(err, problem.Forbidden) {
		return err
	}
	t, ok := ts.Inspect(raw, SAT, Guest, Invite, Refresh)
	if !ok || t.ProjectID != projectID || t.Issuer != ts.c.Issuer {
		return &problem.Error{Kind: problem.Invalid, Code: "token_invalid", Param: "token",
			Message: "token is none of the project's"}
	}
	return ts.Revoke(ctx, t)
}
