package fabric

import (
	"context"
	"fmt"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
)

// ListAudit gives a page of the audit trail, the newest first.
func (f *Fabric) ListAudit(ctx context.Context, filter audit.Filter, q page.Query) (page.Page[audit.Event], error) {
	return f.c.Store.ListAudit(ctx, filter, q)
}

// RefuseManagement notes that somebody without the scope Management tried what needs it.
func (f *Fabric) RefuseManagement(ctx context.Context, projectID, what string) error {
	e := audit.Of("management", projectID, "project", projectID).With("request", what).Refuse("the credentials lack the scope Management")
	if err := f.c.Store.Record(ctx, e); err != nil {
		return fmt.Errorf("noting a refusal: %w", err)
	}
	return nil
}
