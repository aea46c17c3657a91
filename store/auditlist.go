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
		selection: selection{
			thing:   "audit trail",
			columns: auditColumns,
			from:    "audit",
			key:     []string{"id"},
		},
		scan: scanEvent,
		id:   func(e audit.Event) string { return e.ID },
	}

	l.within = auditSpan(f)
	l.start = l.within.startAt(from)
	l.where = auditWhere(f)
	l.checks = auditChecks(f)
	return l
}

// auditSpan returns the limits on the ids of the events in the filter's period.
func auditSpan(f audit.Filter) span {
	var ids span
	if !f.Since.IsZero() {
		ids.low = uuid7.First(f.Since)
	}
	if !f.Until.IsZero() {
		ids.high = uuid7.First(f.Until)
	}
	return ids
}

// auditWhere returns the conditions of a filter for which there is an index: audit_project or
// audit_actor.
func auditWhere(f audit.Filter) where {
	var w where
	if f.ProjectID != "" {
		w.and(`project_id = $%d`, f.ProjectID)
	}
	if isOperator(f) {
		w.and(`actor_id = $%d`, f.Actor)
		w.always(inActorIndex)
	}
	return w
}

// isOperator reports whether a filter selects the events of a single operator. Only operators have
// all of their events in the index audit_actor.
func isOperator(f audit.Filter) bool { return f.Actor != "" && f.ActorKind == audit.Operator }

// auditChecks returns the conditions of a filter that have no index.
func auditChecks(f audit.Filter) []check {
	var checks []check
	add := func(condition, value string) {
		if value != "" {
			checks = append(checks, check{condition: condition, args: []any{value}})
		}
	}

	add(`actor_kind = $%d`, string(f.ActorKind))
	if !isOperator(f) { // otherwise, auditWhere has the condition
		add(`actor_id = $%d`, f.Actor)
	}
	add(`outcome = $%d`, string(f.Outcome))
	add(`target_id = $%d`, f.Target)
	if f.Action != "" {
		// With a dot appended, the actions "client" and "client.created" both start with "client.".
		add(`action || '.' LIKE $%d ESCAPE '\'`, startingWith(f.Action+"."))
	}

	if f.Actors != nil {
		checks = append(checks, oneOf("actor_id", f.Actors))
	}
	if f.Targets != nil {
		checks = append(checks, oneOf("target_id", f.Targets))
	}
	if f.Anyone != nil {
		checks = append(checks, eitherOf(oneOf("actor_id", f.Anyone), oneOf("target_id", f.Anyone)))
	}
	return checks
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

// eitherOf returns a check for rows that pass a or b.
func eitherOf(a, b check) check {
	return check{
		condition: "(" + a.condition + " OR " + b.condition + ")",
		args:      append(a.args, b.args...),
	}
}

// revealsSecret is the condition for the actions that show a new secret, such as an API key, to
// their actor.
const revealsSecret = `action = 'api_key.created' OR action = 'api_key.rotated' OR action = 'embed_key.created'` +
	` OR action = 'client.created' OR action = 'client.secret_rotated'`

// inActorIndex is the condition of the partial index audit_actor. Databases use the index only for
// queries that contain exactly this expression.
const inActorIndex = `(actor_kind = 'operator' OR ` + revealsSecret + `)`

// secretsShown is the query of SecretsShown for the operator $1. A secret is the target of the event
// that reveals it, and the actor of events that are caused with it. The query starts with the secrets
// revealed to the operator. It then repeatedly adds the secrets revealed to known secrets.
//
// Concatenating an empty text to outcome keeps SQLite from building a temporary index.
var secretsShown = strings.NewReplacer(
	"{columns}", auditColumns,
	"{revealed}", inActorIndex+` AND (`+revealsSecret+`) AND outcome || '' = 'done'`,
).Replace(`
	WITH RECURSIVE known (secret_id) AS (
		SELECT target_id FROM audit WHERE actor_id = $1 AND {revealed}
		UNION
		SELECT target_id FROM known CROSS JOIN audit WHERE actor_id = secret_id AND {revealed}
	)
	SELECT {columns} FROM audit WHERE actor_id = $1 AND {revealed}
	UNION ALL
	SELECT {columns} FROM known CROSS JOIN audit
		WHERE actor_id = secret_id AND secret_id <> $1 AND {revealed}
	ORDER BY id DESC`)

// SecretsShown returns the events that revealed a secret to an operator, or to anyone who acted
// with a secret revealed in one of these events. The newest event comes first.
func (s *Audit) SecretsShown(ctx context.Context, operatorID string) ([]audit.Event, error) {
	return gather(ctx, s.read(), "reading audit trail", scanEvent, secretsShown, operatorID)
}
