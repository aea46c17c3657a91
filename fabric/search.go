package fabric

import (
	"context"
	"time"

	"github.com/selvage/selvage/internal/page"
)

// A ThingFilter selects resources and subscribers.
type ThingFilter struct {
	Text string // each word must occur in a name, an email, a reference or the id
	Type string // the type of a kind; "" means all resources and subscribers
}

// Search returns a page of the project's resources and subscribers that match a filter.
func (rs *Resources) Search(
	ctx context.Context, projectID string, f ThingFilter, q page.Query,
) (page.Page[Thing], error) {
	return rs.store.ListThings(ctx, projectID, f, q)
}

// An APIKeyFilter selects API keys.
type APIKeyFilter struct {
	Text  string   // each word must occur in the name, the prefix or the id
	State KeyState // "" means any state
}

// A KeyState is the state of an API key.
type KeyState string

// The states of an API key.
const (
	KeyUsable KeyState = "usable" // neither revoked nor expired
	KeyEnded  KeyState = "ended"  // revoked or expired
)

// Search returns a page of the project's keys that match a filter.
func (ks *APIKeys) Search(
	ctx context.Context, projectID string, f APIKeyFilter, q page.Query,
) (page.Page[APIKey], error) {
	return ks.store.ListAPIKeys(ctx, projectID, f, q)
}

// Expiring returns the project's keys that expire after one time and before another, soonest first.
// It omits revoked keys, and returns at most the given number.
func (ks *APIKeys) Expiring(
	ctx context.Context, projectID string, after, before time.Time, most int,
) ([]APIKey, error) {
	return ks.store.ExpiringAPIKeys(ctx, projectID, after, before, most)
}
