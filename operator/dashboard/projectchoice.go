package dashboard

import (
	"errors"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
)

// A projectChoice is the part of a form that selects the project of a role.
type projectChoice struct {
	Projects []choice
	Others   bool   // whether there are more projects; if so, the form also has an input for a name or id
	Typed    string // the text in this input
}

// projectChoices returns the part of a form that selects the project of a role. chosen is the id of the
// selected project, or "".
func (a *operatorPages) projectChoices(v *visit, chosen string) (c projectChoice, err error) {
	found, err := a.searchProjects(v, "", page.Query{Size: maxProjects})
	if err != nil {
		return c, err
	}
	projects, err := a.addProjects(v, found.Items, operator.Membership{ProjectID: chosen})
	if err != nil {
		return c, err
	}
	c.Others = found.Next != ""
	c.Typed = v.form.Get(otherProject)
	c.Projects = []choice{{Title: "Every project and the installation", Chosen: chosen == ""}}
	for _, p := range projects {
		c.Projects = append(c.Projects, choice{Value: p.ID, Title: p.Name, Chosen: p.ID == chosen})
	}
	return c, nil
}

// otherProject is the name of the input for a project that a form does not list.
const otherProject = "other-project"

var projectNames = naming{
	none:    "%s is not a project.",
	several: "%s names more than one project. Enter the id.",
}

// sentProject returns the id of the project in a form, or "". A typed name or id takes precedence over
// the selected project.
func (a *operatorPages) sentProject(v *visit) (string, error) {
	text := plainText(v.form.Get(otherProject))
	if text == "" {
		return v.form.Get("project"), nil
	}
	if uuid.MatchString(text) {
		p, err := a.Fabric.Projects.Find(v.r.Context(), text)
		if errors.Is(err, problem.NotFound) {
			return "", projectNames.unknown(v, otherProject, text)
		}
		return p.ID, err
	}

	ids, err := a.Fabric.Projects.Named(v.r.Context(), text)
	if err != nil {
		return "", err
	}
	return projectNames.only(v, ids, false, otherProject, text)
}
