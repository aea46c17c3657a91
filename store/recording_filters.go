package store

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/recordings"
)

var recordingFilterTable = table[operator.RecordingFilter]{
	name:    "recording_filters",
	thing:   "saved filter",
	columns: `id, operator_id, project_id, name, query, created`,
	fields: func(f *operator.RecordingFilter) []any {
		return []any{&f.ID, &f.OperatorID, &f.ProjectID, &f.Name, &f.Query, &f.Created}
	},
}

// SaveRecordingFilter inserts a filter. It replaces the operator's filter of the project with the
// same name, if there is one. limit is the maximum number of filters that an operator can save for a
// project. If it is exceeded, the error is problem.Invalid.
func (s *Operators) SaveRecordingFilter(ctx context.Context, f operator.RecordingFilter, limit int) error {
	// The name of a filter may be the name of a subscriber, so events do not contain it. The audit
	// trail is never erased.
	e := audit.Of("recording_filter.saved", f.ProjectID, "recording filter", f.ID)
	return s.change(ctx, e, func(t tx) error {
		// Concurrent saves by the same operator wait here for one another, so that each counts the
		// others' filters.
		if _, err := t.Exec(ctx, `UPDATE operators SET disabled = disabled WHERE id = $1`, f.OperatorID); err != nil {
			return fmt.Errorf("locking operator: %w", err)
		}
		var others int
		err := t.Row(ctx, `SELECT COUNT(*) FROM recording_filters
			WHERE operator_id = $1 AND project_id = $2 AND name <> $3`, f.OperatorID, f.ProjectID, f.Name).Scan(&others)
		if err != nil {
			return fmt.Errorf("counting saved filters: %w", err)
		}
		if others >= limit {
			return problem.New(problem.Invalid, "too_many", "you can save at most %d filters: remove one first", limit)
		}

		_, err = t.Exec(ctx, `DELETE FROM recording_filters WHERE operator_id = $1 AND project_id = $2 AND name = $3`,
			f.OperatorID, f.ProjectID, f.Name)
		if err != nil {
			return fmt.Errorf("replacing saved filter: %w", err)
		}
		return recordingFilterTable.insert(ctx, t, &f, "project")
	})
}

// ListRecordingFilters returns an operator's filters of a project, sorted by name.
func (s *Operators) ListRecordingFilters(
	ctx context.Context, operatorID, projectID string,
) ([]operator.RecordingFilter, error) {
	return recordingFilterTable.gather(ctx, s.read(), `WHERE operator_id = $1 AND project_id = $2 ORDER BY name`,
		operatorID, projectID)
}

// RenameRecordingFilter renames one of an operator's filters of a project.
func (s *Operators) RenameRecordingFilter(ctx context.Context, operatorID, projectID, id, name string) error {
	e := audit.Of("recording_filter.renamed", projectID, "recording filter", id)
	return s.change(ctx, e, func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE recording_filters SET name = $4
			WHERE operator_id = $1 AND project_id = $2 AND id = $3`, operatorID, projectID, id, name)
		if isUnique(err) {
			return problem.New(problem.Conflict, "conflict", "another filter already has this name")
		}
		return requireRow(res, err, "saved filter")
	})
}

// eraseFilters deletes the saved searches of the project that contain the subscriber's id or one of
// its names, in the parameters or in the name of the filter.
func (e *erasure) eraseFilters(ctx context.Context) error {
	saved, err := recordingFilterTable.gather(ctx, e.tx, `WHERE project_id = $1`, e.projectID)
	if err != nil {
		return err
	}
	identifiers := append(slices.Clone(e.names), e.id)
	for _, f := range saved {
		if !searchesFor(f, identifiers) {
			continue
		}
		if err = e.tx.Later(ctx, `DELETE FROM recording_filters WHERE id = $1`, f.ID); err != nil {
			return fmt.Errorf("erasing saved filter: %w", err)
		}
		e.result.Deleted["recording_filters"]++
	}
	return nil
}

// aboutAudio lists the parameters of searches that never name a person. Their values are not
// compared with names, because a subscriber's reference may be a number that equals a date or a
// duration.
var aboutAudio = []string{"after", "before", "longer", "shorter", "flag", "direction", "held"}

// searchesFor reports whether a filter contains one of the names, or a telephone number that equals one
// of them. names must be in lower case.
func searchesFor(f operator.RecordingFilter, names []string) bool {
	values, _ := url.ParseQuery(f.Query) // contains all valid parameters
	maps.DeleteFunc(values, func(param string, _ []string) bool { return slices.Contains(aboutAudio, param) })
	for _, value := range append(slices.Concat(slices.Collect(maps.Values(values))...), f.Name) {
		tail := recordings.Tail(value)
		for _, name := range names {
			if hasWord(strings.ToLower(value), name) || sameNumber(tail, recordings.Tail(name)) {
				return true
			}
		}
	}
	return false
}

// hasWord reports whether a text contains a name as a word of its own, not as part of a longer word.
func hasWord(text, name string) bool {
	inWord := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_'
	}
	if name == "" {
		return false
	}
	for start := 0; ; start++ {
		next := strings.Index(text[start:], name)
		if next < 0 {
			return false
		}
		start += next
		before, _ := utf8.DecodeLastRuneInString(text[:start])
		after, _ := utf8.DecodeRuneInString(text[start+len(name):])
		if !inWord(before) && !inWord(after) {
			return true
		}
	}
}

// sameNumber reports whether two tails belong to the same number. Either may lack the country code.
func sameNumber(a, b string) bool {
	return a != "" && (a == b || slices.Contains(recordings.NationalTails(a), b) ||
		slices.Contains(recordings.NationalTails(b), a))
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
