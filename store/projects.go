package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// Projects holds projects, their logos and the marks of what a declaration file created.
type Projects struct{ *core }

const projectColumns = `id, name, record_rate, media_auth, require_factor, color, registration, created, updated,
	logo, terms_uri, policy_uri`

func scanProject(row scanner) (p fabric.Project, err error) {
	var created, updated int64
	err = row.Scan(&p.ID, &p.Name, &p.RecordRate, &p.MediaAuth, &p.RequireFactor, &p.Color, &p.Registration,
		&created, &updated,
		&p.Logo, &p.Terms, &p.Privacy)
	p.Created, p.Updated = moment(created), moment(updated)
	return p, found(err, "project")
}

// found makes problem.NotFound of a row that is not there.
func found(err error, thing string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrNoRows):
		return problem.NoSuch(thing)
	}
	return fmt.Errorf("reading %s: %w", thing, err)
}

// CreateProject inserts a project.
func (s *Projects) CreateProject(ctx context.Context, p fabric.Project) error {
	return s.once(ctx, audit.Of("project.created", p.ID, "project", p.ID).With("name", p.Name), func(t tx) error {
		_, err := t.Exec(ctx, `INSERT INTO projects (`+
			projectColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, '', '', '')`,
			p.ID, p.Name, p.RecordRate, p.MediaAuth, flag(p.RequireFactor), p.Color, string(p.Registration),
			micros(p.Created), micros(p.Updated))
		if err != nil {
			return fmt.Errorf("inserting project: %w", err)
		}
		return nil
	})
}

// FindProject finds a project.
func (s *Projects) FindProject(ctx context.Context, id string) (fabric.Project, error) {
	return scanProject(s.read().Row(ctx, `SELECT `+projectColumns+` FROM projects WHERE id = $1`, id))
}

// ListProjects returns a page of all projects.
func (s *Projects) ListProjects(ctx context.Context, q page.Query) (page.Page[fabric.Project], error) {
	l := listing[fabric.Project]{
		thing: "projects", columns: projectColumns, from: "projects", key: []string{"id"}, start: startAt(q.From),
		scan: scanProject, id: func(p fabric.Project) string { return p.ID },
	}
	return l.page(ctx, s.read(), q)
}

// UpdateProject writes what is not nil.
func (s *Projects) UpdateProject(ctx context.Context, id string, c fabric.ProjectChange, at time.Time) (p fabric.Project, err error) {
	err = s.once(ctx, audit.Of("project.updated", id, "project", id), func(t tx) (err error) {
		p, err = scanProject(t.Row(ctx, `UPDATE projects SET name = COALESCE($2, name), record_rate = COALESCE($3, record_rate),
			media_auth = COALESCE($4, media_auth), color = COALESCE($6, color), registration = COALESCE($7, registration),
			require_factor = COALESCE($8, require_factor), terms_uri = COALESCE($9, terms_uri), policy_uri = COALESCE($10, policy_uri),
			updated = $5 WHERE id = $1 RETURNING `+
			projectColumns, id, c.Name, c.RecordRate, c.MediaAuth, micros(at), c.Color,
			(*string)(c.Registration), flagOf(c.RequireFactor), c.Terms, c.Privacy))
		t.event.Add("name", p.Name, "record_rate", strconv.FormatInt(p.RecordRate, 10), "media_auth",
			string(p.MediaAuth), "require_factor", strconv.FormatBool(p.RequireFactor),
			"color", p.Color, "registration", string(p.Registration), "terms_uri", p.Terms, "policy_uri", p.Privacy)
		return err
	})
	return p, err
}

// DeleteProject deletes the project that a revocation names; all rows of the
// project go with it.
func (s *Projects) DeleteProject(ctx context.Context, r revocation.Revocation) error {
	return s.change(ctx, audit.Of("project.deleted", r.ID, "project", r.ID), func(t tx) error {
		if err := t.deleteFactors(ctx, factor.Subscriber, "IN (SELECT id FROM subscribers WHERE project_id = $1)", r.ID); err != nil {
			return err
		}
		res, err := t.Exec(ctx, `DELETE FROM projects WHERE id = $1`, r.ID)
		if err := oneRow(res, err, "project"); err != nil {
			return err
		}
		return t.revoke(ctx, s.ending(r))
	})
}

// AnyRegistration reports whether people may make themselves accounts in any project.
func (s *Projects) AnyRegistration(ctx context.Context) (any bool, err error) {
	err = s.read().Row(ctx, `SELECT EXISTS (SELECT 1 FROM projects WHERE registration = $1)`,
		string(fabric.RegistrationOpen)).Scan(&any)
	if err != nil {
		return false, fmt.Errorf("looking for registration: %w", err)
	}
	return any, nil
}
