package operator

import (
	"context"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/selvage/selvage/internal/problem"
)

// A RecordingFilter is a search of a project's recordings that an operator has saved under a name.
// Other operators do not see it.
type RecordingFilter struct {
	ID         string
	OperatorID string
	ProjectID  string
	Name       string
	Query      string // the query of the list's URL
	Created    time.Time
}

// These are the limits of recording filters.
const (
	maxFilters     = 20   // filters of an operator in one project
	maxFilterName  = 60   // characters in a name
	maxFilterQuery = 4000 // bytes in a query
)

// A FilterStore stores recording filters.
type FilterStore interface {
	// SaveRecordingFilter inserts a filter, or changes the query of the operator's filter with the
	// same name. most is the maximum number of an operator's filters in a project. If the operator
	// already has that many other filters, SaveRecordingFilter returns problem.Invalid.
	SaveRecordingFilter(ctx context.Context, f RecordingFilter, most int) error
	// ListRecordingFilters returns an operator's filters of a project, sorted by name.
	ListRecordingFilters(ctx context.Context, operatorID, projectID string) ([]RecordingFilter, error)
	// RenameRecordingFilter renames one of an operator's filters of a project. If there is no such
	// filter, it returns problem.NotFound. If another filter has the name, it returns
	// problem.Conflict.
	RenameRecordingFilter(ctx context.Context, operatorID, projectID, id, name string) error
	// DeleteRecordingFilter deletes one of an operator's filters of a project. If there is no such
	// filter, it returns problem.NotFound.
	DeleteRecordingFilter(ctx context.Context, operatorID, projectID, id string) error
}

// SaveRecordingFilter saves a search for its operator. A filter with the same name is replaced.
func (a *Operators) SaveRecordingFilter(ctx context.Context, f RecordingFilter) error {
	f.Name = strings.TrimSpace(f.Name)
	if err := checkFilterName(f.Name); err != nil {
		return err
	}
	if f.Query == "" || len(f.Query) > maxFilterQuery {
		return problem.BadParam("query", "there is no filter to save, or it is too long")
	}
	f.ID, f.Created = newID(), a.now()
	return a.c.Store.SaveRecordingFilter(ctx, f, maxFilters)
}

// checkFilterName checks the name of a filter.
func checkFilterName(name string) error {
	switch {
	case name == "":
		return problem.BadParam("name", "the filter needs a name")
	case !utf8.ValidString(name) || utf8.RuneCountInString(name) > maxFilterName ||
		strings.ContainsFunc(name, unicode.IsControl):
		return problem.BadParam("name", "the name of a filter can have at most %d characters", maxFilterName)
	}
	return nil
}

// RenameRecordingFilter renames one of an operator's saved filters.
func (a *Operators) RenameRecordingFilter(ctx context.Context, operatorID, projectID, id, name string) error {
	name = strings.TrimSpace(name)
	if err := checkFilterName(name); err != nil {
		return err
	}
	return a.c.Store.RenameRecordingFilter(ctx, operatorID, projectID, id, name)
}

// RecordingFilters returns an operator's saved filters of a project, sorted by name.
func (a *Operators) RecordingFilters(ctx context.Context, operatorID, projectID string) ([]RecordingFilter, error) {
	return a.c.Store.ListRecordingFilters(ctx, operatorID, projectID)
}

// RemoveRecordingFilter removes one of an operator's saved filters.
func (a *Operators) RemoveRecordingFilter(ctx context.Context, operatorID, projectID, id string) error {
	return a.c.Store.DeleteRecordingFilter(ctx, operatorID, projectID, id)
}
