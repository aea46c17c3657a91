package dashboard

import (
	"context"
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/recordings"
)

// projectPages show the home page of a project and the list of projects.
type projectPages struct {
	*site
	trail      *trail
	Clients    *idp.Provider
	Recordings *recordings.Recordings         // nil if the server keeps no recordings
	Health     func(context.Context) []Health // nil hides all states
}

// A homePage is the first page of a project.
type homePage struct {
	ID, API, Issuer string
	Steps           []step
	Health          []Health
	MayDelete       bool
	Name            string
	Events          []eventRow // the most recent ones
	Faults          []string
}

// A step is one of the first tasks in a new project.
type step struct {
	Title, URL, Command string
	Done                bool
}

// home serves GET /dashboard/projects/{project}.
func (a *projectPages) home(v *visit) error {
	p, err := a.homePage(v)
	if err != nil {
		return err
	}
	return a.page(v, http.StatusOK, v.project.Name, "home", p)
}

func (a *projectPages) homePage(v *visit) (homePage, error) {
	p := homePage{
		ID: v.project.ID, API: a.PublicURL, Issuer: a.AuthURL + "/", Name: v.project.Name,
		MayDelete: v.mayIn(operator.DeleteProject),
	}
	if a.Health != nil {
		p.Health = a.Health(v.r.Context())
	}

	last, err := a.trail.audit(v, audit.Filter{ProjectID: v.project.ID}, page.Query{Size: 10})
	if err != nil {
		return p, err
	}
	if p.Events, err = a.trail.eventRows(v, last.Items); err != nil {
		return p, err
	}
	p.Steps, err = a.steps(v)
	return p, err
}

// steps returns the first tasks in a project, and marks those that are done.
func (a *projectPages) steps(v *visit) ([]step, error) {
	ctx, id, q := v.r.Context(), v.project.ID, page.Query{Size: 1}
	keys, err := a.Fabric.APIKeys.List(ctx, id, q)
	if err != nil {
		return nil, err
	}
	subscribers, err := a.Fabric.Subscribers.List(ctx, id, q)
	if err != nil {
		return nil, err
	}
	clients, err := a.Clients.Clients.List(ctx, id, q)
	if err != nil {
		return nil, err
	}

	all := []step{
		{"Create an API key for your backend", v.base() + "/keys",
			"selvage key create --project " + id + " --scope Voice", len(keys.Items) > 0},
		{"Add a subscriber", v.base() + "/subscribers",
			"selvage subscriber create --project " + id + " --email ada@example.com", len(subscribers.Items) > 0},
		{"Register your app as an OAuth client", v.base() + "/clients", "selvage client create --project " +
			id + " --type spa --redirect-uri http://localhost:3000/callback", len(clients.Items) > 0},
	}

	if a.Recordings != nil {
		some, err := a.Recordings.List(ctx, recordings.Filter{Owner: recordings.Owner{ProjectID: id}}, q)
		if err != nil {
			return nil, err
		}
		all = append(all, step{"Store a recording", v.base() + "/recordings",
			"selvage recording import --project " + id + " call.wav", len(some.Items) > 0})
	}
	return all, nil
}

// deleteProject serves POST /dashboard/projects/{project}/delete.
func (a *projectPages) deleteProject(v *visit) error {
	if v.form.Get("confirm") != v.project.Name {
		p, err := a.homePage(v)
		if err != nil {
			return err
		}
		p.Faults = []string{wrongName}
		return a.page(v, http.StatusUnprocessableEntity, v.project.Name, "home", p)
	}
	if err := a.Fabric.Projects.Delete(v.r.Context(), v.project.ID); err != nil {
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
	MayMake  bool
	Name     string
	Faults   []string
}

type projectRow struct {
	fabric.Project
	Role operator.Role
}

// listProjects serves GET /dashboard/projects.
func (a *projectPages) listProjects(v *visit) error { return a.projectsPage(v, http.StatusOK, "", nil) }

func (a *projectPages) projectsPage(v *visit, status int, name string, faults []string) error {
	all, err := a.projectsOf(v)
	if err != nil {
		return err
	}
	p := projectsPage{MayMake: v.operator.Check(operator.MakeProject, "") == nil, Name: name, Faults: faults}
	for _, project := range all {
		p.Projects = append(p.Projects, projectRow{project, v.operator.In(project.ID)})
	}
	return a.page(v, status, "Projects", "projects", p)
}

// createProject serves POST /dashboard/projects.
func (a *projectPages) createProject(v *visit) error {
	project, err := a.Fabric.Projects.Create(v.r.Context(), v.form.Get("name"))
	if all, ok := faults(err); ok {
		return a.projectsPage(v, http.StatusUnprocessableEntity, v.form.Get("name"), all)
	}
	if err != nil {
		return err
	}
	return v.redirect(Prefix + "/projects/" + project.ID + "?done=projectadded")
}
