package idp

import (
	"context"

	"github.com/selvage/selvage/internal/page"
)

// A ClientFilter selects clients.
type ClientFilter struct {
	Text string     // words, each of which must occur in the name or the ID
	Type ClientType // "" means any
}

// Search returns a page of the project's clients that match a filter.
func (cs *Clients) Search(
	ctx context.Context, projectID string, f ClientFilter, q page.Query,
) (page.Page[Client], error) {
	return cs.store.ListClients(ctx, projectID, f, q)
}
