package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// Resources holds resources and their addresses, routes and versions.
type Resources struct{ *core }

var resourceTable = table[fabric.Resource]{
	name:    "resources",
	thing:   "resource",
	columns: `id, project_id, type, display_name, name_digest, fields, secrets, created, updated`,
	fields: func(r *fabric.Resource) []any {
		return []any{&r.ID, &r.ProjectID, &r.Type, &r.DisplayName, nullableOf(&r.NameDigest), asJSON{v: &r.Fields},
			&r.Secrets, &r.Created, &r.Updated}
	},
}

// handlerOf returns the id of the resource that handles the calls to r, or "".
func handlerOf(r fabric.Resource) string { return r.Fields.Text("calling_handler_resource_id") }

// CreateResource inserts a resource and its address, and queues the event about it.
func (s *Resources) CreateResource(
	ctx context.Context, r fabric.Resource, a fabric.Address, tell fabric.Teller,
) error {
	fields, err := jsonText(r.Fields)
	if err != nil {
		return err
	}

	e := audit.Of("resource.created", r.ProjectID, r.Type, r.ID).With("name", r.DisplayName)
	return s.change(ctx, e, func(t tx) error {
		var webhooks int
		err := t.Row(ctx, `INSERT INTO resources (`+resourceTable.columns+`, handler_id)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (project_id, type, name_digest) DO NOTHING
				RETURNING `+webhooksOf("resources"),
			r.ID, r.ProjectID, r.Type, r.DisplayName, null(r.NameDigest), fields, r.Secrets,
			micros(r.Created), micros(r.Updated), handlerOf(r)).Scan(&webhooks)
		if err := insertedReturning(err, "resource", nameTaken()); err != nil {
			return err
		}

		if err := t.lockHandler(ctx, r); err != nil {
			return err
		}
		if err := t.insertAddress(ctx, a, false); err != nil {
			return err
		}
		return queueEventOf(ctx, t, webhooks, r, tell)
	})
}

// FindResource finds a resource by its project, type and id.
func (s *Resources) FindResource(ctx context.Context, projectID, typ, id string) (fabric.Resource, error) {
	return resourceTable.find(ctx, s.read(), `id = $3 AND project_id = $1 AND type = $2`, projectID, typ, id)
}

// ListResources returns a page of a project's resources of one type.
func (s *Resources) ListResources(
	ctx context.Context, projectID, typ string, q page.Query,
) (page.Page[fabric.Resource], error) {
	l := resourceTable.listing(q.From)
	l.where.and(`project_id = $%d`, projectID)
	l.where.and(`type = $%d`, typ)
	return l.page(ctx, s.read(), q)
}

// ListGateways returns at most limit SIP gateways whose ids are greater than after, from all projects
// and ordered by id.
func (s *Resources) ListGateways(ctx context.Context, after string, limit int) ([]fabric.Resource, error) {
	return resourceTable.gather(ctx, s.read(),
		`WHERE type = 'sip_gateway' AND id > $1 ORDER BY id LIMIT $2`, after, limit)
}

// NamedEndpoints returns at most limit SIP endpoints with the given username, from all projects and
// oldest first.
func (s *Resources) NamedEndpoints(ctx context.Context, username string, limit int) ([]fabric.Resource, error) {
	return resourceTable.gather(ctx, s.read(),
		`WHERE type = 'sip_endpoint' AND display_name = $1 ORDER BY id LIMIT $2`, username, limit)
}

// SetEndpointPassword writes the sealed password of a SIP endpoint, unless the endpoint has changed
// since the caller read it. old is the time of the last change that the caller has seen. end is the
// revocation that ends the calls of phones with an earlier password.
func (s *Resources) SetEndpointPassword(
	ctx context.Context, r fabric.Resource, old time.Time, end revocation.Revocation,
) error {
	e := audit.Of("sip_endpoint.password_made", r.ProjectID, r.Type, r.ID).With("name", r.DisplayName)
	return s.once(ctx, e, func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE resources SET secrets = $4, updated = $5
			WHERE id = $1 AND project_id = $2 AND updated = $3`,
			r.ID, r.ProjectID, micros(old), r.Secrets, micros(r.Updated))
		if err := requireUnchanged(res, err, "SIP endpoint"); err != nil {
			return err
		}
		return t.revoke(ctx, s.ending(end))
	})
}

// UpdateResource writes a resource, renames its addresses, and queues the event about the change, unless
// the resource has changed since the caller read it. old is the time of the last change that the caller
// has seen.
func (s *Resources) UpdateResource(
	ctx context.Context, r fabric.Resource, old time.Time, tell fabric.Teller,
) error {
	fields, err := jsonText(r.Fields)
	if err != nil {
		return err
	}

	e := audit.Of("resource.updated", r.ProjectID, r.Type, r.ID).With("name", r.DisplayName)
	return s.change(ctx, e, func(t tx) error {
		var webhooks int
		err := t.Row(ctx, `UPDATE resources
				SET display_name = $4, fields = $5, updated = $6, handler_id = $7, secrets = $8, name_digest = $9
				WHERE id = $1 AND project_id = $2 AND updated = $3 RETURNING `+webhooksOf("resources"),
			r.ID, r.ProjectID, micros(old), r.DisplayName, fields, micros(r.Updated),
			handlerOf(r), r.Secrets, null(r.NameDigest)).Scan(&webhooks)
		switch {
		case isUnique(err):
			return nameTaken()
		case errors.Is(err, sql.ErrNoRows):
			return changedMeanwhile("resource")
		case err != nil:
			return fmt.Errorf("updating resource: %w", err)
		}

		if err := t.lockHandler(ctx, r); err != nil {
			return err
		}
		err = t.Later(ctx, `UPDATE addresses SET display_name = $2 WHERE resource_id = $1`, r.ID, r.DisplayName)
		if err != nil {
			return fmt.Errorf("renaming addresses: %w", err)
		}
		return queueEventOf(ctx, t, webhooks, r, tell)
	})
}

// lock locks a resource or subscriber to which calls will be routed. If it is being deleted
// concurrently, one of the two changes waits for the other. If the deletion waits, it then finds
// the route. If this change waits, lock then returns [problem.NotFound].
func (t tx) lock(ctx context.Context, projectID, id string) error {
	for _, table := range []string{"resources", "subscribers"} {
		res, err := t.Exec(ctx, `UPDATE `+table+` SET updated = updated WHERE id = $1 AND project_id = $2`,
			id, projectID)
		if err := requireRow(res, err, "resource"); !errors.Is(err, problem.NotFound) {
			return err
		}
	}
	return problem.NoSuch("resource")
}

// lockHandler locks the resource that handles the calls to r, if there is one.
func (t tx) lockHandler(ctx context.Context, r fabric.Resource) error {
	if id := handlerOf(r); id != "" {
		return t.lock(ctx, r.ProjectID, id)
	}
	return nil
}

// countRoutes counts the routes to a resource.
const countRoutes = `SELECT (SELECT count(*) FROM phone_routes WHERE resource_id = $1) +
	(SELECT count(*) FROM sip_addresses WHERE resource_id = $1) +
	(SELECT count(*) FROM resources WHERE handler_id = $1)`

// DeleteResource deletes a resource and its addresses, and queues the event about it. end is the
// revocation that ends the calls of its phones. If end is the zero value, no calls end. If calls are
// routed to the resource, the error is [problem.Conflict].
func (s *Resources) DeleteResource(
	ctx context.Context, projectID, typ, id string, end revocation.Revocation, tell fabric.Teller,
) error {
	return s.change(ctx, audit.Of("resource.deleted", projectID, typ, id), func(t tx) error {
		var webhooks int
		r, err := resourceTable.scanWith(t.Row(ctx, `DELETE FROM resources
			WHERE id = $3 AND project_id = $1 AND type = $2
			RETURNING `+resourceTable.columns+`, `+webhooksOf("resources"), projectID, typ, id), &webhooks)
		if err != nil {
			return err
		}
		t.event.Add("name", r.DisplayName)

		var n int
		if err := t.Row(ctx, countRoutes, id).Scan(&n); err != nil {
			return fmt.Errorf("counting routes: %w", err)
		}
		if n > 0 {
			return problem.New(problem.Conflict, "conflict", "the resource handles calls")
		}
		if err := t.Later(ctx, `DELETE FROM addresses WHERE resource_id = $1`, id); err != nil {
			return fmt.Errorf("deleting addresses: %w", err)
		}
		if err := queueEventOf(ctx, t, webhooks, r, tell); err != nil {
			return err
		}
		if end.ID == "" {
			return nil
		}
		return t.revoke(ctx, s.ending(end))
	})
}

// things lists the ids of all resources and subscribers, each with the text to search. The cast
// gives this text the same type in both tables. Without it, SQLite would not read the tables in the
// order of their indexes.
const things = `(SELECT id, project_id, display_name AS sought FROM resources UNION ALL
	SELECT id, project_id, CAST(COALESCE(email, '') || ' ' || COALESCE(reference, '') || ' ' || first_name || ' ' ||
	last_name || ' ' || display_name AS TEXT) AS sought FROM subscribers) AS things`

// ListThings returns a page of the resources and subscribers that match a filter. It first finds
// their ids, and then reads them with two queries.
func (s *Resources) ListThings(
	ctx context.Context, projectID string, f fabric.ThingFilter, q page.Query,
) (p page.Page[fabric.Thing], err error) {
	l := listing[string]{
		selection: selection{
			thing:   "resources",
			columns: "id",
			from:    things,
			key:     []string{"id"},
			start:   startAt(q.From),
		},
		scan: scanID,
		id:   func(id string) string { return id },
	}
	l.where.and(`project_id = $%d`, projectID)
	l.checks = containing(`sought || ' ' || id`, f.Text)
	if f.Type != "" {
		l.from = "resources"
		l.where.and(`type = $%d`, f.Type)
		l.checks = containing(`display_name || ' ' || id`, f.Text)
	}

	ids, err := l.page(ctx, s.read(), q)
	if err != nil {
		return p, err
	}

	p.Next, p.Prev = ids.Next, ids.Prev
	p.Items, err = s.FindThings(ctx, projectID, ids.Items)
	return p, err
}

// FindThings returns the resources and subscribers with the given ids, in the order of the ids. It
// leaves out unknown ids.
func (s *Resources) FindThings(ctx context.Context, projectID string, ids []string) (found []fabric.Thing, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	w := where{}
	w.and(`project_id = $%d`, projectID)
	w.in(`id`, ids)
	resources, err := resourceTable.gather(ctx, s.read(), `WHERE `+w.String(), w.args...)
	if err != nil {
		return nil, err
	}
	subscribers, err := subscriberTable.gather(ctx, s.read(), `WHERE `+w.String(), w.args...)
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
		if thing, ok := byID[id]; ok {
			found = append(found, thing)
		}
	}
	return found, nil
}

var versionTable = table[fabric.Version]{
	name:    "resource_versions",
	thing:   "version",
	columns: `id, project_id, resource_id, number, document_version, fields, created`,
	fields: func(v *fabric.Version) []any {
		return []any{&v.ID, &v.ProjectID, &v.ResourceID, &v.Number, &v.DocumentVersion, asJSON{v: &v.Fields},
			&v.Created}
	},
}

// CreateVersion stores v with the next version number of its resource, and returns it.
func (s *Resources) CreateVersion(ctx context.Context, v fabric.Version) (fabric.Version, error) {
	fields, err := jsonText(v.Fields)
	if err != nil {
		return v, err
	}

	e := audit.Of("resource.deployed", v.ProjectID, "resource", v.ResourceID).With("version", v.ID)
	err = s.change(ctx, e, func(t tx) error {
		// Deployments of the same resource wait here for one another, so that each gets its own
		// number.
		res, err := t.Exec(ctx, `UPDATE resources SET updated = updated WHERE id = $1 AND project_id = $2`,
			v.ResourceID, v.ProjectID)
		if err = requireRow(res, err, "resource"); err != nil {
			return err
		}

		err = t.Row(ctx, `INSERT INTO resource_versions (`+versionTable.columns+`)
				SELECT $1, $2, $3, COALESCE(MAX(number), 0) + 1, $4, $5, $6 FROM resource_versions
				WHERE resource_id = $3 RETURNING number`,
			v.ID, v.ProjectID, v.ResourceID, v.DocumentVersion, fields, micros(v.Created)).Scan(&v.Number)
		if isUnique(err) {
			return problem.New(problem.Conflict, "conflict", "the resource is being deployed by another request")
		}
		if err != nil {
			return fmt.Errorf("inserting version: %w", err)
		}
		return nil
	})
	return v, err
}

// FindVersion finds a version of a resource.
func (s *Resources) FindVersion(ctx context.Context, resourceID, id string) (fabric.Version, error) {
	return versionTable.find(ctx, s.read(), `id = $2 AND resource_id = $1`, resourceID, id)
}

// ListVersions returns a page of a resource's versions, oldest first.
func (s *Resources) ListVersions(
	ctx context.Context, resourceID string, q page.Query,
) (page.Page[fabric.Version], error) {
	l := versionTable.listing(q.From)
	l.where.and(`resource_id = $%d`, resourceID)
	return l.page(ctx, s.read(), q)
}
