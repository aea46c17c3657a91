package store

import (
	"context"
	"strings"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/uuid7"
)

// ListAudit returns a page of the audit trail, newest first.
func (s *Audit) ListAudit(ctx context.Context, f audit.Filter, q page.Query) (page.Page[audit.Event], error) {
	l := auditListing(f, q.From)
	l.desc = true
	return l.page(ctx, s.read(), q)
}

// ExportAudit returns a page of the audit trail, oldest first.
func (s *Audit) ExportAudit(ctx context.Context, f audit.Filter, q page.Query) (page.Page[audit.Event], error) {
	l := auditListing(f, q.From)
	return l.page(ctx, s.read(), q)
}

// auditListing returns the listing of the events that match a filter, in the order of their ids,
// which is also the order of their times.
func auditListing(f audit.Filter, from string) listing[audit.Event] {
	l := listing[audit.Event]{
		selection{thing: "audit trail", columns: auditColumns, from: "audit", key: []string{"id"}},
		scanEvent, func(e audit.Event) string { return e.ID },
	}
	if !f.Since.IsZero() {
		l.within.low = uuid7.First(f.Since)
	}
	if !f.Until.IsZero() {
		l.within.high = uuid7.First(f.Until)
	}
	l.start = l.within.startAt(from)

	if f.ProjectID != "" {
		l.where.and(`project_id = $%d`, f.ProjectID)
	}
	if f.Actor != "" && f.ActorKind == audit.Operator {
		l.where.and(`actor_id = $%d`, f.Actor)
		l.where.always(byActor)
	}

	for column, ids := range map[string][]string{"actor_id": f.Actors, "target_id": f.Targets} {
		if ids != nil {
			l.checks = append(l.checks, oneOf(column, ids))
		}
	}

	if f.Anyone != nil {
		actor, target := oneOf("actor_id", f.Anyone), oneOf("target_id", f.Anyone)
		l.checks = append(l.checks,
			check{"(" + actor.condition + " OR " + target.condition + ")", append(actor.args, target.args...)})
	}

	action := ""
	if f.Action != "" { // the action itself, or any action that begins with it and a dot
		action = strings.TrimPrefix(contains(f.Action+"."), "%")
	}

	for _, c := range []struct{ condition, value string }{
		{`actor_kind = $%d`, string(f.ActorKind)},
		{`actor_id = $%d`, f.Actor},
		{`outcome = $%d`, string(f.Outcome)},
		{`target_id = $%d`, f.Target},
		{`action || '.' LIKE $%d ESCAPE '\'`, action},
	} {
		if c.value != "" {
			l.checks = append(l.checks, check{c.condition, []any{c.value}})
		}
	}
	return l
}

// oneOf returns a check for rows whose column has one of the values. If there are no values, no row
// passes the check.
func oneOf(column string, values []string) check {
	c := check{condition: "1 = 0"}
	for _, value := range values {
		c.condition += " OR " + column + " = $%d"
		c.args = append(c.args, value)
	}
	c.condition = "(" + c.condition + ")"
	return c
}

// byActor is the condition of the index by actor. Queries must contain exactly the same expression.
const byActor = `(actor_kind = 'operator' OR ` + showsSecret + `)`

// showsSecret is the condition for events that reveal a secret to their actor.
const showsSecret = `action = 'api_key.created' OR action = 'api_key.rotated' OR action = 'embed_key.created'` +
	` OR action = 'client.created' OR action = 'client.secret_rotated'`

// shown is the condition for events that revealed a secret and succeeded. Concatenating an empty
// text keeps SQLite from building a temporary index.
const shown = byActor + ` AND (` + showsSecret + `) AND outcome || '' = 'done'`

// SecretsShown returns the events that revealed a secret to an operator, or to anyone who acted
// with a secret revealed in one of these events. The newest event comes first.
func (s *Audit) SecretsShown(ctx context.Context, operatorID string) ([]audit.Event, error) {
	return gather(ctx, s.read(), "reading audit trail", scanEvent,
		`WITH RECURSIVE makers (maker) AS (SELECT target_id FROM audit WHERE actor_id = $1 AND `+shown+`
			UNION SELECT target_id FROM makers CROSS JOIN audit WHERE actor_id = maker AND `+shown+`)
		SELECT `+auditColumns+` FROM audit WHERE actor_id = $1 AND `+shown+`
		UNION ALL SELECT `+auditColumns+` FROM makers CROSS JOIN audit
			WHERE actor_id = maker AND maker <> $1 AND `+shown+`
		ORDER BY id DESC`, operatorID)
}
