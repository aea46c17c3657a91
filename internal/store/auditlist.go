package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
)

// ListAudit gives a page of the audit trail, the newest first.
func (s *Store) ListAudit(ctx context.Context, f audit.Filter, q page.Query) (page.Page[audit.Event], error) {
	l := auditListing(f, q.From)
	l.desc = true
	return l.page(ctx, s.read(), q)
}

// ExportAudit is ListAudit with the oldest first.
func (s *Store) ExportAudit(ctx context.Context, f audit.Filter, q page.Query) (page.Page[audit.Event], error) {
	return auditListing(f, q.From).page(ctx, s.read(), q)
}

// auditListing has the events in the order of their ids, which is that of their times.
func auditListing(f audit.Filter, from string) listing[audit.Event] {
	l := listing[audit.Event]{
		thing: "audit trail", columns: auditColumns, from: "audit", key: []string{"id"},
		scan: scanEvent, id: func(e audit.Event) string { return e.ID },
	}
	if !f.Since.IsZero() {
		l.within.low = firstID(f.Since)
	}
	if !f.Until.IsZero() {
		l.within.high = firstID(f.Until)
	}
	l.start = l.within.startAt(from)
	for _, c := range []struct{ condition, value string }{
		{`project_id = $%d`, f.ProjectID}, {`outcome = $%d`, string(f.Outcome)}, {`actor_id = $%d`, f.Actor}, {`target_id = $%d`, f.Target},
	} {
		if c.value != "" {
			l.where.and(c.condition, c.value)
		}
	}
	if f.Action != "" {
		l.where.args = append(l.where.args, f.Action, strings.TrimPrefix(contains(f.Action+"."), "%"))
		n := len(l.where.args)
		l.where.always(fmt.Sprintf(`(action = $%d OR action LIKE $%d ESCAPE '\')`, n-1, n))
	}
	return l
}
