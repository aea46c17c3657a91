package idp

import (
	"context"
	"time"
)

// A Held is a login that a subscriber has: its cookie is good, or an app has a grant of
// it that may still be refreshed.
type Held struct {
	Session
	Seen time.Time // when its browser was here last; the login itself where it never was
}

// An App is a client that a subscriber has agreed to, or that has a grant of its.
type App struct {
	ClientID, Name string
	FirstParty     bool
	Scopes         []string  // agreed to, or granted where nobody is asked
	Since          time.Time // when
}

// HeldSessions returns the logins that a subscriber has, newest first.
func (p *Provider) HeldSessions(ctx context.Context, projectID, subscriberID string) ([]Held, error) {
	return p.Store.HeldSessions(ctx, projectID, subscriberID, p.Now())
}

// Apps returns the clients that have access to a subscriber's account, by name.
func (p *Provider) Apps(ctx context.Context, projectID, subscriberID string) ([]App, error) {
	return p.Store.ListApps(ctx, projectID, subscriberID, p.Now())
}
