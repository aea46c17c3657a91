package operator

import (
	"context"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/selvage/selvage/internal/problem"
)

// A RecordingFilter is a search of a project's recordings that an operator named. Other operators do
// not see it.
type RecordingFilter struct {
	ID         string
	OperatorID string
	ProjectID  string
	Name       string
	Query      string // of the URL
	Created    time.Time
}

// Limits of recording filters.
const (
	maxFilters     = 20   // of an operator, for each project
	maxFilterName  = 60   // characters
	maxFilterQuery = 4000 // bytes
)

// A FilterStore stores recording filters.
type FilterStore interface {
	// SaveRecordingFilter inserts a filter, or changes the query of the operator's filter with the
	// same name. If the operator has as many others as most, it returns problem.Invalid.
	SaveRecordingFilter(ctx context.Context, f RecordingFilter, most int) error
	// ListRecordingFilters returns an operator's filters of a project by name.
	ListRecordingFilters(ctx context.Context, operatorID, projectID string) ([]RecordingFilter, error)
	// DeleteRecordingFilter deletes one of an operator's filters of a project, or returns
	// problem.NotFound.
	DeleteRecordingFilter(ctx context.Context, operatorID, projectID, id string) error
}

// SaveRecordingFilter saves a search for its operator. A filter with the same name is replaced.
func (a *Operators) SaveRecordingFilter(ctx context.Context, f RecordingFilter) error {
	f.Name = strings.TrimSpace(f.Name)
	switch {
	case f.Name == "":
		return problem.BadParam("name", "the filter needs a name")
	case !utf8.ValidString(f.Name) || utf8.RuneCountInString(f.Name) > maxFilterName ||
		strings.ContainsFunc(f.Name, unicode.IsControl):
		return problem.BadParam("name", "the name of a filter can have at most %d characters", maxFilterName)
	case f.Query == "" || len(f.Query) > maxFilterQuery:
		return problem.BadParam("query", "there is no filter to save, or it is too long")
	}
	f.ID, f.Created = newID(), a.now()
	return a.c.Store.SaveRecordingFilter(ctx, f, maxFilters)
}

// RecordingFilters returns an operator's saved filters of a project by name.
func (a *Operators) RecordingFilters(ctx context.Context, operatorID, projectID string) ([]RecordingFilter, error) {
	return a.c.Store.ListRecordingFilters(ctx, operatorID, projectID)
}

// RemoveRecordingFilter removes one of an operator's saved filters.
func (a *Operators) RemoveRecordingFilter(ctx context.Context, operatorID, projectID, id string) error {
	return a.c.Store.DeleteRecordingFilter(ctx, operatorID, projectID, id)
}
