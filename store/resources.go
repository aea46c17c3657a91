package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// Resources holds resources and their addresses, routes and versions.
type Resources struct{ *core }

const resourceColumns = `id, project_id, type, display_name, COALESCE(name_digest, ''), fields, secrets, created, updated`

func scanResource(row scanner) (r fabric.Resource, err error) { return scanResourceAnd(row) }

func scanResourceAnd(row scanner, more ...any) (r fabric.Resource, err error) {
	var fields []byte
	var created, updated int64
	err = row.Scan(append([]any{&r.ID, &r.ProjectID, &r.Type, &r.DisplayName, &r.NameDigest, &fields,
		&r.Secrets, &created, &updated}, more...)...)
	if err != nil {
		return r, found(err, "resource")
	}
	if err := json.Unmarshal(fields, &r.Fields); err != nil {
		return r, fmt.Errorf("reading fields of resource %s: %w", r.ID, err)
	}
	r.Created, r.Updated = moment(created), moment(updated)
	return r, nil
}

// CreateResource inserts a resource and its address, and tells of it.
func (s *Resources) CreateResource(ctx context.Context, r fabric.Resource, a fabric.Address, tell fabric.Teller) error {
	fields, err := json.Marshal(r.Fields)
	if err != nil {
		return fmt.Errorf("writing fields: %w", err)
	}
	return s.change(ctx, audit.Of("resource.created", r.ProjectID, r.Type, r.ID).With("name", r.DisplayName),
		func(t tx) error {
			var webhooks int
			err := t.Row(ctx, `INSERT INTO resources (id, project_id, type, display_name, name_digest, fields, secrets, created, updated, handler_id)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (project_id, type, name_digest) DO NOTHING
			RETURNING `+webhooksOf("resources"),
				r.ID, r.ProjectID, r.Type, r.DisplayName, null(r.NameDigest), string(fields), r.Secrets,
				micros(r.Created), micros(r.Updated), r.Fields.Text("calling_handler_resource_id")).Scan(&webhooks)
			if err := told(err, "resource", nameTaken()); err != nil {
				return err
			}
			if err := t.holdHandler(ctx, r); err != nil {
				return err
			}
			if err := t.insertAddress(ctx, a, false); err != nil {
				return err
			}
			return tellAny(ctx, t, webhooks, r, tell)
		})
}

// FindResource finds a resource of a project and type.
func (s *Resources) FindResource(ctx context.Context, projectID, typ, id string) (fabric.Resource, error) {
	return scanResource(s.read().Row(ctx,
		`SELECT `+resourceColumns+` FROM resources WHERE id = $3 AND project_id = $1 AND type = $2`, projectID, typ, id))
}

// ListResources returns a page of a project's resources of a type.
func (s *Resources) ListResources(ctx context.Context, projectID, typ string, q page.Query) (page.Page[fabric.Resource], error) {
	l := listing[fabric.Resource]{
		thing: "resources", columns: resourceColumns, from: "resources", key: []string{"id"}, start: startAt(q.From),
		scan: scanResource, id: func(r fabric.Resource) string { return r.ID },
	}
	l.where.and(`project_id = $%d`, projectID)
	l.where.and(`type = $%d`, typ)
	return l.page(ctx, s.read(), q)
}

// UpdateResource writes a resource whose row is still as it was at a moment, renames
// its addresses, and tells of it.
func (s *Resources) UpdateResource(ctx context.Context, r fabric.Resource, old time.Time, tell fabric.Teller) error {
	fields, err := json.Marshal(r.Fields)
	if err != nil {
		return fmt.Errorf("writing fields: %w", err)
	}
	return s.change(ctx, audit.Of("resource.updated", r.ProjectID, r.Type, r.ID).With("name", r.DisplayName),
		func(t tx) error {
			var webhooks int
			err := t.Row(ctx, `UPDATE resources SET display_name = $4, fields = $5, updated = $6, handler_id = $7, secrets = $8, name_digest = $9
			WHERE id = $1 AND project_id = $2 AND updated = $3 RETURNING `+webhooksOf("resources"),
				r.ID, r.ProjectID, micros(old), r.DisplayName, string(fields), micros(r.Updated),
				r.Fields.Text("calling_handler_resource_id"), r.Secrets, null(r.NameDigest)).Scan(&webhooks)
			switch {
			case isUnique(err):
				return nameTaken()
			case errors.Is(err, sql.ErrNoRows):
				return changedMeanwhile("resource")
			case err != nil:
				return fmt.Errorf("changing resource: %w", err)
			}
			if err := t.holdHandler(ctx, r); err != nil {
				return err
			}
			if err := t.Later(ctx, `UPDATE addresses SET display_name = $2 WHERE resource_id = $1`, r.ID, r.DisplayName); err != nil {
				return fmt.Errorf("renaming addresses: %w", err)
			}
			return tellAny(ctx, t, webhooks, r, tell)
		})
}

// hold keeps a resource or subscriber in its project until the end of the transaction,
// which is about to lead calls to it. Who deletes it waits here for us, and then sees
// that; or we for them, and then it is a [problem.NotFound].
func (t tx) hold(ctx context.Context, projectID, id string) error {
	for _, table := range []string{"resources", "subscribers"} {
		res, err := t.Exec(ctx, `UPDATE `+table+` SET updated = updated WHERE id = $1 AND project_id = $2`,
			id, projectID)
		if err := oneRow(res, err, "resource"); !errors.Is(err, problem.NotFound) {
			return err
		}
	}
	return problem.NoSuch("resource")
}

// holdHandler holds what takes the calls of a resource, if anything does.
func (t tx) holdHandler(ctx context.Context, r fabric.Resource) error {
	if id := r.Fields.Text("calling_handler_resource_id"); id != "" {
		return t.hold(ctx, r.ProjectID, id)
	}
	return nil
}

// unchanged returns problem.Conflict where a row was not as it was read.
func unchanged(res sql.Result, err error, thing string) error {
	if err = oneRow(res, err, thing); errors.Is(err, problem.NotFound) {
		return changedMeanwhile(thing)
	}
	return err
}

func changedMeanwhile(thing string) error {
	return problem.New(problem.Conflict, "conflict", "the %s was changed meanwhile", thing)
}

// handled counts what a resource takes the calls of.
const handled = `SELECT (SELECT count(*) FROM phone_routes WHERE resource_id = $1) + (SELECT count(*) FROM sip_addresses WHERE resource_id = $1) +
	(SELECT count(*) FROM resources WHERE handler_id = $1)`

// DeleteResource deletes a resource and its addresses, unless it takes calls of
// something, and tells of it.
func (s *Resources) DeleteResource(ctx context.Context, projectID, typ, id string, tell fabric.Teller) error {
	return s.change(ctx, audit.Of("resource.deleted", projectID, typ, id), func(t tx) error {
		var webhooks int
		r, err := scanResourceAnd(t.Row(ctx, `DELETE FROM resources WHERE id = $3 AND project_id = $1 AND type = $2
			RETURNING `+resourceColumns+`, `+webhooksOf("resources"), projectID, typ, id), &webhooks)
		if err != nil {
			return err
		}
		t.event.Add("name", r.DisplayName)
		var n int
		if err := t.Row(ctx, handled, id).Scan(&n); err != nil {
			return fmt.Errorf("counting assignments: %w", err)
		}
		if n > 0 {
			return problem.New(problem.Conflict, "conflict", "the resource takes calls")
		}
		if err := t.Later(ctx, `DELETE FROM addresses WHERE resource_id = $1`, id); err != nil {
			return fmt.Errorf("deleting addresses: %w", err)
		}
		return tellAny(ctx, t, webhooks, r, tell)
	})
}

// things are the ids of all that can be called.
const things = `(SELECT id, project_id FROM resources UNION ALL SELECT id, project_id FROM subscribers) AS things`

func scanID(row scanner) (id string, err error) {
	err = row.Scan(&id)
	return id, err
}

// ListThings returns a page of resources and subscribers: their ids by one query,
// then what they are.
func (s *Resources) ListThings(ctx context.Context, projectID string, q page.Query) (p page.Page[fabric.Thing], err error) {
	l := listing[string]{
		thing: "resources", columns: "id", from: things, key: []string{"id"}, start: startAt(q.From),
		scan: scanID, id: func(id string) string { return id },
	}
	l.where.and(`project_id = $%d`, projectID)
	ids, err := l.page(ctx, s.read(), q)
	if err != nil {
		return p, err
	}
	p.Next, p.Prev = ids.Next, ids.Prev
	p.Items, err = s.FindThings(ctx, projectID, ids.Items)
	return p, err
}

// FindThings returns those of the ids that are there, in their order.
func (s *Resources) FindThings(ctx context.Context, projectID string, ids []string) (all []fabric.Thing, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	w := where{}
	w.and(`project_id = $%d`, projectID)
	w.conditions = append(w.conditions, `id IN (`+params(1, len(ids))+`)`)
	for _, id := range ids {
		w.args = append(w.args, id)
	}
	resources, err := gather(ctx, s.read(), "reading resources", scanResource,
		`SELECT `+resourceColumns+` FROM resources WHERE `+w.String(), w.args...)
	if err != nil {
		return nil, err
	}
	scan := func(row scanner) (fabric.Subscriber, error) { return scanSubscriber(row) }
	subscribers, err := gather(ctx, s.read(), "reading subscribers", scan,
		`SELECT `+subscriberColumns+` FROM subscribers WHERE `+w.String(), w.args...)
	if err != nil {
		return nil, err
	}
	byID := make(map[string]fabric.Thing, len(ids))
	for i := range resources {
		byID[resources[i].ID] = fabric.Thing{Resource: &resources[i]}
	}
	for i := range subscribers {
		byID[subscribers[i].ID] = fabric.Thing{Subscriber: &subscribers[i]}
	}
	for _, id := range ids {
		if t, ok := byID[id]; ok {
			all = append(all, t)
		}
	}
	return all, nil
}
