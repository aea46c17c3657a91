package store

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/brand"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// Projects holds projects and their logos. It also marks objects that were created from a
// declaration file.
type Projects struct{ *core }

var projectTable = table[fabric.Project]{
	name:    "projects",
	thing:   "project",
	columns: "id, logo, dark_logo, created, updated" + projectColumns(", %[1]s"),
	fields: func(p *fabric.Project) []any {
		fields := []any{&p.ID, &p.Logo, &p.DarkLogo, &p.Created, &p.Updated}
		for _, f := range fabric.ProjectFields {
			fields = append(fields, f.Value(p))
		}
		return fields
	},
}

// projectColumns formats each column of [fabric.ProjectFields]. The arguments of format are the name
// of the column and the number of its parameter in [updateProject].
func projectColumns(format string) string {
	var columns strings.Builder
	for i, f := range fabric.ProjectFields {
		fmt.Fprintf(&columns, format, f.Column, i+3)
	}
	return columns.String()
}

// CreateProject inserts a project, without its logos.
func (s *Projects) CreateProject(ctx context.Context, p fabric.Project) error {
	p.Logo, p.DarkLogo = "", ""
	return s.once(ctx, audit.Of("project.created", p.ID, "project", p.ID).With("name", p.Name), func(t tx) error {
		conflict := problem.Taken("id", "another project has this id, or open client registration")
		return projectTable.insertNew(ctx, t, &p, "", conflict)
	})
}

// FindProject finds a project.
func (s *Projects) FindProject(ctx context.Context, id string) (fabric.Project, error) {
	return projectTable.find(ctx, s.read(), `id = $1`, id)
}

// ProjectsNamed returns the ids of up to two projects with this name, ignoring the case of A to Z.
func (s *Projects) ProjectsNamed(ctx context.Context, name string) ([]string, error) {
	return gather(ctx, s.read(), "finding projects", scanID,
		`SELECT id FROM projects WHERE LOWER(name) = $1 ORDER BY id LIMIT 2`, lower(name))
}

// ListProjects returns a page of the projects whose name contains each word of a text, in one of its
// spellings (see containing), or whose id is the text.
func (s *Projects) ListProjects(
	ctx context.Context, text string, q page.Query,
) (page.Page[fabric.Project], error) {
	l := projectTable.listing(q.From)
	for _, c := range containing(`name`, text) {
		c.condition = `(` + c.condition + ` OR id = $%d)`
		c.args = append(c.args, strings.ToLower(text))
		l.checks = append(l.checks, c)
	}
	return l.page(ctx, s.read(), q)
}

// UpdateProject writes the fields that are not nil. The event names only what has changed.
func (s *Projects) UpdateProject(
	ctx context.Context, id string, c fabric.ProjectChange, at time.Time,
) (fabric.Project, error) {
	e := audit.Of("project.updated", id, "project", id)
	return resultOf(ctx, s.change, e, func(t tx) (p fabric.Project, err error) {
		// Lock the project, so that the event names only the changes of this update.
		was, err := projectTable.scan(t.Row(ctx, `UPDATE projects SET id = id WHERE id = $1
			RETURNING `+projectTable.columns, id))
		if err != nil {
			return p, err
		}
		if err := t.writeProject(ctx, id, c, at); err != nil {
			return p, err
		}
		if err := t.setLogos(ctx, id, nil, c.Logos); err != nil {
			return p, err
		}

		p, err = projectTable.find(ctx, t, `id = $1`, id)
		if err != nil {
			return p, err
		}
		t.event.AddChanges(projectFacts(was), projectFacts(p))
		if t.event.Detail == nil {
			t.event.Drop()
		}
		return p, nil
	})
}

// updateProject is the statement of [tx.writeProject].
var updateProject = `UPDATE projects SET updated = $2` + projectColumns(`, %[1]s = COALESCE($%[2]d, %[1]s)`) +
	` WHERE id = $1`

// writeProject writes the fields of a project that are not nil, except logos.
func (t tx) writeProject(ctx context.Context, id string, c fabric.ProjectChange, at time.Time) error {
	args := []any{id, micros(at)}
	for _, f := range fabric.ProjectFields {
		value := f.New(c)
		if value == nil {
			args = append(args, nil)
			continue
		}
		stored, err := storedValue(value)
		if err != nil {
			return fmt.Errorf("updating project: %w", err)
		}
		args = append(args, stored)
	}

	_, err := t.Exec(ctx, updateProject, args...)
	if isUnique(err) {
		return problem.Taken("client_registration", "another project already has open client registration")
	}
	if err != nil {
		return fmt.Errorf("updating project: %w", err)
	}
	return nil
}

// FindRegistrar finds a project in which clients can register themselves, preferably one with open
// registration.
func (s *Projects) FindRegistrar(ctx context.Context) (fabric.Project, error) {
	return projectTable.find(ctx, s.read(), `client_registration <> 'off'
		ORDER BY CASE client_registration WHEN 'open' THEN 0 ELSE 1 END, id LIMIT 1`)
}

// AnyRegistration reports whether any project allows users to create their own accounts.
func (s *Projects) AnyRegistration(ctx context.Context) (found bool, err error) {
	err = s.read().Row(ctx, `SELECT EXISTS (SELECT 1 FROM projects WHERE registration = $1)`,
		string(fabric.RegistrationOpen)).Scan(&found)
	if err != nil {
		return false, fmt.Errorf("finding registration: %w", err)
	}
	return found, nil
}

// FindRecordCalls returns the recording setting of a project, and the settings of its subscribers
// with the given ids.
func (s *Projects) FindRecordCalls(
	ctx context.Context, projectID string, ids []string,
) (project fabric.RecordCalls, subscribers map[string]fabric.RecordCalls, err error) {
	query := `SELECT id, record_calls FROM projects WHERE id = $1`
	args := []any{projectID}
	if len(ids) > 0 {
		query += ` UNION ALL SELECT id, record_calls FROM subscribers
			WHERE project_id = $1 AND id IN (` + params(len(args), len(ids)) + `)`
		for _, id := range ids {
			args = append(args, id)
		}
	}

	subscribers = make(map[string]fabric.RecordCalls)
	err = each(ctx, s.read(), "finding the recording of calls", func(row scanner) error {
		var id string
		var set fabric.RecordCalls
		if err := row.Scan(&id, &set); err != nil {
			return err
		}
		subscribers[id] = set
		return nil
	}, query, args)
	if err != nil {
		return "", nil, err
	}

	project, known := subscribers[projectID]
	if !known {
		return "", nil, problem.NoSuch("project")
	}
	delete(subscribers, projectID)
	return project, subscribers, nil
}

// setLogos sets logos of a client or, if clientID is nil, of a project.
func (t tx) setLogos(ctx context.Context, projectID string, clientID *string, logos brand.Logos) error {
	id := clientID
	owners := "clients"
	ofOwner := "client_id = $1"
	if clientID == nil {
		id = &projectID
		owners = "projects"
		ofOwner = "project_id = $1 AND client_id IS NULL"
	}

	for theme, logo := range logos {
		column := theme.Param()
		pictures := column + "s" // the table with the images
		if _, err := t.Exec(ctx, `UPDATE `+owners+` SET `+column+` = $2 WHERE id = $1`, id, logo.Name); err != nil {
			return fmt.Errorf("naming logo: %w", err)
		}

		if _, err := t.Exec(ctx, `DELETE FROM `+pictures+` WHERE `+ofOwner, id); err != nil {
			return fmt.Errorf("removing logo: %w", err)
		}
		if logo.Name == "" {
			continue
		}

		_, err := t.Exec(ctx, `INSERT INTO `+pictures+` (project_id, client_id, name, body)
			VALUES ($1, $2, $3, $4)`,
			projectID, clientID, logo.Name, base64.StdEncoding.EncodeToString(logo.PNG))
		if err != nil {
			return fmt.Errorf("inserting logo: %w", err)
		}
	}
	return nil
}

// FindLogo returns the PNG with the given name, for any project or client.
func (s *Projects) FindLogo(ctx context.Context, name string) ([]byte, error) {
	var body string
	err := s.read().Row(ctx, `SELECT body FROM logos WHERE name = $1
		UNION ALL SELECT body FROM dark_logos WHERE name = $1 LIMIT 1`, name).Scan(&body)
	if err = checkRow(err, "logo"); err != nil {
		return nil, err
	}
	raw, err := base64.StdEncoding.DecodeString(body)
	if err != nil {
		return nil, problem.NoSuch("logo")
	}
	return raw, nil
}

// markEvent records no event, because creating or deleting the marked object has its own event.
var markEvent = audit.None("marks something whose creation has an event")

// MarkDeclared records that the object with the given id was created from a file.
func (s *Projects) MarkDeclared(ctx context.Context, projectID, id string) error {
	return s.once(ctx, markEvent, func(t tx) error {
		_, err := t.Exec(ctx, `INSERT INTO declared (id, project_id) VALUES ($1, $2) ON CONFLICT DO NOTHING`,
			id, projectID)
		if isForeignKey(err) {
			return problem.NoSuch("project")
		}
		if err != nil {
			return fmt.Errorf("inserting mark: %w", err)
		}
		return nil
	})
}

// UnmarkDeclared deletes the mark of an object, if there is one.
func (s *Projects) UnmarkDeclared(ctx context.Context, id string) error {
	return s.once(ctx, markEvent, func(t tx) error {
		if _, err := t.Exec(ctx, `DELETE FROM declared WHERE id = $1`, id); err != nil {
			return fmt.Errorf("removing mark: %w", err)
		}
		return nil
	})
}

// ListDeclared returns the ids of all objects in a project that were created from files.
func (s *Projects) ListDeclared(ctx context.Context, projectID string) ([]string, error) {
	return gather(ctx, s.read(), "listing marks", scanID,
		`SELECT id FROM declared WHERE project_id = $1 ORDER BY id`, projectID)
}
