package store

import (
	"context"
	"fmt"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
)

// markEvent is none: what was made or deleted has an event of its own.
var markEvent = audit.None("a mark beside what was made, which has an event")

// MarkDeclared marks what was made from a file.
func (s *Projects) MarkDeclared(ctx context.Context, projectID, id string) error {
	return s.once(ctx, markEvent, func(t tx) error {
		_, err := t.Exec(ctx, `INSERT INTO declared (id, project_id) VALUES ($1, $2) ON CONFLICT DO NOTHING`,
			id, projectID)
		if isForeignKey(err) {
			return problem.NoSuch("project")
		}
		if err != nil {
			return fmt.Errorf("marking what was made: %w", err)
		}
		return nil
	})
}

// UnmarkDeclared removes a mark, be it there or not.
func (s *Projects) UnmarkDeclared(ctx context.Context, id string) error {
	return s.once(ctx, markEvent, func(t tx) error {
		if _, err := t.Exec(ctx, `DELETE FROM declared WHERE id = $1`, id); err != nil {
			return fmt.Errorf("removing mark: %w", err)
		}
		return nil
	})
}

// ListDeclared returns the ids of what was made from files in a project.
func (s *Projects) ListDeclared(ctx context.Context, projectID string) ([]string, error) {
	return gather(ctx, s.read(), "listing marks", func(row scanner) (id string, err error) {
		return id, row.Scan(&id)
	},
		`SELECT id FROM declared WHERE project_id = $1 ORDER BY id`, projectID)
}
