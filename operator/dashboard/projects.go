package dashboard

import (
	"context"
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/operator"
)

// A projectPage shows the ids and the settings of a project.
type projectPage struct {
	ID, API, Issuer, Name, Base string
	Typed                       string // the name in the form
	Seen                        string // digest of the name; see marks
	MayChange, MayDelete        bool
	Faults                      faults
}

// showProject serves GET /dashboard/projects/{project}/settings.
func (a *projectPages) showProject(v *visit) error {
	return a.projectPage(v, http.StatusOK, v.project.Name, nil)
}

func (a *projectPages) projectPage(v *visit, code int, typed string, wrong faults) error {
	return a.page(v, code, "Project settings", "project", projectPage{
		ID:        v.project.ID,
		API:       a.PublicURL,
		Issuer:    a.AuthURL + "/",
		Name:      v.project.Name,
		Base:      v.base(),
		Typed:     typed,
		Seen:      marks(projectInputs(v.project)),
		MayChange: v.mayIn(operator.Write),
		MayDelete: v.mayIn(operator.DeleteProject),
		Faults:    wrong,
	})
}

// projectInputs returns the inputs of the form that renames a project, with their current values.
func projectInputs(p fabric.Project) []input { return []input{{Name: "name", Value: p.Name}} }

// renameProject serves POST /dashboard/projects/{project}/settings.
func (a *projectPages) renameProject(v *visit) error {
	err := v.merge(projectInputs(v.project))
	name := v.form.Get("name")
	if err == nil {
		_, err = a.Fabric.Projects.Update(v.r.Context(), v.project.ID, fabric.ProjectChange{Name: &name})
	}
	if wrong, ok := describeFaults(err, "name"); ok {
		return a.projectPage(v, http.StatusUnprocessableEntity, name, wrong)
	}
	if err != nil {
		return err
	}
	return v.redirect(v.base() + "/settings?done=changed")
}

// deleteProject serves POST /dashboard/projects/{project}/delete.
func (a *projectPages) deleteProject(v *visit) error {
	if v.form.Get("confirm") != v.project.Name {
		return a.projectPage(v, http.StatusUnprocessableEntity, v.project.Name, faultAt("confirm", wrongName))
	}
	// Deleting a very large project may take longer than the time limit for forms.
	if err := a.Fabric.Projects.Delete(context.WithoutCancel(v.r.Context()), v.project.ID); err != nil {
		return err
	}
	a.rememberDeleted(v, v.project.Name)
	return v.redirect(Prefix + "/projects?done=projectdeleted")
}

// wrongName is the message for a wrong name in the field that confirms a deletion.
const wrongName = "The name does not match. Nothing was deleted."

// A projectsPage lists the projects that the operator may see.
type projectsPage struct {
	Projects []projectRow
	Pager    pager
	Finder   finder
	MayMake  bool
	Name     string
	Faults   faults
}

type projectRow struct {
	fabric.Project
	Role string
}

// listProjects serves GET /dashboard/projects.
func (a *projectPages) listProjects(v *visit) error { return a.projectsPage(v, http.StatusOK, "", nil) }

func (a *projectPages) projectsPage(v *visit, status int, name string, wrong faults) error {
	search := v.finder("Name or id", "", "")
	found, err := a.searchProjects(v, search.Query, page.Query{Size: maxProjects, From: v.query().From})
	if err != nil {
		return err
	}
	p := projectsPage{
		Pager:   v.pager(found.Prev, found.Next),
		Finder:  search,
		MayMake: v.operator.Check(operator.MakeProject, "") == nil,
		Name:    name,
		Faults:  wrong,
	}
	for _, project := range found.Items {
		p.Projects = append(p.Projects, projectRow{project, string(v.operator.In(project.ID))})
	}
	return a.page(v, status, "Projects", "projects", p)
}

// createProject serves POST /dashboard/projects.
func (a *projectPages) createProject(v *visit) error {
	project, err := a.Fabric.Projects.Create(v.r.Context(), v.form.Get("name"))
	if all, ok := describeFaults(err, "name"); ok {
		return a.projectsPage(v, http.StatusUnprocessableEntity, v.form.Get("name"), all)
	}
	if err != nil {
		return err
	}
	return v.redirect(Prefix + "/projects/" + project.ID + "?done=projectadded")
}
