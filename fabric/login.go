package fabric

import (
	"context"
	"fmt"
	"time"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// Logins lists and ends subscribers' logins, and lists and revokes their consents.
type Logins struct {
	*core
	store       LoginStore
	subscribers *Subscribers
}

// A LoginStore reads logins and consents; see [Stores].
type LoginStore interface {
	// ListLogins returns a subscriber's logins with their grants, newest first.
	ListLogins(ctx context.Context, projectID, subscriberID string, q page.Query) (page.Page[Login], error)
	// ListConsents returns a subscriber's consents, ordered by client.
	ListConsents(ctx context.Context, projectID, subscriberID string, q page.Query) (page.Page[Consent], error)
}

// A Login is a subscriber's sign-in. It contains only what the project may see.
type Login struct {
	ID        string // the sid in the login's tokens
	Began     time.Time
	AMR       []string // how the subscriber authenticated (RFC 8176), such as "pwd"
	UserAgent string
	Address   string    // the network address of the browser
	Expires   time.Time // when the cookie expires; tokens may live longer
	Ended     time.Time // zero while the login is active
	Grants    []Grant   // oldest first
}

// A Grant is the access that an OAuth client got through a login.
type Grant struct {
	ClientID   string
	ClientName string
	Scope      []string
	Created    time.Time
	Expires    time.Time // when the grant's refresh token expires unless it is used
	Revoked    time.Time // zero while the grant is valid
}

// A Consent records the scopes that a subscriber has granted to an OAuth client.
type Consent struct {
	ClientID   string
	ClientName string
	Scope      []string
	Updated    time.Time // when scopes were last added
}

// List returns a page of a subscriber's logins, newest first. It includes logins that have ended.
func (ls *Logins) List(ctx context.Context, projectID, id string, q page.Query) (page.Page[Login], error) {
	return listOf(ctx, ls.subscribers, projectID, id, q, ls.store.ListLogins)
}

// ListConsents returns a page of a subscriber's consents.
func (ls *Logins) ListConsents(
	ctx context.Context, projectID, id string, q page.Query,
) (page.Page[Consent], error) {
	return listOf(ctx, ls.subscribers, projectID, id, q, ls.store.ListConsents)
}

// listOf returns a page of a subscriber's rows, or problem.NotFound if the subscriber is unknown.
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

// End ends a login of a subscriber, with its cookie and grants, and with all tokens and sockets that are
// based on it. If the login has already ended, End has no effect.
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

// RevokeConsent revokes a subscriber's consent to a client, and ends everything that the client got
// through it.
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
