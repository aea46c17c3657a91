package store

import (
	"context"
	"fmt"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
)

var recordingFilterTable = table[operator.RecordingFilter]{
	name:    "recording_filters",
	thing:   "saved filter",
	columns: `id, operator_id, project_id, name, query, created`,
	fields: func(f *operator.RecordingFilter) []any {
		return []any{&f.ID, &f.OperatorID, &f.ProjectID, &f.Name, &f.Query, &f.Created}
	},
}

// SaveRecordingFilter inserts a filter, or changes the query of the operator's filter with the same
// name.
func (s *Operators) SaveRecordingFilter(ctx context.Context, f operator.RecordingFilter, most int) error {
	e := audit.Of("recording_filter.saved", f.ProjectID, "recording filter", f.ID).With("name", f.Name)
	return s.change(ctx, e, func(t tx) error {
		var others int
		err := t.Row(ctx, `SELECT COUNT(*) FROM recording_filters
			WHERE operator_id = $1 AND project_id = $2 AND name <> $3`, f.OperatorID, f.ProjectID, f.Name).Scan(&others)
		if err != nil {
			return fmt.Errorf("counting saved filters: %w", err)
		}
		if others >= most {
			return problem.New(problem.Invalid, "too_many", "you can save at most %d filters: remove one first", most)
		}

		_, err = t.Exec(ctx, `DELETE FROM recording_filters WHERE operator_id = $1 AND project_id = $2 AND name = $3`,
			f.OperatorID, f.ProjectID, f.Name)
		if err != nil {
			return fmt.Errorf("replacing saved filter: %w", err)
		}
		return recordingFilterTable.insert(ctx, t, &f, "project")
	})
}

// ListRecordingFilters returns an operator's filters of a project by name.
func (s *Operators) ListRecordingFilters(
	ctx context.Context, operatorID, projectID string,
) ([]operator.RecordingFilter, error) {
	return recordingFilterTable.gather(ctx, s.read(), `WHERE operator_id = $1 AND project_id = $2 ORDER BY name`,
		operatorID, projectID)
}

// DeleteRecordingFilter deletes one of an operator's filters of a project.
func (s *Operators) DeleteRecordingFilter(ctx context.Context, operatorID, projectID, id string) error {
	e := audit.Of("recording_filter.removed", projectID, "recording filter", id)
	return s.change(ctx, e, func(t tx) error {
		res, err := t.Exec(ctx, `DELETE FROM recording_filters WHERE operator_id = $1 AND project_id = $2 AND id = $3`,
			operatorID, projectID, id)
		return requireRow(res, err, "saved filter")
	})
}
