package dashboard

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
)

// A savedFilter is a link to the recordings that match a saved filter.
type savedFilter struct {
	ID, Name, URL string
	Here          bool   // whether the page shows these recordings
	Typed         string // a new name that was refused
}

// savedFilters is the section of the recordings page that shows the saved filters.
type savedFilters struct {
	All   []savedFilter
	Query string // the search that the page shows, as it would be saved; "" if it shows all recordings
	Base  string
	Typed string // a name for a new filter that was refused
}

// retype fills in the name that was refused.
func (s *savedFilters) retype(id, name string) {
	if id == "" {
		s.Typed = name
	}
	for i := range s.All {
		if s.All[i].ID == id {
			s.All[i].Typed = name
		}
	}
}

// savedFilters returns the operator's saved filters of the project.
func (a *recordingPages) savedFilters(v *visit, f finder) (savedFilters, error) {
	saved := savedFilters{Query: searchOf(v.r.URL.Query(), f), Base: v.base() + "/recordings"}
	all, err := a.Operators.RecordingFilters(v.r.Context(), v.operator.ID, v.project.ID)
	for _, one := range all {
		saved.All = append(saved.All, savedFilter{ID: one.ID, Name: one.Name,
			URL: saved.Base + "?" + one.Query, Here: one.Query == saved.Query})
	}
	return saved, err
}

// searchOf returns the parameters of a query that restrict a list, in a fixed order.
func searchOf(q url.Values, f finder) string {
	search := url.Values{}
	keep := func(name string) {
		if text := plainText(q.Get(name)); text != "" {
			search.Set(name, text)
		}
	}
	keep("q")
	for _, in := range f.Filters {
		keep(in.Name)
	}
	return search.Encode()
}

// saveFilter serves POST /dashboard/projects/{project}/recordings/filters.
func (a *recordingPages) saveFilter(v *visit) error {
	if a.Recordings == nil {
		return problem.NoSuch("page")
	}
	asked, err := url.ParseQuery(v.form.Get("query"))
	if err != nil {
		asked = nil
	}

	query := searchOf(asked, v.recordingFinder())
	err = a.Operators.SaveRecordingFilter(v.r.Context(), operator.RecordingFilter{
		OperatorID: v.operator.ID, ProjectID: v.project.ID, Name: v.form.Get("name"), Query: query})
	if wrong, ok := describeFaults(err, "name"); ok {
		v.r.URL.RawQuery = query
		v.r.URL.Path = strings.TrimSuffix(v.r.URL.Path, "/filters")
		return a.recordingsPage(v, http.StatusUnprocessableEntity, wrong.moved("name", "filter-name"))
	}
	if err != nil {
		return err
	}
	return v.redirect(v.base() + "/recordings?" + query + "&done=filtersaved")
}

// renameFilter serves POST /dashboard/projects/{project}/recordings/filters/{id}/rename.
func (a *recordingPages) renameFilter(v *visit) error {
	if a.Recordings == nil {
		return problem.NoSuch("page")
	}
	err := a.Operators.RenameRecordingFilter(
		v.r.Context(), v.operator.ID, v.project.ID, v.r.PathValue("id"), v.form.Get("name"))
	if wrong, ok := describeFaults(err, "name"); ok {
		v.r.URL.Path = v.base() + "/recordings"
		wrong = wrong.moved("name", "filter-"+v.r.PathValue("id"))
		return a.recordingsPage(v, http.StatusUnprocessableEntity, wrong)
	}
	if err != nil {
		return err
	}
	return v.redirect(v.base() + "/recordings?done=filterrenamed")
}

// removeFilter serves POST /dashboard/projects/{project}/recordings/filters/{id}/remove.
func (a *recordingPages) removeFilter(v *visit) error {
	err := a.Operators.RemoveRecordingFilter(v.r.Context(), v.operator.ID, v.project.ID, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	return v.redirect(v.base() + "/recordings?done=filterremoved")
}
