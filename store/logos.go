package store

import (
	"context"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/logo"
	"github.com/selvage/selvage/internal/problem"
)

// SetProjectLogo replaces the logo of a project; the zero value takes it away.
func (s *Projects) SetProjectLogo(ctx context.Context, id string, l logo.Logo, at time.Time) (p fabric.Project, err error) {
	err = s.change(ctx, audit.Of("project.updated", id, "project", id).With("logo", l.Name), func(t tx) (err error) {
		p, err = scanProject(t.Row(ctx, `UPDATE projects SET logo = $2, updated = $3 WHERE id = $1 RETURNING `+projectColumns, id, l.Name, micros(at)))
		if err != nil {
			return err
		}
		if _, err := t.Exec(ctx, `DELETE FROM logos WHERE project_id = $1 AND client_id IS NULL`, id); err != nil {
			return fmt.Errorf("removing logo: %w", err)
		}
		return t.addLogo(ctx, id, nil, l)
	})
	return p, err
}

// SetClientLogo replaces the logo of a client; the zero value takes it away.
func (s *Clients) SetClientLogo(ctx context.Context, id string, l logo.Logo, at time.Time) error {
	return s.change(ctx, audit.Of("client.updated", "", "client", id).With("logo", l.Name), func(t tx) error {
		var name string
		err := t.Row(ctx, `UPDATE clients SET logo = $2, updated = $3 WHERE id = $1 RETURNING project_id, name`, id, l.Name, micros(at)).Scan(&t.event.ProjectID, &name)
		if err := found(err, "client"); err != nil {
			return err
		}
		t.event.Add("name", name)
		if _, err := t.Exec(ctx, `DELETE FROM logos WHERE client_id = $1`, id); err != nil {
			return fmt.Errorf("removing logo: %w", err)
		}
		return t.addLogo(ctx, t.event.ProjectID, &id, l)
	})
}

func (t tx) addLogo(ctx context.Context, projectID string, clientID *string, l logo.Logo) error {
	if l.Name == "" {
		return nil
	}
	_, err := t.Exec(ctx, `INSERT INTO logos (project_id, client_id, name, body) VALUES ($1, $2, $3, $4)`,
		projectID, clientID, l.Name, base64.StdEncoding.EncodeToString(l.PNG))
	if err != nil {
		return fmt.Errorf("inserting logo: %w", err)
	}
	return nil
}

// FindLogo returns the PNG of a name, whosever it is.
func (s *Projects) FindLogo(ctx context.Context, name string) ([]byte, error) {
	var body string
	err := s.read().Row(ctx, `SELECT body FROM logos WHERE name = $1 LIMIT 1`, name).Scan(&body)
	if err := found(err, "logo"); err != nil {
		return nil, err
	}
	raw, err := base64.StdEncoding.DecodeString(body)
	if err != nil {
		return nil, problem.NoSuch("logo")
	}
	return raw, nil
}
